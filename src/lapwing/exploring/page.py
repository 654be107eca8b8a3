"""One HTML file with everything inside: the program, the style, and the data of a representation.

The program's modules are files in `web/`. They are joined into one by leaving out `export`; none imports
another, and all names at their top levels differ.
"""

import json
import re
from functools import cache
from importlib import resources
from typing import Any

import matplotlib
import numpy as np

from lapwing.plots.style import DISTANCES, DIVERGING, REWARDS

PROGRAM = (
    *(
        "arrays",
        "forward",
        "distances",
        "solving",
        "painting",
        "planning",
        "dom",
        "colours",
        "model",
        "map",
        "chart",
    ),
    *("orbit", "cube_webgl", "cube_canvas", "redraw"),
    *("view_functions", "view_spectrum", "view_distances", "view_reward", "view_embedding", "view_run"),
    *("view_draw", "main"),
)
"""The modules in the order in which they are joined."""


def page(data: dict[str, Any]) -> str:
    """The page of what `export.payload` gave."""
    parts = {
        "style": _file("style.css"),
        "worker": _file("eigen.js"),
        "program": program(),
        "colours": json.dumps({name: digits(map_) for name, map_ in _MAPS.items()}),
        "data": as_script(data),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _file("index.html"))


_MAPS = {"diverging": DIVERGING, "distance": DISTANCES, "reward": REWARDS}


def program() -> str:
    """The modules as one."""
    joined = "\n".join(_file(f"{name}.js") for name in PROGRAM)
    return re.sub(r"^export ", "", joined, flags=re.MULTILINE)


def as_script(data: dict[str, Any]) -> str:
    r"""JSON that cannot end the script that it is in.

    Example:
        >>> as_script({"name": "</script><b>"})
        '{"name":"\\u003c/script>\\u003cb>"}'
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def digits(colour_map: str) -> str:
    """The 256 colours of a map as hexadecimal digits."""
    colours = matplotlib.colormaps[colour_map](np.arange(256), bytes=True)
    return np.asarray(colours)[:, :3].tobytes().hex()


@cache
def _file(name: str) -> str:
    return resources.files("lapwing.exploring").joinpath("web", name).read_text("utf-8")
