"""The rewards that figures 1 and 4 compare, and one run of a DQN agent on one of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lapwing.envs.gridworld import GridWorld
from lapwing.figures.grid import Measure, Measured, Preset, Run, recipe
from lapwing.figures.statistics import Range
from lapwing.mazes import read_maze
from lapwing.progress import OnProgress
from lapwing.runs.train_dqn import AgentOutcome, train_agent
from lapwing.settings.agents import AgentSettings
from lapwing.settings.learn import PRESETS, LearnSettings
from lapwing.shaping.rewards import SHAPED_BY_PHI
from lapwing.shaping.tasks import GridTask, grid_task

MAZES = ("OneRoom", "TwoRoom", "HardMaze")
EVALUATE_EVERY = 500
AUDITED = (
    *("correlation", "local_optima", "flat", "astray", "greedy_success", "lookahead"),
    *("best_return", "contrast"),
)
"""What a run keeps of its reward's audit."""


@dataclass(frozen=True)
class ComparedReward:
    """A reward of figure 4, and its curve."""

    reward: str
    """How the table knows it."""
    label: str
    form: str
    betas: Mapping[str, float] = field(default_factory=dict)
    """β of the paper's φ in each maze; empty for lapwing's φ, or none at all."""

    @property
    def learns_phi(self) -> bool:
        """Whether the reward is shaped by φ."""
        return self.form in SHAPED_BY_PHI


COMPARED = (
    ComparedReward("sparse", "sparse", "sparse"),
    ComparedReward("l2", "l2", "l2"),
    ComparedReward("rawmix", "rawmix", "rawmix"),
    ComparedReward("mix", "mix (the paper's β: 5)", "mix", dict.fromkeys(MAZES, 5.0)),
    ComparedReward(
        "mix-low-beta",
        "mix (β of the authors' later code: 2.5, 2.5, 0.5)",
        "mix",
        dict(zip(MAZES, (2.5, 2.5, 0.5), strict=True)),
    ),
    ComparedReward("commute", "mix of commute distance (ours)", "mix"),
    ComparedReward("potential", "potential of commute distance (ours)", "potential"),
)
QUICK_AGENT: dict[str, Any] = {"hidden": (64, 64), "steps": 40_000}
QUICK_PHI: dict[str, Any] = {"estimator": "exact", "steps": 2_000}
"""How the preset quick shortens the paper's settings: a much smaller Q, which is several times quicker and
needs some more steps; φ has the same loss and network, but the loss in exact expectation over the data."""


@cache
def task_of(maze: str) -> GridTask:
    """The maze with its own goal."""
    return grid_task(GridWorld(read_maze(maze)))


def return_range(maze: str) -> Range:
    """From the return of an agent that never reaches the goal to the optimal one."""
    return -float(task_of(maze).episode_length), task_of(maze).optimal_return


def phi_recipe(preset: Preset, beta: float) -> dict[str, Any]:
    """The paper's φ, as settings of learning."""
    return {"preset": "paper-shaping", "beta": beta} | (QUICK_PHI if preset == "quick" else {})


def about_recipe(preset: Preset) -> list[str]:
    """What the preset makes of the paper's settings, in words."""
    ours = (
        "Ours are the mix with the commute distance of lapwing's φ, scaled to a mean distance to the goal of "
        "1, and γΦ(s') - Φ(s) added to the sparse reward, Φ being minus that distance in steps. Every φ is "
        "learned from 30,000 random steps."
    )
    if preset == "paper":
        return [f"Agents and the φ of mix have the paper's settings. {ours}", ""]
    hidden = " x ".join(str(width) for width in QUICK_AGENT["hidden"])
    return [
        f"Shortened: Q has hidden layers of {hidden} and takes {QUICK_AGENT['steps']:,} steps, not 256 x 256 "
        "x 256 and 30,000; the φ of mix has the paper's loss and network, but the loss in exact expectation "
        f"over the data, {QUICK_PHI['steps']:,} steps. {ours}",
        "",
    ]


def maze_run(figure: str, preset: Preset, maze: str, curve: ComparedReward, seed: int) -> Run:
    """A run of one curve with one seed."""
    agent: dict[str, Any] = {"reward": curve.form, "seed": seed, "evaluate_every": EVALUATE_EVERY}
    agent |= QUICK_AGENT if preset == "quick" else {}
    paper, beta = PRESETS["paper-shaping"], curve.betas.get(maze)
    phi: dict[str, Any] | None = None
    if beta is not None:
        phi = phi_recipe(preset, beta)
    elif curve.learns_phi:
        phi = {"transitions": paper.transitions}
    return Run(
        figure,
        maze,
        "dqn",
        "position",
        n=paper.transitions if phi else 0,
        d=20 if phi else 0,
        beta=beta,
        lam=paper.lam if beta else None,
        reward=curve.reward,
        seed=seed,
        preset=preset,
        recipe=recipe(agent=agent, phi=phi),
    )


def execute(run: Run, folder: Path, on_progress: OnProgress) -> Measured:
    """Learn φ if the reward needs it, audit the reward, and train the agent."""
    agent, phi = run.settings["agent"], run.settings["phi"]
    settings = AgentSettings(**(agent | {"hidden": tuple(agent["hidden"])} if "hidden" in agent else agent))
    outcome = train_agent(
        run.environment,
        settings,
        folder,
        recipe=LearnSettings.from_keywords(phi or {}),
        resume=(folder / "config.json").is_file(),
        on_progress=on_progress,
    )
    return Measured(_measures(run, outcome), outcome.result["train_seconds"])


def _measures(run: Run, outcome: AgentOutcome) -> list[Measure]:
    result = outcome.result
    measures = [
        Measure("return", value, step)
        for step, value in zip(result["evaluated_at"], result["returns"], strict=True)
    ]
    measures += [
        Measure(name, float(result["audit"][name])) for name in AUDITED if result["audit"][name] is not None
    ]
    if run.seed == 0 and run.settings["phi"]:
        assert outcome.shaped is not None
        distances = outcome.shaped.to.latent
        measures += [Measure("distance", float(value), state) for state, value in enumerate(distances)]
    return [*measures, Measure("compile_seconds", result["compile_seconds"])]
