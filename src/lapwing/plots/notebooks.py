"""The HTML display of objects in notebooks: a title, a table, and a small figure.

Names may hold anything, so all text is escaped.
"""

import base64
import io
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lapwing.plots.overview import draw_representation
from lapwing.plots.plans import draw_landmarks

if TYPE_CHECKING:
    from lapwing.laplacian.representation import Representation
    from lapwing.reaching.reacher import Reacher
    from lapwing.solving.model import Policy

DOTS_PER_INCH = 55
NONE = 1e-9
"""An eigenvalue below this is 0 but for rounding."""
SHOWN = 6
"""So many eigenvalues."""


def representation_html(representation: "Representation") -> str:
    """Eigenfunctions over a maze or an arena, or else the embedding; and what it is."""
    config, values = representation.config, representation.eigenvalues
    more = ", …" if len(values) > SHOWN else ""
    trusted = config.get("trusted")
    rows = {
        "eigenfunctions": representation.dim,
        "eigenvalues": ", ".join(f"{value:.3g}" for value in np.where(values > NONE, values, 0)[:SHOWN])
        + more,
        "observations": f"of shape {representation.shape}, {representation.spec.name} encoder",
        "distances": ", ".join(representation.distances),
        "look at it": "lapwing.explore(rep)",
    }
    if trusted is not None:
        rows["trusted"] = f"{len(trusted)} of {representation.dim}"
    title = f"Representation of {config.get('target', 'data')}"
    return as_html(title, rows, draw_representation(representation))


def reacher_html(reacher: "Reacher") -> str:
    """Landmarks and the edges between them, where they are positions; and what it is."""
    graph, seen = reacher.graph, reacher.landmarks.observations
    parts = len(np.unique(graph.parts))
    rows = {
        "landmarks": graph.count,
        "edges": f"{len(graph.steps):,}",
        "parts": "all joined" if parts == 1 else parts,
        "aims": f"{reacher.ahead:.3g} steps ahead",
        "observations": f"of shape {reacher.places.shape}",
    }
    figure = None
    if seen.ndim == 2 and seen.shape[1] == 2:
        figure = draw_landmarks(seen, np.stack([graph.begins, graph.ends], axis=1), graph.parts)
    return as_html(f"Reacher of {reacher.config.get('target', 'data')}", rows, figure)


def policy_html(policy: "Policy") -> str:
    """How much the policy of a reward expects, as a histogram over states; and what it is."""
    values = policy.q_table.max(axis=1)
    rows = {
        "states": f"{len(values):,}",
        "actions": policy.q_table.shape[1],
        "discount": f"{policy.gamma:g}",
        "value": f"{values.min():.3g} to {values.max():.3g}, {values.mean():.3g} in the mean",
        "states with a reward": int(np.count_nonzero(policy.rewards)),
    }
    figure = Figure(figsize=(5, 2.6), layout="constrained")
    axis = figure.subplots()
    axis.hist(values[np.isfinite(values)], bins=30)
    axis.set(xlabel="value", ylabel="states")
    axis.spines[["top", "right"]].set_visible(False)
    return as_html("Policy", rows, figure)


def as_html(title: str, rows: Mapping[str, Any], figure: Figure | None) -> str:
    """A table and a picture beside each other.

    Example:
        >>> as_html("<b>", {"a": 1}, None)
        '<div><strong>&lt;b&gt;</strong><table><tr><th>a</th><td>1</td></tr></table></div>'
    """
    cells = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in rows.items()
    )
    picture = "" if figure is None else f'<img alt="{escape(title)}" src="{_picture(figure)}">'
    return f"<div><strong>{escape(title)}</strong><table>{cells}</table>{picture}</div>"


def _picture(figure: Figure) -> str:
    figure.set_dpi(DOTS_PER_INCH)
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
