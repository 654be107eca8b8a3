"""Environments that end at the goal: what φ makes of their data, and an agent of the reward by φ.

Three ways to collect: as the environment ends; with the last state repeated, as an absorbing end would have
it; and past the end. `follow` goes downhill on the distance in a continuous maze; `agents` trains SB3's DQN,
as `default_reward` does, whose runs where nothing ends are what these are compared with.
"""

import time
import warnings
from contextlib import suppress
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import lapwing
from benchmarks.default_reward import CHOSEN, LEARNED, SEEDS, TRANSITIONS, learned, read_scores, trained
from benchmarks.goal_tasks import TASKS, EndsAtGoal, ending
from benchmarks.rows import Row
from benchmarks.run_table import RunTable, markdown, outcome, put_into, share_interval
from lapwing.envs.plane import open_plane
from lapwing.figures.statistics import mean_interval, paired_interval

PAGE = Path("docs/your_environment.md")
TABLE = RunTable(
    Path("results/ends.csv"), ("task", "data", "seed", "score", "last", "curve", "seconds", "version")
)
FOLLOWED = RunTable(Path("results/ends_follow.csv"), ("data", "share", "version"))
REPEATS = 20
ENDS, REPEATED, PAST = "as it ends", f"the last state {REPEATS} times more", "past the end"
COLLECTED = {
    ENDS: lambda env: env,
    REPEATED: lambda env: lapwing.AbsorbingEnd(env, REPEATS),
    PAST: lapwing.PastTermination,
}
FILES = {ENDS: "ends", REPEATED: "repeated", PAST: "past"}
SHOWN = {ENDS: "as it ends", REPEATED: f"with the last state repeated {REPEATS} times", PAST: "past the end"}
"""In tables."""
IN = ("TwoRoom", "HardMaze", "PlaneTwoRoom", "PointMaze_UMaze")
"""The tasks in which a DQN learns something within its steps, but for MountainCar, which is no maze."""
MAZE, STEPS, STARTS, DIRECTIONS = "PlaneHardMaze", 500, 100, 16
"""Of following: the maze, whose goal ends an episode within a cell; steps of an episode and of who follows;
starts; and moves to choose from."""
Score = dict[tuple[str, str, int], float]


def measure(part: str) -> list[Row]:
    return _measure_following() if part == "follow" else _measure_agents()


def _measure_following() -> list[Row]:
    for data in COLLECTED:
        if data not in read_followed():
            share = followed(_learned_in_plane(data))
            FOLLOWED.append({"data": data, "share": share, "version": lapwing.__version__})
    claims = {data: f"{MAZE}, collected {data}: starts from which following arrives" for data in COLLECTED}
    return [Row(claims[data], share) for data, share in read_followed().items()]


def read_followed() -> dict[str, float]:
    """The share of starts from which following arrives, by the data, as far as it is in the table."""
    return {row["data"]: float(row["share"]) for row in FOLLOWED.read()}


def _learned_in_plane(data: str) -> lapwing.Representation:
    plane = open_plane(MAZE)
    goal = np.asarray(plane.goal, np.float32)
    env = gymnasium.make(f"lapwing/{MAZE}-v0", max_episode_steps=STEPS)
    env = EndsAtGoal(lapwing.LaplacianReward(env, goal=goal, radius=plane.cell, form="sparse"))
    return _kept(f"{MAZE}-follow", data, COLLECTED[data](env))


