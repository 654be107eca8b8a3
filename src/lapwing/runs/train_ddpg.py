"""Training DDPG in an arena: `lapwing train PointUMaze`.

Collect with random actions, learn φ, check that its distance leads to the goal, then train; or learn φ
together with the agent.
"""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from lapwing._version import __version__
from lapwing.agents.agent import ControlAgent, load_agent
from lapwing.agents.ddpg import act_now
from lapwing.agents.ddpg_arena import ControlTraining, Reward, train_in_arena
from lapwing.agents.evaluation import EvaluationEpisodes, evaluate_policy, steps_to_success
from lapwing.data.experience import Experience
from lapwing.envs.arena import Arena, Body, make_arena, parse_arena
from lapwing.envs.simulator import Simulator, goal_observation, point_observations
from lapwing.errors import ConfigError, LapwingWarning, warn
from lapwing.laplacian.choose import resolve
from lapwing.laplacian.coverage import Coverage, warn_if_thin
from lapwing.laplacian.encoders import EncoderSpec, fit_encoder
from lapwing.laplacian.evaluate import path_correlations
from lapwing.laplacian.learn import represent
from lapwing.laplacian.representation import Representation, load_representation
from lapwing.laplacian.target import Target
from lapwing.progress import OnProgress, report_begin, uncounted, within
from lapwing.runs.folder import RunFolder
from lapwing.runs.train import (
    Phi,
    check_online_filter,
    finished_run,
    given_or_learned,
    learn_phi,
    run_agent,
)
from lapwing.settings.agents import RANDOM_STEPS, ControlSettings, ResolvedControl
from lapwing.settings.learn import PRESETS, Distance, LearnSettings, RewardForm
from lapwing.shaping.online import LAM_FINAL, OnlinePhi, PhiLearner
from lapwing.shaping.rewards import FORMS, Goal, GoalReward, Step, relative

GATE = 0.85
"""From this rank correlation with the shortest path to the goal on, φ's distance leads there."""
GATE_STATES = 1_000
"""The rank correlation is over so many states."""
QUICK_STEPS = {"Point": 60_000, "Ant": 300_000}
"""How long an agent learns in the preset quick."""
QUICK_PHI: dict[str, Any] = {"transitions": 300_000, "steps": 20_000}
"""How the preset quick shortens the paper's φ."""


class ControlOutcome(NamedTuple):
    """What a run gives: the agent, its measures, the arena, φ if there is one, and evaluation episodes."""

    agent: ControlAgent
    result: dict[str, Any]
    arena: Arena
    representation: Representation | None
    episodes: EvaluationEpisodes

    def goal_map(self) -> np.ndarray:
        """φ's distance to the goal from each of the arena's points."""
        assert self.representation is not None
        settings = ControlSettings.from_json(self.result["settings"])
        whole = settings.reward == "fullmix"
        states = point_observations(self.arena, whole=whole)
        goal = goal_observation(self.arena, whole=whole)
        return self.representation.distance(states, goal, settings.filter or "soft")


def train_control(
    source: Arena,
    settings: ControlSettings,
    out: Path | None,
    *,
    representation: Phi | None = None,
    overwrite: bool = False,
    resume: bool = False,
    on_progress: OnProgress | None = None,
) -> ControlOutcome:
    """Train a DDPG agent in an arena, in a run folder if one is named."""
    asked, settings = settings.filter, _resolved(settings, source.body)
    arena = make_arena(
        source.body,
        source.maze,
        goal=settings.goal_cell or source.goal_cell,
        cell=settings.cell or source.cell,
        fast=settings.fast,
    )
    phi = _phi(arena, settings, representation)
    if isinstance(phi, Representation) and "commute" not in phi.filters:
        settings = dataclasses.replace(settings, filter=_only_soft(asked))
    simulator = Simulator(arena)
    work = partial(_train, simulator, settings, phi, on_progress)
    return run_agent(arena, settings, phi, work, reopen_control, out, overwrite=overwrite, resume=resume)


