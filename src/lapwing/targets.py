"""What can be learned from: mazes by name or file, data files, Gymnasium environments, or arrays."""

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np

from lapwing.chain import DENSE_LIMIT, Chain, empirical_chain, true_chain
from lapwing.envs.arena import Arena, open_arena, parse_arena
from lapwing.envs.gridworld import GridWorld
from lapwing.envs.simulator import Simulator, random_episodes
from lapwing.errors import ConfigError, DatasetError, nearest
from lapwing.experience import Experience, Progress, collect, collect_walks, load_experience
from lapwing.mazes import BUILT_IN, Maze, arena_names, is_arena, parse_maze, read_maze
from lapwing.settings import PRESETS, LearnSettings
from lapwing.storage import file_sha256


@dataclass(frozen=True)
class DataFile:
    """An .npz file of experience."""

    path: Path


@dataclass(frozen=True)
class GymEnv:
    """A Gymnasium environment by its id."""

    env_id: str


Source = Maze | Arena | DataFile | GymEnv | Experience


@dataclass(frozen=True, eq=False)
class Target:
    """Experience to learn from, or a maze's own chain; with a maze, the truth to compare with."""

    name: str
    experience: Experience | None
    world: GridWorld | None = None
    states: np.ndarray | None = None
    """The observation of each state, where the states are enumerated."""
    file: Path | None = None
    """The data file that the experience was read from."""
    arena: Arena | None = None
    """The arena that a body moved through."""
    _eigenpairs: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

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

    def chain(self, lam: float = 0.0) -> Chain:
        """The chain that is learned from: the counts of the experience, or the true one."""
        if self.experience is not None:
            return empirical_chain(self.experience, lam)
        assert self.world is not None
        return true_chain(self.world.transition_matrix(), lam)

    @cached_property
    def one_step(self) -> Chain:
        """`chain()` of one step, computed once."""
        return self.chain()

    def eigenpairs(self, dim: int) -> tuple[np.ndarray, np.ndarray]:
        """The exact eigenpairs of `one_step`, as many as there are up to `dim`; computed once."""
        if dim not in self._eigenpairs:
            visited = int(np.sum(self.one_step.rho > 0))
            self._eigenpairs[dim] = self.one_step.eigenpairs(min(dim, visited))
        return self._eigenpairs[dim]

    def held_out(self, folds: int) -> tuple["Target", Experience]:
        """The same without every `folds`-th episode, and those episodes."""
        assert self.experience is not None
        episode = np.arange(self.experience.n_episodes)
        rest = self.experience.episodes(episode % folds != 0)
        return dataclasses.replace(self, experience=rest, _eigenpairs={}), self.experience.episodes(
            episode % folds == 0
        )

    def truth(self) -> Chain | None:
        """The true one-step chain under the uniformly random policy, where there is a maze."""
        return None if self.world is None else true_chain(self.world.transition_matrix())

    def typical_observations(self, seed: int) -> np.ndarray:
        """Every state once, or ten thousand observations where states are not enumerated."""
        return self.some_observations(10_000, seed) if self.states is None else self.states

    def some_steps(self, count: int, seed: int) -> np.ndarray:
        """`count` differences s' - s between successive observations."""
        assert self.experience is not None
        followed = np.flatnonzero(self.experience.horizons > 0)
        places = np.random.default_rng(seed).choice(followed, count)
        return self.experience.observe(places + 1) - self.experience.observe(places)

    def some_observations(self, count: int, seed: int) -> np.ndarray:
        """`count` observations drawn as the data has them."""
        generator = np.random.default_rng(seed)
        if self.experience is not None:
            places = generator.integers(len(self.experience.observations), size=count)
            return self.experience.observe(np.sort(places))
        assert self.states is not None
        return self.states[np.sort(generator.choice(len(self.states), count, p=self.one_step.rho))]


