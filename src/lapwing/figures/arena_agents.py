"""The arenas and rewards that figures 5 and 8 compare, and one run of a DDPG agent on one of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lapwing.envs.arena import open_arena
from lapwing.figures.grid import Measure, Measured, Preset, Run, recipe
from lapwing.progress import OnProgress
from lapwing.runs.train_ddpg import QUICK_STEPS, ControlOutcome, control_recipe, train_control
from lapwing.settings.agents import CONTROL_PRESETS, RANDOM_STEPS, ControlSettings

REWARDS = ("sparse", "l2", "rawmix", "mix", "fullmix")
SHAPED = {"mix": "(x, y)", "fullmix": "the whole state"}
"""The rewards that φ shapes, and what it then sees."""

DEPARTURES = ("twin_critics", "action_penalty", "critic_rate", "target_rate")
"""Settings that are the paper's unless a preset says otherwise."""


@dataclass(frozen=True)
class Panel:
    """An arena of figure 5."""

    arena: str
    filter: str
    """Of φ's distance: the paper's soft where its distance leads to the goal, else commute."""
    steps: int
    """Of the agent."""
    quick_steps: int
    evaluate_every: int

    def steps_of(self, preset: Preset) -> int:
        """How long agents learn."""
        return self.steps if preset == "paper" else self.quick_steps


PANELS = (
    Panel("PointUMaze", "soft", 60_000, QUICK_STEPS["Point"], 2_000),
    Panel("PointHookMaze", "commute", 60_000, QUICK_STEPS["Point"], 2_000),
    Panel("AntUMaze", "commute", 2_000_000, QUICK_STEPS["Ant"], 20_000),
    Panel("AntHookMaze", "commute", 2_000_000, QUICK_STEPS["Ant"], 20_000),
)


def is_compared(preset: Preset, panel: Panel, reward: str, seed: int, *, online: bool = False) -> bool:
    """Whether the figures have this run; the preset quick has all.

    By the paper's settings one agent of the Ant takes 80 to 100 minutes, and all would take days.
    """
    if preset == "quick" or not panel.arena.startswith("Ant"):
        return True
    return panel.arena == "AntUMaze" and reward in ("sparse", "mix") and seed == 0 and not online


def arena_run(
    figure: str, preset: Preset, panel: Panel, reward: str, seed: int, *, online: bool = False
) -> Run:
    """A run of one curve with one seed."""
    shaped = reward in SHAPED
    agent: dict[str, Any] = {
        "preset": preset,
        "reward": reward,
        "steps": panel.steps_of(preset),
        "evaluate_every": panel.evaluate_every,
        "seed": seed,
    }
    if shaped:
        agent |= {"online": True} if online else {"filter": panel.filter}
    settings = ControlSettings.from_keywords(agent)
    phi = control_recipe(open_arena(panel.arena).body, settings) if shaped else None
    return Run(
        figure,
        panel.arena,
        "ddpg online" if online else "ddpg",
        "state" if reward == "fullmix" else "position",
        n=phi.transitions if phi and not online else 0,
        d=(phi.dim or 0) if phi else 0,
        beta=phi.beta if phi else None,
        lam=phi.lam if phi else None,
        reward=reward,
        seed=seed,
        preset=preset,
        recipe=recipe(agent=agent, more=_spelt_out(settings)),
    )


def _spelt_out(settings: ControlSettings) -> dict[str, Any]:
    """What the preset sets, so that a run is known by it."""
    names = ["hidden", "fast", "random_steps", "gamma", "batch"]
    values = settings.as_json() | {"random_steps": settings.random_steps or RANDOM_STEPS}
    names += [name for name in DEPARTURES if getattr(settings, name) != getattr(ControlSettings, name)]
    known = {name: values[name] for name in names}
    return known | ({"relative_values": True} if settings.has_relative_values else {})


def about_preset(preset: Preset) -> list[str]:
    """What the preset makes of the paper's settings, in words."""
    if preset == "paper":
        return [
            "Agents and φ have the paper's settings; the simulation takes RK4. The Ant then takes 80 to 100 "
            "minutes of a core a run, so there are only sparse and mix in AntUMaze, one seed; the preset "
            "quick has the other rewards, maze and seeds.",
            "",
        ]
    quick = CONTROL_PRESETS["quick"]
    penalty = f"a penalty of {quick.action_penalty:g} on the square of the actor's outputs"
    hidden = " x ".join(str(width) for width in quick.hidden)
    return [
        f"Shortened: actor and critic have hidden layers of {hidden}, not 400 x 300; the simulation takes "
        "the integrator implicitfast, not RK4; φ has fewer data and steps (300,000 and 20,000, not 576,000 "
        "and 50,000). **DDPG departs from the paper**, for every reward alike: values relative to those of "
        f"standing still, two critics (the lower value is the target, of a smoothed action), {penalty}, "
        f"critic rate {quick.critic_rate:g}, target rate {quick.target_rate:g}.",
        "",
    ]


def execute(run: Run, folder: Path, on_progress: OnProgress) -> Measured:
    """Learn φ if the reward needs it, and train the agent."""
    outcome = train_control(
        open_arena(run.environment),
        ControlSettings.from_keywords(run.settings["agent"]),
        folder,
        resume=(folder / "config.json").is_file(),
        on_progress=on_progress,
    )
    return Measured(_measures(run, outcome), outcome.result["train_seconds"])


def _measures(run: Run, outcome: ControlOutcome) -> list[Measure]:
    result = outcome.result
    measures = []
    for metric, values in (("success", result["successes"]), ("distance", result["final_distances"])):
        steps = zip(result["evaluated_at"], values, strict=True)
        measures += [Measure(metric, round(value, 4), step) for step, value in steps]
    measures += [Measure(name, result[name]) for name in ("gate", "gate_l2") if name in result]
    if run.seed == 0 and outcome.representation is not None:
        measures += [
            Measure("map", round(float(value), 4), place) for place, value in enumerate(outcome.goal_map())
        ]
    return [*measures, Measure("compile_seconds", result["compile_seconds"])]