def reopen_control(out: Path) -> ControlOutcome:
    """A finished run in an arena, its policy evaluated again."""
    folder = finished_run(out)
    arena, agent = parse_arena(folder.config()["target"]), load_agent(folder.agent)
    assert isinstance(agent, ControlAgent)
    phi = load_representation(folder.representation) if folder.representation.is_file() else None
    episodes = evaluate_policy(Simulator(arena), partial(act_now, agent.actor))
    found = episodes.measures()
    result = {"success": found["success"], "final_distance": found["distance"]}
    return ControlOutcome(agent, folder.result() | result, arena, phi, episodes)


def control_recipe(body: Body, settings: ControlSettings) -> LearnSettings:
    """How φ is learned: by the paper's recipe for this body, shortened in the preset quick."""
    return dataclasses.replace(
        PRESETS["paper-control"],
        lam=body.lam,
        learning_rate=body.learning_rate,
        observation="state" if settings.reward == "fullmix" else "position",
        seed=settings.seed,
        **(QUICK_PHI if settings.preset == "quick" else {}),
    )


def form_of(reward: str) -> RewardForm:
    """The form of a reward: fullmix is mix, with φ of the whole state."""
    form: Any = "mix" if reward == "fullmix" else reward
    return form


def uses_phi(settings: ControlSettings) -> bool:
    """Whether the reward is shaped."""
    return settings.reward in ("laplacian", "mix", "fullmix")


def _resolved(settings: ControlSettings, body: Body) -> ResolvedControl:
    """The settings with nothing left open that matters; options that would do nothing are refused."""
    if not uses_phi(settings):
        for name in ("filter", "online"):
            if getattr(settings, name):
                raise ConfigError(f"reward {settings.reward!r} uses no φ; leave --{name} out")
    check_online_filter(settings)
    filter_: Distance | None = None
    if uses_phi(settings):
        filter_ = settings.filter or ("soft" if settings.online else "commute")
    steps = QUICK_STEPS[body.name] if settings.preset == "quick" else body.steps
    whole = settings.in_whole_rounds
    chosen = {
        "filter": filter_,
        "critic_rate": settings.critic_rate or body.learning_rate,
        "random_steps": settings.random_steps or whole(RANDOM_STEPS),
        "steps": settings.steps or whole(steps),
        "evaluate_every": settings.evaluate_every or whole(body.evaluate_every),
    }
    return ResolvedControl(**(vars(settings) | chosen))


def _phi(
    arena: Arena, settings: ControlSettings, representation: Phi | None
) -> Representation | LearnSettings | None:
    """φ as it is given, or how to learn it, or None if it is not needed."""
    if not uses_phi(settings):
        if representation is not None:
            raise ConfigError(f"reward {settings.reward!r} uses no φ; leave --representation out")
        return None
    phi = given_or_learned(representation, control_recipe(arena.body, settings), online=settings.online)
    if isinstance(phi, Representation):
        _check_fits(phi, arena, settings)
    return phi


def _only_soft(asked: Distance | None) -> Distance:
    """The filter of a φ whose columns were not rotated."""
    if asked not in (None, "soft"):
        raise ConfigError(
            f"filter {asked!r} needs single eigenfunctions, and this representation has none; "
            "leave --filter out, or learn it with rotation"
        )
    return "soft"


