"""What `LaplacianReward` should be by default: SB3's DQN on its forms, filters and scales, in six tasks.

Every run is a line of `results/default_reward.csv`, written when it ends: what is interrupted resumes there.
A run's score is the share of starts from which the greedy policy comes to the goal, in the mean over its
evaluations: who learns sooner scores more. The default is the variant with the highest mean over tasks.
"""

import time
import warnings
from contextlib import suppress
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import gymnasium
import numpy as np

import lapwing
from benchmarks.goal_tasks import TASKS, Task
from benchmarks.rows import Row
from benchmarks.run_table import RunTable, markdown, outcome, put_into, share_interval
from lapwing.figures.statistics import paired_interval
from lapwing.integrations.goals import default_scale

LEARNED, PAGE = Path("runs/default_reward"), Path("docs/any_agent.md")
TABLE = RunTable(
    Path("results/default_reward.csv"),
    ("task", "form", "filter", "scale", "seed", "score", "last", "curve", "seconds", "version"),
)
SEEDS, GAMMA = 5, 0.98
TRANSITIONS = 50_000
"""Of random steps, for φ."""
EVALUATIONS, STARTS = 6, 16


class Variant(NamedTuple):
    """A way to shape the reward."""

    form: str
    filter: str = ""
    scale: float = 1.0
    """Times the wrapper's own."""

    def __str__(self) -> str:
        times = "" if self.scale == 1 else f", scale × {self.scale:g}"
        return f"{self.form} {self.filter}".strip() + times


SPARSE, CHOSEN = Variant("sparse"), Variant("potential", "commute")
FORMS = (SPARSE, Variant("mix", "commute"), CHOSEN, Variant("potential", "biharmonic"))
SCALES = (Variant("potential", "commute", 0.5), Variant("potential", "commute", 2.0))
"""Compared once the forms are."""
Score = dict[tuple[str, Variant, int], float]


def measure() -> list[Row]:
    """Every run that is missing; an interrupt ends it with the rows so far."""
    with suppress(KeyboardInterrupt):
        for variants in (FORMS, SCALES):
            for seed, variant, task in product(range(SEEDS), variants, TASKS):
                if (task, variant, seed) not in read_scores():
                    TABLE.append(_run(task, variant, seed))
    return rows(read_scores())


def read_scores(table: RunTable = TABLE) -> Score:
    """The score of each run that is in the table."""
    return {
        (row["task"], Variant(row["form"], row["filter"], float(row["scale"])), int(row["seed"])): float(
            row["score"]
        )
        for row in table.read()
    }


def write_docs() -> None:
    """Put the table of all runs into the page on any agent."""
    put_into(PAGE, "default_reward", table_of(read_scores()))


def table_of(scores: Score) -> str:
    """Variants by tasks: means over seeds with their intervals, and the lead of the chosen variant."""
    chosen, lines = _by_seed(CHOSEN, scores), []
    for variant in (*FORMS, *SCALES):
        own = _by_seed(variant, scores)
        if not own:
            continue
        cells = [share_interval([scores[task, variant, seed] for seed in own]) for task in TASKS]
        lead = "" if variant == CHOSEN else str(paired_interval(chosen, own))
        lines.append([f"{variant} ({len(own)} seeds)", *cells, share_interval(list(own.values())), lead])
    return markdown(["", *TASKS, "mean", f"{CHOSEN} is above by"], lines)


def rows(scores: Score) -> list[Row]:
    """The mean of each variant that was run in every task, that of each task, and the lead of the chosen."""
    return [_row(variant, scores) for variant in (*FORMS, *SCALES) if _by_seed(variant, scores)]


def _row(variant: Variant, scores: Score) -> Row:
    own, chosen = _by_seed(variant, scores), _by_seed(CHOSEN, scores)
    by_task = {task: np.mean([scores[task, variant, seed] for seed in own]) for task in TASKS}
    note = f"seeds: {len(own)}; " + "; ".join(f"{task} {value:.2f}" for task, value in by_task.items())
    if variant != CHOSEN and own.keys() & chosen.keys():
        note += f"; {CHOSEN} is above by {paired_interval(chosen, own)}"
    return Row(f"{variant}: mean success over the run", float(np.mean(list(own.values()))), note=note)


