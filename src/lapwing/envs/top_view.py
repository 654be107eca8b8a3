"""Pictures of an arena from above: by MuJoCo's renderer, or drawn where there is no GL.

On a Linux machine without a display, `MUJOCO_GL=egl` or `osmesa` in the environment says that there is.
"""

import contextlib
import copy
import os
import sys
import warnings
from typing import Any

import numpy as np

from lapwing.envs.gridworld import AGENT, GOAL, GROUND, WALL
from lapwing.envs.simulator import Simulator, import_mujoco

PIXELS = 360
"""The longer side of a picture."""


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
