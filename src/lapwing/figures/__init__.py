"""The figures of the paper, each from one command: `lapwing reproduce`."""

import importlib
from typing import TYPE_CHECKING

from lapwing.errors import ConfigError, nearest

if TYPE_CHECKING:
    from lapwing.figures.grid import Study

FIGURES = ("fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8")
STUDIES = (*FIGURES, "ogbench", "mazes12")
"""The paper's figures, and what is not the paper's."""


def find_study(name: str) -> "Study":
    """The study of a figure, from the module of its name; figure 6 is figure 3 for other d."""
    if name not in STUDIES:
        raise ConfigError(f"unknown figure {name!r}; {nearest(name, (*STUDIES, 'all'))}")
    module = importlib.import_module(f"lapwing.figures.{'fig3' if name == 'fig6' else name}")
    return getattr(module, name.upper())
