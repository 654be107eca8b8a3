"""Environments, registered with Gymnasium when lapwing is imported."""

import gymnasium

from lapwing.mazes import ARENAS, BENCHMARK, BODY_NAMES, BUILT_IN, PLANE

GRIDWORLD = "lapwing.envs.gridworld:GridWorldEnv"
PLANES = "lapwing.envs.plane:PlaneEnv"
CONTROL = "lapwing.envs.arena_env:ControlEnv"
CONTROL_VECTOR = "lapwing.envs.arena_env:ControlVectorEnv"


def register_environments() -> None:
    """Make `gymnasium.make("lapwing/FourRoom-v0")` and its like work.

    `lapwing/Maze-v0` takes any maze, `lapwing/PlaneMaze-v0` any as a plane, `lapwing/PointMaze-v0` and
    `lapwing/AntMaze-v0` any as an arena.
    """
    for name in BUILT_IN:
        _register(f"lapwing/{name}-v0", GRIDWORLD, 50, {"maze": name})
        _register(f"lapwing/{PLANE}{name}-v0", PLANES, 50, {"maze": name})
    for name in BENCHMARK:
        _register(f"lapwing/{name}-v0", GRIDWORLD, 50, {"maze": name})
    _register("lapwing/Maze-v0", GRIDWORLD, 50, {})
    _register(f"lapwing/{PLANE}Maze-v0", PLANES, 50, {})
    for body in BODY_NAMES:
        for name in ARENAS:
            _register(f"lapwing/{body}{name}-v0", CONTROL, 300, {"body": body, "maze": name}, CONTROL_VECTOR)
        _register(f"lapwing/{body}Maze-v0", CONTROL, 300, {"body": body}, CONTROL_VECTOR)


def _register(env_id: str, one: str, steps: int, kwargs: dict, many: str | None = None) -> None:
    if env_id not in gymnasium.registry:
        gymnasium.register(
            env_id, entry_point=one, max_episode_steps=steps, kwargs=kwargs, vector_entry_point=many
        )