def _check_fits(phi: Representation, arena: Arena, settings: ControlSettings) -> None:
    """A φ of another body, maze, scale or input is refused by what differs; the integrator matters little."""
    learned, here = phi.config.get("arena"), arena.description()
    if learned is None:
        raise ConfigError(
            f"the representation was learned on {phi.config.get('target')}, which is no arena; "
            f"{_how_to_learn(arena)}"
        )
    for name, words in (("body", "body"), ("text", "maze"), ("cell", "cell")):
        if learned[name] != here[name]:
            was, is_ = (learned["name"], here["name"]) if name == "text" else (learned[name], here[name])
            raise ConfigError(
                f"the representation was learned with another {words}: {was}, not {is_}; "
                f"{_how_to_learn(arena)}"
            )
    wanted = "state" if settings.reward == "fullmix" else "position"
    sees = phi.config["settings"]["observation"]
    if sees != wanted:
        raise ConfigError(
            f"the representation sees {sees}, and reward {settings.reward!r} needs {wanted}; "
            f"{_how_to_learn(arena, f' --observation {wanted}')}"
        )


def _how_to_learn(arena: Arena, more: str = "") -> str:
    """The command that learns a fitting φ; of cells as wide as these, only training does."""
    if arena.cell != arena.body.cell:
        return "leave --representation out, and φ is learned in this arena first"
    return f"learn one with lapwing learn {arena.target}{more}"


def goal_of(arena: Arena, settings: ControlSettings) -> Goal:
    """The ball round the goal; with a whole state that achieves it, for fullmix."""
    whole = settings.reward == "fullmix"
    return Goal(
        z=goal_observation(arena, whole=False),
        radius=arena.goal_radius,
        h=position_of,
        state=goal_observation(arena, whole=True) if whole else None,
    )


def position_of(observations: Any) -> Any:
    """h: (x, y) of observations."""
    return observations[..., :2]


def _train(
    simulator: Simulator,
    settings: ResolvedControl,
    phi: Representation | LearnSettings | None,
    on_progress: OnProgress | None,
    folder: RunFolder | None,
) -> ControlOutcome:
    arena, goal = simulator.arena, goal_of(simulator.arena, settings)
    form, representation, gate = form_of(settings.reward), None, {}
    on_chunk = within("training", on_progress)
    learn_agent = partial(train_in_arena, simulator, settings, checkpoints=folder, on_chunk=on_chunk)
    if settings.online:
        assert isinstance(phi, LearnSettings)
        report_begin(on_chunk, settings.steps)
        online = _online(simulator, phi, form, goal, settings)
        training = learn_agent(online)
        representation = _represented(arena, phi, online, training)
        gate = _gate(representation, simulator, settings)
    else:
        is_recipe = isinstance(phi, LearnSettings)
        representation = learn_phi(folder, arena, phi, on_progress) if is_recipe else phi
        if representation is not None:
            with uncounted("evaluating", on_progress):
                gate = _gate(representation, simulator, settings)
            _warn_of_gate(**gate)
            _warn_of_thin_goal(representation, arena, settings)
        report_begin(on_chunk, settings.steps)
        training = learn_agent(_reward_of(_goal_reward(form, goal, representation, settings), settings))
    if representation is not None and folder is not None:
        representation.save(folder.representation)
    result = gate | {
        "target": arena.name,
        "reward": settings.reward,
        "success": float(training.success[-1]),
        "final_distance": float(training.distance[-1]),
        "steps_to_success": steps_to_success(training.evaluated_at, training.success),
        "evaluated_at": training.evaluated_at.tolist(),
        "successes": training.success.tolist(),
        "final_distances": training.distance.tolist(),
        "train_seconds": training.seconds,
        "compile_seconds": training.compile_seconds,
        "settings": settings.as_json(),
        "version": __version__,
    }
    config = {"target": arena.name, "arena": arena.description(), "settings": settings.as_json()}
    agent = ControlAgent(training.actor, training.spec, config)
    with uncounted("evaluating", on_progress):
        episodes = evaluate_policy(simulator, partial(act_now, training.actor))
    return ControlOutcome(agent, result, arena, representation, episodes)


