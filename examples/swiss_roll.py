"""A swiss roll unrolled, with scikit-learn: where points that were not learned from lie along it."""

import sys
from pathlib import Path

from matplotlib.figure import Figure
from scipy.stats import spearmanr
from sklearn.datasets import make_swiss_roll
from sklearn.decomposition import PCA

import lapwing


def main(out: Path) -> None:
    points, _ = make_swiss_roll(2_000, noise=0.3, random_state=0)
    held_out, along = make_swiss_roll(1_000, noise=0.3, random_state=1)
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    shown = {"the roll, from its side": held_out[:, [0, 2]]}
    for estimator in (lapwing.LaplacianEmbedding(), PCA(n_components=2)):
        name = type(estimator).__name__
        shown[name] = estimator.fit(points).transform(held_out)
        rank = abs(spearmanr(shown[name][:, 0], along)[0])
        print(f"{name:18}  rank correlation with the position along the roll, held out: {rank:.3f}")
    for axes, (name, places) in zip(figure.subplots(1, 3), shown.items(), strict=True):
        axes.scatter(places[:, 0], places[:, 1], c=along, s=6)
        axes.set(title=name, xticks=[], yticks=[])
    figure.savefig(out / "swiss_roll.png")
    print(out / "swiss_roll.png")


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/examples")
    folder.mkdir(parents=True, exist_ok=True)
    main(folder)