def read_source(source: str | Path | Source) -> Source:
    """What a name means: a maze, a data file or `gym:ENV_ID`; an unknown one is refused with the nearest."""
    if isinstance(source, Source):
        return source
    if not isinstance(source, str | Path):
        raise ConfigError(
            f"a target must be a name, a path or an Experience, not {type(source).__name__}; "
            "make arrays an Experience with lapwing.Experience.from_episodes([...])"
        )
    text, path = str(source), Path(source)
    if text.startswith("gym:"):
        return GymEnv(text.removeprefix("gym:"))
    if text in BUILT_IN:
        return read_maze(text)
    if is_arena(text):
        return open_arena(text)
    if _is_file(path):
        return DataFile(path) if path.suffix in (".npz", ".npy") else read_maze(path)
    if _is_file(path / "config.json"):
        raise ConfigError(
            f"{text} is a run folder; lapwing evaluate {text} measures it, "
            f"lapwing learn TARGET --out {text} --resume goes on with it"
        )
    if path.suffix == ".npz":
        raise ConfigError(f"no data file {path}; check the path")
    if text.startswith("minari:"):
        raise ConfigError(
            f"target {text!r}: Minari data sets are not read yet; save the observations as .npz"
        )
    raise ConfigError(
        f"unknown target {text!r}: it is neither a maze nor a file; "
        f"{nearest(text, (*BUILT_IN, *arena_names()))} "
        "(or give the path of a maze .txt or a data .npz, or gym:ENV_ID)"
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # no file can have such a name
        return False


def describe(source: Source) -> dict[str, Any]:
    """A source as config.json names it, in full: a maze by its text, data by its SHA-256."""
    if isinstance(source, Maze):
        return {"kind": "maze", "name": source.name, "text": source.text}
    if isinstance(source, Arena):
        return {"kind": "arena"} | source.description()
    if isinstance(source, GymEnv):
        return {"kind": "gym", "env_id": source.env_id}
    if isinstance(source, DataFile):
        path = source.path.resolve()
        return {"kind": "data", "path": str(path), "sha256": file_sha256(path)}
    return {"kind": "experience", "sha256": source.sha256()}


def recall(description: dict[str, Any], collected: Path) -> Source:
    """The source that `describe` described; `collected` is where a run keeps experience from memory."""
    kind = description.get("kind")
    if kind == "maze":
        return parse_maze(description["text"], name=description["name"])
    if kind == "arena":
        return parse_arena(description)
    if kind == "gym":
        return GymEnv(description["env_id"])
    if kind == "experience":
        return load_experience(collected)
    path = Path(description["path"])
    if not path.is_file() or file_sha256(path) != description["sha256"]:
        raise DatasetError(
            f"{path} is no longer the file that was learned from; put it back to evaluate the run"
        )
    return DataFile(path)


def open_target(
    source: str | Path | Source,
    settings: LearnSettings,
    *,
    collected: Path | None = None,
    on_progress: Progress | None = None,
) -> Target:
    """Read or collect what `source` names.

    Args:
        source: a maze's name or file, an arena's name, an .npz file, `gym:ENV_ID`, a `Maze` or an
            `Experience`.
        settings: what to observe and how much to collect.
        collected: where an earlier start of the same run may have put what it collected.
        on_progress: called with (done, all) while an environment is stepped.
    """
    source = read_source(source)
    if settings.true_chain and not isinstance(source, Maze):
        raise ConfigError("true_chain needs a maze, and this target is none; leave --true-chain out")
    _refuse_what_does_not_apply(source, settings)
    again = load_experience(collected) if collected and collected.is_file() else None
    if isinstance(source, Maze):
        return _target_of_world(GridWorld(source, settings.stay), settings, again)
    if isinstance(source, Arena):
        experience = again or _experience_of_arena(source, settings, on_progress)
        return Target(source.name, experience, arena=source)
    if isinstance(source, Experience):
        return _target_of_data("experience", source)
    if isinstance(source, DataFile):
        return _target_of_data(source.path.stem, load_experience(source.path), source.path)
    experience = again or _experience_of_env(source.env_id, settings, on_progress)
    return _target_of_data(source.env_id, experience)


def _refuse_what_does_not_apply(source: Source, settings: LearnSettings) -> None:
    """An option that would do nothing is a misunderstanding."""
    if isinstance(source, Maze):
        return
    names = ["episode_length", "stay"]
    if isinstance(source, Arena):
        _check_seen_in_arena(settings)
    else:
        names.append("observation")
    if not isinstance(source, GymEnv | Arena):
        names.append("transitions")
    for name in names:
        value = getattr(settings, name)
        if value != getattr(PRESETS[settings.preset], name):
            kind = "an environment" if isinstance(source, GymEnv | Arena) else "data"
            fitting = "mazes and environments" if name == "transitions" else "mazes"
            raise ConfigError(
                f"{name}={value!r} goes with {fitting}, and this target is {kind}; leave it out"
            )


def _check_seen_in_arena(settings: LearnSettings) -> None:
    if settings.observation not in ("position", "state"):
        raise ConfigError(
            f"observation must be position or state in an arena, not {settings.observation!r}; "
            "position is (x, y), state all positions and velocities"
        )


def _experience_of_arena(arena: Arena, settings: LearnSettings, on_progress: Progress | None) -> Experience:
    states = random_episodes(Simulator(arena), settings.transitions, settings.seed, on_progress)
    seen = states[..., :2] if settings.observation == "position" else states
    return Experience(seen.reshape(-1, seen.shape[-1]), np.full(len(seen), seen.shape[1]))


def _target_of_world(world: GridWorld, settings: LearnSettings, experience: Experience | None) -> Target:
    if settings.observation == "state":
        raise ConfigError("observation 'state' goes with arenas; of a maze φ sees index, position or image")
    states = world.observations(settings.observation)
    if settings.true_chain:
        return Target(world.maze.name, None, world, states)
    if experience is None:
        key = jax.random.fold_in(jax.random.key(settings.seed), 0)
        experience = collect_walks(
            world,
            settings.observation,
            settings.transitions,
            episode_length=settings.episode_length,
            key=key,
        )
    return Target(world.maze.name, experience, world, states)


def _target_of_data(name: str, experience: Experience, file: Path | None = None) -> Target:
    experience = experience.tabulated(DENSE_LIMIT)
    return Target(name, experience, None, experience.table, file)


def make_env(env_id: str) -> gymnasium.Env:
    """A Gymnasium environment by its id; an unknown one is refused with the nearest."""
    if env_id not in gymnasium.registry:
        raise ConfigError(f"unknown Gymnasium environment {env_id!r}; {_nearest_env(env_id)}")
    try:
        return gymnasium.make(env_id)
    except Exception as error:  # an environment's constructor may raise anything
        raise ConfigError(f"Gymnasium cannot make {env_id}: {error}") from error


def _experience_of_env(env_id: str, settings: LearnSettings, on_progress: Progress | None) -> Experience:
    env = make_env(env_id)
    try:
        return collect(env, settings.transitions, seed=settings.seed, on_progress=on_progress)
    finally:
        env.close()


def _nearest_env(env_id: str) -> str:
    hint = nearest(env_id, gymnasium.registry)
    return hint if hint.startswith("did") else "gymnasium.pprint_registry() lists them"
