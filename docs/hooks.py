"""What the site has beyond its Markdown: notebooks, run as it is built, and explorers of small runs.

Both are kept in `.cache/docs/` until lapwing or they themselves change.
"""

import base64
import hashlib
import logging
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".cache" / "docs"
NOTEBOOKS = ROOT / "docs" / "notebooks"
EXPLORERS: dict[str, tuple[str, dict[str, Any]]] = {
    "FourRoom": ("FourRoom", {}),
    "HardMaze": ("HardMaze", {}),
    "PointUMaze": ("PointUMaze", {"transitions": 20_000}),
    "pointmaze-medium": ("ogbench:pointmaze-medium-navigate,episodes=20", {}),
}
"""The pages, what they are learned from, and how: in seconds, so the last two are of little data."""
SECONDS = 300
"""A cell of a notebook may take so long."""

log = logging.getLogger("mkdocs.hooks.lapwing")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add what is made here to the files of the site."""
    with ThreadPoolExecutor(1) as beside:  # notebooks have kernels of their own
        notebooks = beside.map(rendered, sorted(NOTEBOOKS.glob("*.ipynb")))
        for name, (target, settings) in EXPLORERS.items():
            page = explorer(name, target, settings)
            files.append(File.generated(config, f"explorers/{name}.html", abs_src_path=str(page)))
        for folder in notebooks:
            for path in sorted(folder.iterdir()):
                files.append(File.generated(config, f"notebooks/{path.name}", abs_src_path=str(path)))
    return files


def explorer(name: str, target: str, settings: dict[str, Any]) -> Path:
    """The page of a run that is learned now, if it is not there."""
    import lapwing

    run = CACHE / f"{name}-{digest(f'{target} {settings}'.encode())}"
    page = run / "explorer.html"
    if not page.is_file():
        log.info("learning %s for its explorer", target)
        lapwing.learn(target, out=run, overwrite=run.is_dir(), **settings)
        lapwing.explore(run, show=False)
    return page


def rendered(notebook: Path) -> Path:
    """A folder with the Markdown of a notebook that is run now, and its pictures, if it is not there."""
    folder = CACHE / f"{notebook.stem}-{digest(notebook.read_bytes())}"
    if not folder.is_dir():
        log.info("running %s", notebook.name)
        pages = dict(pages_of(executed(notebook), notebook.stem))
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as unfinished:
            whole = Path(unfinished) / folder.name
            whole.mkdir()
            for name, content in pages.items():
                (whole / name).write_bytes(content)
            whole.rename(folder)
    return folder


def executed(notebook: Path) -> Any:
    """The notebook with its outputs; an error in a cell is one of the build."""
    import nbformat
    from nbclient import NotebookClient
    from traitlets.config import Config

    cells = nbformat.read(notebook, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        # over sockets that are files, which nobody else can open, where there are such
        transport = {"transport": "ipc" if os.name == "posix" else "tcp"}
        settings = Config(KernelManager=transport | {"connection_file": f"{folder}/kernel.json"})
        client = NotebookClient(cells, timeout=SECONDS, kernel_name="python3", config=settings)
        client.execute(cwd=folder)
    return cells


def pages_of(notebook: Any, name: str) -> Iterator[tuple[str, bytes]]:
    """File names and contents: pictures as they are met, the Markdown at the end."""
    parts: list[str] = []
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for index, output in enumerate(cell.outputs):
            data = output.get("data", {})
            if "image/png" in data:
                picture = f"{name}_{number}_{index}.png"
                yield picture, base64.b64decode(data["image/png"])
                parts.append(f"![output of the cell above]({picture})")
            elif "text/html" in data:
                parts.append(f'<div class="notebook-output" markdown="0">{data["text/html"]}</div>')
            elif "text/plain" in data or output.get("text"):
                parts.append(f"```text\n{data.get('text/plain') or output['text']}".rstrip() + "\n```")
    parts.append(f"[Download the notebook]({name}.ipynb)")
    yield f"{name}.md", "\n\n".join(parts).encode()


def digest(content: bytes) -> str:
    """Of this content and of all of lapwing."""
    found = hashlib.sha256(content)
    for path in sorted((ROOT / "src" / "lapwing").rglob("*")):
        if path.suffix in (".py", ".js", ".css", ".html", ".txt"):
            found.update(path.read_bytes())
    return found.hexdigest()[:16]
