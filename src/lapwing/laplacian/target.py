"""A target: experience to learn from, and the true chain to compare with, if known."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lapwing.data.collect import Policy, Progress
from lapwing.data.experience import Experience
from lapwing.data.memory_map import BYTES_AT_ONCE
from lapwing.data.minari import MinariData
from lapwing.data.observations import View
from lapwing.data.ogbench import OGBenchData
from lapwing.data.open import check_settings, open_experience
from lapwing.data.shards import is_sharded
from lapwing.data.shrink import shrinking_of
from lapwing.data.source import DataFile, GymEnv, Source, read_source
from lapwing.envs.arena import Arena
from lapwing.envs.gridworld import GridWorld
from lapwing.envs.make import Env, env_name
from lapwing.envs.plane import Plane
from lapwing.envs.simulator import goal_observation
from lapwing.errors import ConfigError, DatasetError
from lapwing.laplacian.chain import Chain, empirical_chain, graph_chain, true_chain
from lapwing.laplacian.closed_form import LEAST_SCORED, VALIDATION, Study
from lapwing.laplacian.cost import announce
from lapwing.laplacian.shards import Shards, open_shards
from lapwing.mazes import Maze
from lapwing.settings.learn import LearnSettings

Data = DataFile | MinariData | OGBenchData | Experience | GymEnv | Env
MOST_ENUMERATED = 5_000
"""Up to this many distinct observations of data are states."""
KNOWN_IMAGES = 0.95
"""Images are states, if so large a share of those in some of the episodes is in the others too."""
FINE_CHAIN = "finely discretised chain"
HELD_OUT = 0.1
"""The share of episodes that continuous states are measured on and not learned from."""
LEAST_TO_HOLD_OUT = 100
"""Of fewer transitions nothing is held out, unless it is asked for."""
FINENESS = 6
"""Into how many parts a cell of a plane is divided each way, for the chain that counts as the true one."""


@dataclass(frozen=True, eq=False)
class Target:
    """Experience to learn from, or a maze's own chain; with a maze, the true one to compare with."""

    name: str
    experience: Experience | None
    world: GridWorld | None = None
    states: np.ndarray | None = None
    """The observation of each state, where the states are enumerated."""
    file: Path | None = None
    """The data file that the experience was read from."""
    arena: Arena | None = None
    """The arena that a body moved through."""
    plane: Plane | None = None
    """The plane that a point moved through."""
    held_out: float = 0.0
    """The share of the experience that is held out to measure on."""
    graph: Any = None
    """The weights of a graph over `states`, where the walk on it is what is learned from."""
    shards: Shards | None = None
    """What sums are over, where the experience is a sample of it."""
    bounds: tuple[tuple[float, float], ...] | None = None
    """Of each feature, as the observation space of an environment declares them."""
    _eigenpairs: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict, init=False)
    _studies: dict[tuple[int, int], Study] = field(default_factory=dict, init=False)

    @property
    def n_states(self) -> int | None:
        """How many states are enumerated, or None."""
        return None if self.states is None else len(self.states)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The shape of one observation."""
        if self.states is not None:
            return self.states.shape[1:]
        assert self.experience is not None
        return self.experience.observation_shape

    @property
    def different_observations(self) -> np.ndarray:
        """Every observation of the data, those of enumerated states once."""
        if self.states is not None:
            return self.states
        return self.learned_from.observations

    @property
    def extends_eigenvectors(self) -> bool:
        """Whether closed-form extends eigenvectors of the states: of a graph, or of images that recur."""
        images = self.states is not None and self.states.ndim == 4
        return self.graph is not None or (images and self.world is None)

    @property
    def n_transitions(self) -> int | None:
        """How many transitions are learned from or measured on; None where there is no experience."""
        if self.shards is not None:
            return self.shards.n_transitions
        return None if self.experience is None else self.experience.n_transitions

    @cached_property
    def _split(self) -> tuple[Experience, Experience]:
        assert self.experience is not None
        if self.shards is not None:
            return self.shards.sample
        return self.experience.split(self.held_out)

    @property
    def learned_from(self) -> Experience:
        """The experience without what is held out."""
        assert self.experience is not None
        return self._split[0] if self.held_out else self.experience

    @property
    def held_out_episodes(self) -> Experience:
        """The episodes that are not learned from."""
        return self._split[1]

    @cached_property
    def one_step(self) -> Chain:
        """The chain that is learned from: the counts of the experience, or the true one."""
        if self.experience is not None:
            return empirical_chain(self.experience)
        if self.graph is not None:
            return graph_chain(self.graph)
        assert self.world is not None
        return true_chain(self.world.transition_matrix())

    def eigenpairs(self, dim: int) -> tuple[np.ndarray, np.ndarray]:
        """The exact eigenpairs of `one_step`, as many as there are up to `dim`; computed once."""
        known = max(self._eigenpairs, default=0)
        if dim > known:
            visited = int(np.sum(self.one_step.rho > 0))
            self._eigenpairs.clear()
            self._eigenpairs[dim] = self.one_step.eigenpairs(min(dim, visited))
        values, functions = self._eigenpairs[max(dim, known)]
        return values[:dim], functions[:, :dim]

    def study(self, dim: int, seed: int) -> Study:
        """What closed-form looks at; made once, for of images it takes long."""
        if (dim, seed) not in self._studies:
            self._studies.clear()
            self._studies[dim, seed] = Study(self.learned_from, dim, seed, max(dim, LEAST_SCORED))
        return self._studies[dim, seed]

    def folded(self, folds: int) -> tuple["Target", Experience]:
        """The same without every `folds`-th episode, and those episodes."""
        assert self.experience is not None
        episode = np.arange(self.experience.n_episodes)
        rest = self.experience.episodes(episode % folds != 0)
        held_out = self.experience.episodes(episode % folds == 0)
        return dataclasses.replace(self, experience=rest, shards=None), held_out

    def truth(self) -> Chain | None:
        """The true one-step chain under the uniformly random policy, where there is a maze."""
        if self.plane is not None:
            transition = self.plane.transition_matrix(FINENESS)
            states = len(self.plane.points(FINENESS))
            uniform = np.full(states, 1 / states)  # for it is symmetric
            return dataclasses.replace(true_chain(transition, rho=uniform), name=FINE_CHAIN)
        return None if self.world is None else true_chain(self.world.transition_matrix())

    def reference_states(self) -> np.ndarray | None:
        """The states of `truth()`, or those of the data, as φ sees them; None where none can be listed."""
        if self.plane is not None:
            return self.plane.points(FINENESS).astype(np.float32)
        return self.states

    def goal_observation(self) -> np.ndarray:
        """What φ sees at the goal of the arena."""
        assert self.arena is not None
        return goal_observation(self.arena, whole=self.observation_shape[0] > 2)

    def typical_observations(self, seed: int) -> np.ndarray:
        """Every state once, or ten thousand observations where states are not enumerated; fewer if large."""
        if self.states is not None:
            return self.states
        a_row = self.learned_from.observe(np.zeros(1, int)).nbytes
        return self.some_observations(min(10_000, max(500, BYTES_AT_ONCE // a_row)), seed)

    def some_transitions(self, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Both ends of `count` steps, drawn as the data or the chain has them."""
        generator = np.random.default_rng(seed)
        if self.experience is not None:
            seen = self.learned_from
            places = seen.transitions(generator.integers(seen.n_transitions, size=count))
            return seen.observe(places), seen.observe(places + 1)
        assert self.states is not None
        steps = sparse.coo_array(self.one_step.weights)
        drawn = generator.choice(steps.nnz, count, p=steps.data / steps.data.sum())
        return self.states[steps.row[drawn]], self.states[steps.col[drawn]]

    def some_observations(self, count: int, seed: int) -> np.ndarray:
        """`count` observations drawn as the data has them."""
        generator = np.random.default_rng(seed)
        if self.experience is not None:
            seen = self.learned_from
            return seen.observe(np.sort(generator.integers(len(seen.observations), size=count)))
        assert self.states is not None
        return self.states[np.sort(generator.choice(len(self.states), count, p=self.one_step.rho))]


