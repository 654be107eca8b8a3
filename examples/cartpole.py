"""CartPole: what varies slowly under a policy of your own, drawn over the features that tell most."""

import sys
from pathlib import Path

import gymnasium

import lapwing
from lapwing import plots

NAMES = ("position", "velocity", "angle", "angular velocity")


def balance(observations):
    """Push to the side that the pole falls to, for a batch of observations."""
    return (observations[:, 2] + 0.5 * observations[:, 3] > 0).astype(int)


def main(out: Path) -> None:
    envs = gymnasium.make_vec("CartPole-v1", num_envs=16)
    experience = lapwing.collect(envs, 40_000, policy=balance, seed=0)
    with lapwing.progress_bar() as bar:
        rep = lapwing.learn(experience, dim=6, on_progress=bar)
    print("eigenvalues", rep.eigenvalues.round(4))
    some = experience.observations[::10]
    functions = rep.eigenfunctions(some)
    first, second = plots.telling_features(some, functions[:, 1:])
    names = NAMES[first], NAMES[second]
    figure = plots.draw_over_features(some[:, [first, second]], names, functions, rep.eigenvalues)
    print(plots.save_figure(figure, out / "cartpole")[0])


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/examples")
    folder.mkdir(parents=True, exist_ok=True)
    main(folder)