def followed(rep: lapwing.Representation) -> float:
    """The share of starts from which the distance, followed downhill, leads to the goal."""
    plane = open_plane(MAZE)
    angles = np.arange(DIRECTIONS) * 2 * np.pi / DIRECTIONS
    moves = np.tile(np.stack([np.sin(angles), np.cos(angles)], axis=1), (STARTS, 1))
    at, goal = plane.sample_starts(STARTS, np.random.default_rng(0)), np.asarray(plane.goal, np.float32)
    arrived = np.zeros(STARTS, bool)
    for _ in range(STEPS):
        there = plane.step(np.repeat(at, DIRECTIONS, axis=0), moves)
        away = rep.distance(there.astype(np.float32), goal, filter="commute").reshape(STARTS, DIRECTIONS)
        best = there.reshape(STARTS, DIRECTIONS, 2)[np.arange(STARTS), away.argmin(axis=1)]
        at = np.where(arrived[:, None], at, best)
        arrived |= np.linalg.norm(at - goal, axis=1) <= plane.cell
    return float(arrived.mean())


def _measure_agents() -> list[Row]:
    """Every run that is missing; an interrupt ends it with the rows so far."""
    with suppress(KeyboardInterrupt):
        for seed, data, task in product(range(SEEDS), COLLECTED, IN):
            if (task, data, seed) not in read_ends():
                TABLE.append(_run(task, data, seed))
    return rows(read_ends())


def read_ends() -> Score:
    """The score of each run that is in the table."""
    return {(row["task"], row["data"], int(row["seed"])): float(row["score"]) for row in TABLE.read()}


def rows(scores: Score) -> list[Row]:
    """By task and data the mean, and how far it is below that of the task where nothing ends."""
    found = []
    for task, data in product(IN, COLLECTED):
        own, never = _by_seed(scores, task, data), _never(task)
        if own:
            lead = paired_interval(own, never)
            note = f"seeds: {len(own)}; above the task that does not end by {lead}"
            found.append(
                Row(f"{task}, collected {data}: mean success", mean_interval([*own.values()]).mean, note=note)
            )
    return found


def write_docs() -> None:
    """Put both tables into the page on environments."""
    shares = [[f"collected {SHOWN[data]}", f"{share:.0%}"] for data, share in read_followed().items()]
    put_into(PAGE, "ends-follow", markdown(["the data", f"of {STARTS} starts"], shares))
    scores = read_ends()
    lines = [[f"does not end ({SEEDS} seeds)", *(share_interval([*_never(task).values()]) for task in IN)]]
    for data in COLLECTED:
        each = [_by_seed(scores, task, data) for task in IN]
        if all(each):
            lines.append(
                [
                    f"ends; collected {SHOWN[data]} ({min(map(len, each))} seeds)",
                    *(share_interval([*own.values()]) for own in each),
                ]
            )
    put_into(PAGE, "ends", markdown(["the environment", *IN], lines))


def _by_seed(scores: Score, task: str, data: str) -> dict[int, float]:
    return {seed: scores[task, data, seed] for seed in range(SEEDS) if (task, data, seed) in scores}


def _never(task: str) -> dict[int, float]:
    """The same agent where the goal ends nothing, by seed."""
    return {
        seed: score
        for (name, variant, seed), score in read_scores().items()
        if (name, variant) == (task, CHOSEN)
    }


def _run(name: str, data: str, seed: int) -> dict[str, object]:
    rep, began = _learned(name, data), time.process_time()
    curve = trained(ending(TASKS[name]), rep, CHOSEN, seed)
    about = {"task": name, "data": data, "seed": seed}
    return about | outcome(curve, time.process_time() - began, lapwing.__version__)


@cache
def _learned(name: str, data: str) -> lapwing.Representation:
    """φ of what was collected in a task that ends; past the end it is that of the task that does not."""
    if data == PAST:
        return learned(name)
    task = ending(TASKS[name])
    return _kept(name, data, COLLECTED[data](task.make()), **task.learn)


def _kept(name: str, data: str, env: gymnasium.Env, **settings: Any) -> lapwing.Representation:
    """φ of an environment, in a file for when the benchmark is resumed."""
    file = LEARNED / f"{name}-{FILES[data]}.safetensors"
    if not file.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rep = lapwing.learn(env, transitions=TRANSITIONS, **settings)
        LEARNED.mkdir(parents=True, exist_ok=True)
        rep.save(file)
    return lapwing.load(file)