def open_target(
    source: str | Path | Source | Iterable[Any],
    settings: LearnSettings,
    *,
    policy: Policy | None = None,
    collected: Path | None = None,
    on_progress: Progress | None = None,
) -> Target:
    """Load or collect the experience of `source`.

    Args:
        source: a maze's name or file, an arena's or a plane's name, an .npz file, `gym:ENV_ID`,
            `minari:NAME`, an environment, episodes, a `Maze` or an `Experience`.
        settings: what to observe and how much to collect.
        policy: the policy in an environment; None is random.
        collected: a file in which an earlier start of the same run may have saved its experience.
        on_progress: called with (done, all) while steps are taken.
    """
    source = read_source(source)
    check_settings(source, settings, policy)
    if isinstance(source, Maze):
        _refuse_held_out(settings)
        check_dim(settings.dim or 1, int(source.floor.sum()))  # before steps are taken
        if settings.true_chain:
            return _of_maze(source, settings, None)
    if isinstance(source, DataFile) and is_sharded(source.path):
        return _of_shards(source, settings)
    views: list[View] = []

    def on_view(view: View) -> None:
        views.append(view)
        announce(view.shape, settings.transitions, settings, view.shrinking)

    experience = open_experience(
        source,
        settings,
        policy=policy,
        collected=collected,
        on_progress=on_progress,
        on_view=on_view,
    )
    if isinstance(source, Maze):
        return _of_maze(source, settings, experience)
    if isinstance(source, Arena):
        return _with_held_out(Target(source.name, experience, arena=source), settings)
    if isinstance(source, Plane):
        return _with_held_out(Target(source.name, experience, plane=source), settings)
    target = _of_data(source, experience, settings)
    return dataclasses.replace(target, bounds=views[0].bounds) if views else target


