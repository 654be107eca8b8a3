"""Environments, registered with Gymnasium when lapwing is imported."""

import gymnasium

from lapwing.mazes import BUILT_IN


def register_environments() -> None:
    """Make `gymnasium.make("lapwing/FourRoom-v0")` and its like work; `lapwing/Maze-v0` takes any maze."""
    for name in BUILT_IN:
        _register(f"lapwing/{name}-v0", kwargs={"maze": name})
    _register("lapwing/Maze-v0", kwargs={})


def _register(env_id: str, kwargs: dict) -> None:
    if env_id not in gymnasium.registry:
        gymnasium.register(
            env_id,
            entry_point="lapwing.envs.gridworld:GridWorldEnv",
            max_episode_steps=50,
            kwargs=kwargs,
        )
