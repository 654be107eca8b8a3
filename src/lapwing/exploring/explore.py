"""`lapwing explore` and `lapwing.explore`: the page of a run, written to a file and opened."""

import webbrowser
from pathlib import Path
from typing import Any

from lapwing import storage
from lapwing.errors import ConfigError
from lapwing.exploring.export import LARGEST_PAGE, payload
from lapwing.exploring.opening import open_representation, open_run
from lapwing.exploring.page import page
from lapwing.laplacian.representation import Representation
from lapwing.progress import OnProgress, uncounted
from lapwing.runs.folder import RunFolder

PAGE = RunFolder(Path()).page
"""The page's name, in a run folder or where there is none."""


def explore(
    source: str | Path | Representation,
    observations: Any = None,
    *,
    out: str | Path | None = None,
    show: bool = True,
    on_progress: OnProgress | None = None,
) -> Path:
    """Write one HTML file in which a representation can be looked at and tried; returns its path.

    Args:
        source: a finished run of `lapwing learn` or `lapwing reach`, a file of `Representation.save`, or a
            representation.
        observations: where to draw a representation, a batch; a run, a maze and an arena need none.
        out: the file; None is explorer.html in the run folder, or in the current one.
        show: whether to open it in a browser; that there is none is no error.
        on_progress: called with (phase, done, all, metrics).

    Example:
        >>> import lapwing, tempfile
        >>> rep = lapwing.learn("TwoRoom", transitions=5_000, dim=4, steps=50, hidden=(16,))
        >>> path = explore(rep, out=tempfile.mkdtemp() + "/two_room.html", show=False)
        >>> path.stat().st_size < 1_500_000
        True
    """
    if not isinstance(source, Representation) and observations is not None:
        raise ConfigError(
            "observations only work with a representation, and a run knows its own; leave them out"
        )
    with uncounted("opening", on_progress):
        if isinstance(source, Representation):
            opened = open_representation(source, observations)
        else:
            opened = open_run(Path(source), on_progress)
    with uncounted("writing", on_progress):
        content = page(payload(opened)).encode()
        folder = opened.path or Path()
        path = folder / PAGE if out is None else Path(out)
        if path.is_dir():
            path = path / PAGE
        if len(content) > LARGEST_PAGE:
            raise ConfigError(f"the page would have {len(content):,} bytes; explore fewer states")
        storage.make_folder(path.parent)
        storage.write_bytes(path, content)
    if show:
        opened_in_browser(path)
    return path


def opened_in_browser(path: Path) -> bool:
    """Open a page; False where there is no browser."""
    try:
        return webbrowser.open_new_tab(path.resolve().as_uri())
    except (webbrowser.Error, OSError):
        return False