def check_dim(dim: int, states: int) -> None:
    """Refuse more eigenfunctions than there are states."""
    if dim > states:
        raise ConfigError(f"dim must be between 1 and {states} states, not {dim}; lower --dim")


def _of_maze(maze: Maze, settings: LearnSettings, experience: Experience | None) -> Target:
    world = GridWorld(maze, settings.stay)
    states = world.observations(settings.observation)
    return Target(maze.name, experience, world, states)


def _of_data(source: Data, experience: Experience, settings: LearnSettings) -> Target:
    name, file = _name_and_file(source)
    if not isinstance(source, GymEnv | Env):  # whose images were made smaller as it was stepped
        experience = _with_small_images(experience, settings)
    experience = _enumerated(experience, settings)
    if experience.n_states is not None and len(np.unique(experience.observations)) < 2:
        raise DatasetError(
            f"all observations of {name} are the same, as far as float32 can tell, so there is nothing to "
            "learn; look at the data, and subtract the mean of features that are far from 0"
        )
    return _with_held_out(Target(name, experience, None, experience.table, file), settings)


def _of_shards(source: DataFile, settings: LearnSettings) -> Target:
    """A sample of continuous observations, and the shards that this process sums over."""
    share = settings.held_out
    if share is None:
        share = HELD_OUT if settings.preset == "default" else 0.0
    shards = open_shards(source.path, share, settings.image_size, settings.seed)
    learned_from, held_out = shards.sample
    sample = learned_from if not share else learned_from.joined(held_out)
    return Target(source.path.name, sample, file=source.path, held_out=share, shards=shards)


def _enumerated(experience: Experience, settings: LearnSettings) -> Experience:
    """With states, if they recur; images must do so from one episode to another.

    Eigenvectors of images that were seen say little of others. Where these come up often, functions that are
    fitted to pairs and chosen on validation episodes say more: of MiniGrid's FourRooms, whose doors move, the
    sum of eigenvalues on new episodes is 3.87 by these and 5.55 by eigenvectors (20,000 transitions).
    """
    found = experience.tabulated(MOST_ENUMERATED)
    asked = settings.estimator == "exact" or settings.encoder not in (None, "bumps")
    if found.table is None or found.table.ndim < 4 or asked or settings.preset != "default":
        return found
    if found.n_episodes < 2:
        return found
    before, after = found.split(VALIDATION)
    known = np.isin(after.observations, before.observations)
    return found if known.mean() >= KNOWN_IMAGES else experience


def _with_small_images(experience: Experience, settings: LearnSettings) -> Experience:
    """Images no larger than the settings say, and a word on it."""
    shrinking = shrinking_of(experience.observation_shape, settings.image_size)
    shape = shrinking.shrunk_shape if shrinking else experience.observation_shape
    announce(shape, len(experience.observations), settings, experience.shrinking or shrinking)
    return experience.with_shrunk_images(settings.image_size)


def _name_and_file(source: Data) -> tuple[str, Path | None]:
    if isinstance(source, DataFile):
        return source.path.stem, source.path
    if isinstance(source, MinariData | OGBenchData):
        return source.name, source.path
    if isinstance(source, Experience):
        return "experience", None
    return source.env_id if isinstance(source, GymEnv) else env_name(source), None


def _with_held_out(target: Target, settings: LearnSettings) -> Target:
    """Continuous states with a share of the episodes held out, as the settings say or as seems best."""
    share = settings.held_out
    assert target.experience is not None
    if target.states is not None:
        _refuse_held_out(settings)
        return target
    if share is None:
        share = HELD_OUT if settings.preset == "default" else 0.0
        share *= target.experience.n_transitions >= LEAST_TO_HOLD_OUT
    split = dataclasses.replace(target, held_out=share)
    few = share and (len(target.experience.observations) < 8 or len(split.held_out_episodes.observations) < 4)
    if few and settings.held_out is not None:
        raise DatasetError(
            f"held_out={share:g} holds out too few of {len(target.experience.observations)} observations "
            "to measure on; raise it, or set it to 0"
        )
    return target if few else split


def _refuse_held_out(settings: LearnSettings) -> None:
    if settings.held_out:
        raise ConfigError(
            f"held_out={settings.held_out:g} only works with continuous states, and these are enumerated; "
            "leave it out"
        )