def _by_seed(variant: Variant, scores: Score) -> dict[int, float]:
    """The mean over tasks for each seed that has all of them."""
    found = {seed: [scores.get((task, variant, seed), np.nan) for task in TASKS] for seed in range(SEEDS)}
    return {seed: float(np.mean(each)) for seed, each in found.items() if not np.isnan(each).any()}


def _run(task: str, variant: Variant, seed: int) -> dict[str, object]:
    rep = learned(task)
    began = time.process_time()
    curve = trained(TASKS[task], rep, variant, seed)
    return {
        "task": task,
        **variant._asdict(),
        "seed": seed,
        **outcome(curve, time.process_time() - began, lapwing.__version__),
    }


@cache
def learned(name: str) -> lapwing.Representation:
    """φ of a task, one for all agents; kept in a file for when the benchmark is resumed."""
    file, task = LEARNED / f"{name}.safetensors", TASKS[name]
    if file.exists():
        return lapwing.load(file)
    policy = None if task.policy is None else task.policy(0)
    rep = lapwing.learn(task.make(), transitions=TRANSITIONS, policy=policy, **task.learn)
    LEARNED.mkdir(parents=True, exist_ok=True)
    rep.save(file)
    return rep


def trained(task: Task, rep: lapwing.Representation, variant: Variant, seed: int) -> list[float]:
    """The success of the greedy policy at each evaluation of a run."""
    import torch
    from stable_baselines3 import DQN
    from stable_baselines3.common.callbacks import BaseCallback

    torch.set_num_threads(1)
    starts = [shaped(task, None, SPARSE) for _ in range(STARTS)]
    curve = []

    class Watch(BaseCallback):
        def _on_step(self) -> bool:
            if self.num_timesteps % (task.steps // EVALUATIONS) == 0:
                curve.append(success(self.model, starts))
            return True

    settings = {"learning_starts": 200, "train_freq": 2, "target_update_interval": 250, "gamma": GAMMA}
    settings |= {"batch_size": 64, "exploration_fraction": 0.3, "learning_rate": 1e-3}
    settings |= {"policy_kwargs": {"net_arch": [64, 64]}}
    env = shaped(task, rep, variant)
    DQN("MlpPolicy", env, seed=seed, device="cpu", **settings).learn(task.steps, callback=Watch())
    return curve


def shaped(task: Task, rep: lapwing.Representation | None, variant: Variant) -> gymnasium.Env:
    """The task with its reward, and observations as vectors."""
    wrap = partial(
        lapwing.LaplacianReward, goal=task.goal, form=variant.form, gamma=GAMMA, radius=task.radius
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if rep is None or variant.form == "sparse":
            env = wrap(task.make())
        else:
            own = default_scale(rep, variant.form, variant.filter)
            env = wrap(task.make(), rep, filter=variant.filter, scale=own * variant.scale)
        if isinstance(env.observation_space, gymnasium.spaces.Dict):
            env = gymnasium.wrappers.FlattenObservation(env)
    return env


def success(model, starts: list[gymnasium.Env]) -> float:
    """The share of fixed starts from which the greedy policy comes to the goal before time is up."""
    seen = np.array([env.reset(seed=1_000 + number)[0] for number, env in enumerate(starts)])
    open_, reached = np.ones(len(starts), bool), np.zeros(len(starts), bool)
    while open_.any():
        actions, _ = model.predict(seen[open_], deterministic=True)
        for number, action in zip(np.flatnonzero(open_), actions, strict=True):
            seen[number], _, terminated, truncated, info = starts[number].step(int(action))
            reached[number] = info["goal_reached"]
            open_[number] = not (terminated or truncated or reached[number])
    return float(reached.mean())
