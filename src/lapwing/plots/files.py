"""Saving figures."""

import io
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from PIL import Image

from lapwing.storage import make_folder, write_bytes

matplotlib.rcParams["svg.hashsalt"] = "lapwing"


def save_figure(figure: Figure, path: str | Path) -> list[Path]:
    """Write `path`.png and `path`.svg."""
    path = Path(path)
    make_folder(path.parent)
    png, svg = io.BytesIO(), io.BytesIO()
    figure.set_dpi(110)
    # By the canvases themselves, for `figure.savefig` draws everything twice.
    FigureCanvasAgg(figure).print_png(png)
    figure.set_layout_engine("none")  # the first drawing has laid it out
    FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None})
    written = [path.with_suffix(".png"), path.with_suffix(".svg")]
    for target, buffer in zip(written, (png, svg), strict=True):
        write_bytes(target, buffer.getvalue())
    return written


def save_animation(frames: list[np.ndarray], path: Path, *, milliseconds: int = 120) -> Path:
    """Write images of bytes as `path`.gif, which shows them again and again."""
    make_folder(path.parent)
    buffer = io.BytesIO()
    first, *others = (Image.fromarray(frame) for frame in frames)
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=milliseconds, loop=0)
    write_bytes(path.with_suffix(".gif"), buffer.getvalue())
    return path.with_suffix(".gif")
