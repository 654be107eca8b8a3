"""All figures. Each function returns a Matplotlib figure; `save_figure` writes it as PNG and SVG."""

from lapwing.plots.benchmark import draw_shortfalls
from lapwing.plots.curves import Curve, draw_columns, draw_panels
from lapwing.plots.files import save_animation, save_figure
from lapwing.plots.options import draw_diffusion, draw_options, draw_rides
from lapwing.plots.overview import draw_representation
from lapwing.plots.plans import (
    draw_landmarks,
    draw_plan,
    draw_steps_to,
    draw_success_table,
    draw_walks,
    walk_frames,
)
from lapwing.plots.reaching import (
    OnlinePanel,
    arena_column,
    draw_arena_maps,
    draw_online,
    draw_paths,
    draw_reaching,
    draw_strip,
    draw_success,
)
from lapwing.plots.representations import (
    draw_distances,
    draw_distances_over_features,
    draw_eigenfunctions,
    draw_learning,
    draw_observations,
    draw_over_features,
    draw_scatter,
    draw_spectrum,
    draw_trials,
    telling_features,
    title_of,
)
from lapwing.plots.shaping import (
    draw_audits,
    draw_goal_maps,
    draw_policy,
    draw_returns,
    maze_column,
    policy_frames,
)
from lapwing.plots.solving import draw_solution

__all__ = [
    "Curve",
    "OnlinePanel",
    "arena_column",
    "draw_arena_maps",
    "draw_audits",
    "draw_columns",
    "draw_diffusion",
    "draw_distances",
    "draw_distances_over_features",
    "draw_eigenfunctions",
    "draw_goal_maps",
    "draw_landmarks",
    "draw_learning",
    "draw_observations",
    "draw_online",
    "draw_options",
    "draw_over_features",
    "draw_panels",
    "draw_paths",
    "draw_plan",
    "draw_policy",
    "draw_reaching",
    "draw_representation",
    "draw_returns",
    "draw_rides",
    "draw_scatter",
    "draw_shortfalls",
    "draw_solution",
    "draw_spectrum",
    "draw_steps_to",
    "draw_strip",
    "draw_success",
    "draw_success_table",
    "draw_trials",
    "draw_walks",
    "maze_column",
    "policy_frames",
    "save_animation",
    "save_figure",
    "telling_features",
    "title_of",
    "walk_frames",
]
