"""Robots in an arena, simulated by MuJoCo, many at once, each as a row of numbers; and rendered from above.

A row is MuJoCo's physical state (time, positions, velocities). A step depends only on the row and the action:
the solver's warm start is not used. So a row is all that a checkpoint must hold.

Images come from MuJoCo's renderer, or are drawn if there is no GL. On a Linux machine without a display, set
`MUJOCO_GL=egl` or `osmesa` if GL is available.
"""

import contextlib
import copy
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lapwing.envs.arena import EPISODE_LENGTH, Arena
from lapwing.envs.gridworld import AGENT, GOAL, GROUND, WALL
from lapwing.errors import ConfigError
from lapwing.settings.checks import check_size

ANT_POSE = np.array([0.75, 1, 0, 0, 0, *(0, 1) * 4])
"""Height, orientation as a quaternion, and hip and knee of each leg, where an Ant stands."""
TOGETHER = 64
"""How many bodies are simulated at once where there are many."""
WALL_HEIGHT = 0.5
PIXELS = 360
"""The longer side of a picture."""


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
        spec = mujoco.MjSpec.from_file(str(Path(__file__).with_name(body.file)))
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

    def overturned(self, rows: np.ndarray) -> np.ndarray:
        """Which bodies lie on their back: an Ant whose torso is tilted by more than a right angle."""
        if self.arena.body.name != "Ant":
            return np.zeros(len(rows), bool)
        _, x, y, _ = rows[:, 4:8].T  # the torso's orientation, a unit quaternion
        return 1 - 2 * (x**2 + y**2) < 0

    def observe(self, rows: np.ndarray) -> np.ndarray:
        """Positions, the heading of a Point wrapped to [-π, π], and velocities, in single precision."""
        seen = rows[:, 1:].copy()
        if self.arena.body.name == "Point":
            seen[:, 2] = (seen[:, 2] + np.pi) % (2 * np.pi) - np.pi
        return seen.astype(np.float32)


def random_episodes(
    simulator: Simulator, transitions: int, seed: int, on_progress: Callable[[int, int], None] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Whole episodes of uniformly random actions from all over the arena, at least `transitions` steps.

    Returns:
        Observations, (episodes, steps + 1, numbers), and actions, (episodes, steps, numbers).
    """
    length = min(EPISODE_LENGTH, transitions)
    episodes = -(-transitions // length)
    numbers = simulator.n_observations + simulator.n_actions
    check_size("transitions", 4 * episodes * (length + 1) * numbers)
    seen = np.empty((episodes, length + 1, simulator.n_observations), np.float32)
    taken = np.empty((episodes, length, simulator.n_actions), np.float32)
    for begin in range(0, episodes, TOGETHER):
        generator = np.random.default_rng([seed, begin])
        count = min(TOGETHER, episodes - begin)
        rows = simulator.at_rest(simulator.arena.random_positions(count, generator), generator)
        seen[begin : begin + count, 0] = simulator.observe(rows)
        for step in range(length):
            actions = generator.uniform(-1, 1, (count, simulator.n_actions))
            rows = simulator.step(rows, actions)
            seen[begin : begin + count, step + 1] = simulator.observe(rows)
            taken[begin : begin + count, step] = actions
        if on_progress:
            on_progress((begin + count) * length, episodes * length)
    return seen, taken


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


class TopView:
    """Draws rows of a simulator; `gl` says whether MuJoCo's renderer does it."""

    def __init__(self, simulator: Simulator, *, gl: bool | None = None):
        """`gl=None` takes MuJoCo's renderer where there is one."""
        self._simulator = simulator
        self._data = import_mujoco().MjData(simulator.model)
        walls = simulator.arena.walls
        low, high = (walls[:, :2] - walls[:, 2:]).min(axis=0), (walls[:, :2] + walls[:, 2:]).max(axis=0)
        # Of the walls round the floor, half a cell is enough to see.
        self._low, self._high = low + simulator.arena.cell / 2, high - simulator.arena.cell / 2
        width, height = self._high - self._low
        self._size = tuple(round(PIXELS * side / max(width, height)) for side in (height, width))
        self._renderer: Any = self._gl_renderer() if gl is not False else None
        if gl and self._renderer is None:
            raise RuntimeError("MuJoCo's renderer needs GL, and there is none here")
        self.gl = self._renderer is not None

    def __call__(self, row: np.ndarray) -> np.ndarray:
        """The body as the row has it: (height, width, 3) bytes."""
        mujoco, model, data = import_mujoco(), self._simulator.model, self._data
        mujoco.mj_setState(model, data, row, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        mujoco.mj_forward(model, data)
        return self._rendered() if self._renderer is not None else self._drawn()

    def __deepcopy__(self, memo: dict[int, Any]) -> "TopView":
        """Another view: a renderer cannot be copied."""
        return TopView(copy.deepcopy(self._simulator, memo), gl=self.gl)

    def close(self) -> None:
        """Free the renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def _gl_renderer(self) -> Any:
        if not gl_is_likely():
            return None
        with warnings.catch_warnings(), contextlib.suppress(Exception):  # without GL it raises many things
            warnings.simplefilter("ignore")
            return import_mujoco().Renderer(self._simulator.model, *self._size)
        return None

    def _rendered(self) -> np.ndarray:
        mujoco = import_mujoco()
        camera = mujoco.MjvCamera()
        camera.type = mujoco.mjtCamera.mjCAMERA_FREE
        camera.orthographic = 1
        camera.azimuth, camera.elevation, camera.distance = 90, -90, 1.2 * self._simulator.arena.size
        camera.lookat[:2] = (self._low + self._high) / 2
        self._simulator.model.vis.global_.fovy = self._high[1] - self._low[1]
        self._renderer.update_scene(self._data, camera)
        return self._renderer.render()

    def _drawn(self) -> np.ndarray:
        """Walls, goal, and every part of the body as the stroke that it is from above."""
        arena, (height, width) = self._simulator.arena, self._size
        x = np.linspace(self._low[0], self._high[0], width)
        y = np.linspace(self._high[1], self._low[1], height)
        points = np.stack(np.meshgrid(x, y), axis=-1)
        picture = np.where(arena.on_floor(points)[..., None], GROUND, WALL).astype(np.uint8)
        picture[np.linalg.norm(points - arena.goal, axis=-1) <= arena.goal_radius] = GOAL
        model, data = self._simulator.model, self._data
        sphere = import_mujoco().mjtGeom.mjGEOM_SPHERE
        for geom in range(model.ngeom):
            if model.geom_bodyid[geom] == 0:
                continue
            radius, half = model.geom_size[geom][:2]
            is_sphere = model.geom_type[geom] == sphere
            axis = data.geom_xmat[geom].reshape(3, 3)[:2, 2] * (0.0 if is_sphere else half)
            shade = 0.6 if is_sphere else 1.0
            picture[_near_stroke(points, data.geom_xpos[geom][:2], axis, radius)] = np.multiply(AGENT, shade)
        return picture


def gl_is_likely() -> bool:
    """Whether there is something to render with: without it MuJoCo may end the whole process."""
    if os.environ.get("MUJOCO_GL"):
        return os.environ["MUJOCO_GL"] not in ("off", "disable", "disabled", "false", "0")
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _near_stroke(points: np.ndarray, middle: np.ndarray, half: np.ndarray, radius: float) -> np.ndarray:
    """Which points lie within `radius` of the segment middle ± half."""
    away = points - middle
    length = half @ half
    along = np.clip(away @ half / length, -1, 1) if length > 0 else np.zeros(points.shape[:-1])
    return np.linalg.norm(away - along[..., None] * half, axis=-1) <= radius