def _goal_reward(
    form: RewardForm, goal: Goal, phi: Representation | None, settings: ControlSettings
) -> GoalReward:
    """The reward by φ's distance, whose mean is that of φ as it was learned, whatever the filter."""
    if phi is None or settings.filter is None:
        return GoalReward(form, goal)
    hitting = settings.filter == "hitting"  # which alone has a scale of its own
    scale = phi.soft_distance / phi.mean_distance("hitting") if hitting else 1.0
    return GoalReward(form, goal, phi, settings.filter, scale=scale)


def _reward_of(reward: GoalReward, settings: ControlSettings) -> Reward:
    """The reward of steps, as an agent of these settings is given it; where it begins is seldom looked at."""

    def of(observations: np.ndarray, following: np.ndarray) -> np.ndarray:
        there = reward.distances(following)
        if not settings.has_relative_values:
            return FORMS[reward.form](Step(there, there))
        return relative(reward.form, Step(reward.distances(observations), there, gamma=settings.gamma))

    return of


def _gate(representation: Representation, simulator: Simulator, settings: ControlSettings) -> dict[str, Any]:
    """The rank correlation of φ's distance with the shortest path to the goal, and that of l2."""
    states = simulator.some_states(GATE_STATES, settings.seed)
    whole, arena = settings.reward == "fullmix", simulator.arena
    if not whole:
        states = position_of(states)
    goal, ways = goal_observation(arena, whole=whole), arena.path_lengths(states[:, :2])
    found = path_correlations(representation, states, goal, ways)
    assert settings.filter is not None
    return {"gate": found[settings.filter], "gate_l2": found["l2"]}


def _warn_of_gate(gate: float, gate_l2: float) -> None:
    if gate < max(GATE, gate_l2):
        warn(
            f"φ's distance has a rank correlation of {gate:.2f} with the shortest path to the goal, and it "
            f"should be at least {GATE} and above that of l2, {gate_l2:.2f}: try another --filter, or narrow "
            "the cells",
            LapwingWarning,
        )


def _warn_of_thin_goal(phi: Representation, arena: Arena, settings: ControlSettings) -> None:
    """Say so if φ has hardly seen the goal."""
    assert settings.filter is not None
    goal = phi.coordinates(goal_observation(arena, whole=settings.reward == "fullmix"), settings.filter)
    remedy = "raise --random-steps, or give a --representation of data that comes to the goal"
    warn_if_thin(Coverage.of(phi, settings.filter), goal, remedy, stacklevel=4)


def _online(
    simulator: Simulator, recipe: LearnSettings, form: RewardForm, goal: Goal, settings: ControlSettings
) -> OnlinePhi:
    """An untrained φ, which standardises like states all over the arena."""
    states = simulator.some_states(GATE_STATES, recipe.seed)
    seen = position_of(states) if goal.state is None else states
    assert recipe.dim is not None
    assert recipe.hidden is not None
    spec = EncoderSpec("mlp", seen.shape[1:], recipe.dim, hidden=recipe.hidden)
    key = jax.random.fold_in(jax.random.key(recipe.seed), 5)
    encoder = fit_encoder(spec, seen, standardise=True, bandwidth=None, key=key)
    gamma = settings.gamma if settings.has_relative_values else None
    return OnlinePhi(PhiLearner.of(recipe), encoder, form, goal, gamma)


def _represented(
    arena: Arena, recipe: LearnSettings, online: OnlinePhi, training: ControlTraining
) -> Representation:
    """φ as it was at the end, with its eigenfunctions over the states of the replay."""
    assert training.phi is not None
    seen = np.asarray(online.sees(training.seen))
    whole = training.lengths > 1  # an episode that has just begun holds no transition
    flat = seen.reshape(-1, seen.shape[-1])[np.repeat(whole, training.lengths)]
    target = Target(arena.name, Experience(flat, training.lengths[whole]), arena=arena)
    settings = resolve(dataclasses.replace(recipe, lam_final=LAM_FINAL), target)
    spec = EncoderSpec("mlp", seen.shape[2:], settings.dim, hidden=settings.hidden)
    return represent(target, settings, training.phi, spec)
