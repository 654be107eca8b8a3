"""Bodies in an arena, moved by MuJoCo: many at once, each as a row of numbers.

A row is MuJoCo's physical state (time, positions, velocities), and a step depends on it and the action alone:
the solver's memory of the last step is left out. So a row is all that a checkpoint must hold.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from lapwing.envs.arena import EPISODE_LENGTH, Arena, body_file
from lapwing.errors import ConfigError
from lapwing.settings.checks import check_size

ANT_POSE = np.array([0.75, 1, 0, 0, 0, *(0, 1) * 4])
"""Height, orientation as a quaternion, and hip and knee of each leg, where an Ant stands."""
TOGETHER = 64
"""How many bodies are simulated at once where there are many."""
WALL_HEIGHT = 0.5


def import_mujoco() -> Any:
    """MuJoCo, or a sentence that says how to get it."""
    try:
        import mujoco
        import mujoco.rollout
    except ImportError as error:
        raise ConfigError(
            "arenas need MuJoCo, which is not installed; pip install 'lapwing[mujoco]'"
        ) from error
    return mujoco


class Simulator:
    """MuJoCo's model of an arena; it holds no module, so that it can be copied.

    Example:
        >>> from lapwing.envs.arena import open_arena
        >>> simulator = Simulator(open_arena("PointUMaze"))
        >>> rows = simulator.at_rest(np.array([[-2.0, 2.0], [2.0, 0.0]]))
        >>> simulator.observe(simulator.step(rows, np.ones((2, 2)))).shape
        (2, 6)
    """

    def __init__(self, arena: Arena):
        """Compile the model."""
        self.arena = arena
        self.model = self._compiled()
        self.data = import_mujoco().MjData(self.model)

    def _compiled(self) -> Any:
        mujoco, body = import_mujoco(), self.arena.body
        spec = mujoco.MjSpec.from_file(str(body_file(body)))
        if self.arena.fast:
            spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
            spec.option.timestep = body.fast_timestep
        for x, y, half_width, half_height in self.arena.walls:
            spec.worldbody.add_geom(
                type=mujoco.mjtGeom.mjGEOM_BOX,
                pos=[x, y, WALL_HEIGHT],
                size=[half_width, half_height, WALL_HEIGHT],
                rgba=[0.23, 0.25, 0.29, 1],
            )
        spec.worldbody.add_site(
            type=mujoco.mjtGeom.mjGEOM_CYLINDER,
            pos=[*self.arena.goal, 0.01],
            size=[self.arena.goal_radius, 0.01, 0],
            rgba=[0.78, 0.24, 0.20, 1],
        )
        return spec.compile()

    @property
    def n_actions(self) -> int:
        """Numbers in an action, each in [-1, 1]."""
        return int(self.model.nu)

    @property
    def n_observations(self) -> int:
        """Numbers in an observation: positions and velocities."""
        return int(self.model.nq + self.model.nv)

    def at_rest(self, positions: np.ndarray, generator: np.random.Generator | None = None) -> np.ndarray:
        """Rows of bodies at these (x, y), with small random deviations of pose and velocity if asked for."""
        rows = np.zeros((len(positions), 1 + self.n_observations))
        rows[:, 1:3] = positions
        pose = rows[:, 3 : 1 + self.model.nq]
        velocity = rows[:, 1 + self.model.nq :]
        if self.arena.body.name == "Ant":
            pose[:] = ANT_POSE
        if generator is not None:
            pose += generator.uniform(-0.1, 0.1, pose.shape)
            velocity += 0.1 * generator.normal(size=velocity.shape)
        if self.arena.body.name == "Ant":
            pose[:, 1:5] /= np.linalg.norm(pose[:, 1:5], axis=1, keepdims=True)
        return rows

    def step(self, rows: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The rows one step of the environment later."""
        controls = np.clip(np.asarray(actions, np.float64), -1.0, 1.0)[:, None]
        states, _ = import_mujoco().rollout.rollout(
            self.model, self.data, rows, controls, nstep=self.arena.body.frame_skip
        )
        return states[:, -1]

    def step_one(self, row: np.ndarray, action: np.ndarray) -> np.ndarray:
        """A row one step of the environment later, by MuJoCo's own `mj_step`; `step` does it for many."""
        mujoco, data = import_mujoco(), self.data
        mujoco.mj_setState(self.model, data, row, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        data.qacc_warmstart[:] = 0.0
        data.ctrl[:] = np.clip(np.asarray(action, np.float64), -1.0, 1.0)
        for _ in range(self.arena.body.frame_skip):
            mujoco.mj_step(self.model, data)
        after = np.empty_like(row)
        mujoco.mj_getState(self.model, data, after, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        return after

    def some_states(self, count: int, seed: int) -> np.ndarray:
        """Observations of bodies all over the arena, after ten random actions."""
        generator = np.random.default_rng([seed, 2])
        rows = self.at_rest(self.arena.random_positions(count, generator), generator)
        for _ in range(10):
            rows = self.step(rows, generator.uniform(-1, 1, (count, self.n_actions)))
        return self.observe(rows)

    def observe(self, rows: np.ndarray) -> np.ndarray:
        """Positions, the heading of a Point wrapped to [-π, π], and velocities, in single precision."""
        seen = rows[:, 1:].copy()
        if self.arena.body.name == "Point":
            seen[:, 2] = (seen[:, 2] + np.pi) % (2 * np.pi) - np.pi
        return seen.astype(np.float32)


def random_episodes(
    simulator: Simulator, transitions: int, seed: int, on_progress: Callable[[int, int], None] | None = None
) -> np.ndarray:
    """Whole episodes of uniformly random actions from all over the arena, at least `transitions` steps.

    Returns:
        Observations, (episodes, steps + 1, numbers).
    """
    length = min(EPISODE_LENGTH, transitions)
    episodes = -(-transitions // length)
    check_size("transitions", 4 * episodes * (length + 1) * simulator.n_observations)
    seen = np.empty((episodes, length + 1, simulator.n_observations), np.float32)
    for begin in range(0, episodes, TOGETHER):
        generator = np.random.default_rng([seed, begin])
        count = min(TOGETHER, episodes - begin)
        rows = simulator.at_rest(simulator.arena.random_positions(count, generator), generator)
        seen[begin : begin + count, 0] = simulator.observe(rows)
        for step in range(length):
            rows = simulator.step(rows, generator.uniform(-1, 1, (count, simulator.n_actions)))
            seen[begin : begin + count, step + 1] = simulator.observe(rows)
        if on_progress:
            on_progress((begin + count) * length, episodes * length)
    return seen


def goal_observation(arena: Arena, *, whole: bool) -> np.ndarray:
    """(x, y) of the goal, or a whole state that achieves it: the body at rest there."""
    return _at_rest(arena, arena.goal[None], whole=whole)[0]


def point_observations(arena: Arena, *, whole: bool) -> np.ndarray:
    """(x, y) of each of the arena's points, or whole states of the body at rest there."""
    return _at_rest(arena, arena.points, whole=whole)


def _at_rest(arena: Arena, positions: np.ndarray, *, whole: bool) -> np.ndarray:
    if not whole:
        return positions.astype(np.float32)
    simulator = Simulator(arena)
    return simulator.observe(simulator.at_rest(positions))
