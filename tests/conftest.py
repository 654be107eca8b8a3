"""What the tests share: how hypothesis runs, chance that repeats, and one small learned run of each kind."""

import gc
import hashlib
import itertools
import os
import platform
from pathlib import Path

import gymnasium
import hypothesis
import jax
import pytest

from tests.support import sources
from tests.support.small_runs import SMALL

pytest.register_assert_rewrite("tests.support.command_line", "tests.support.processes")
hypothesis.settings.register_profile("lapwing", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("lapwing")


def _compilation_cache() -> Path:
    """Where compiled programs are kept: for all workers and later runs, of this JAX on this CPU."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    features = next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    built_for = f"{platform.machine()} {features} {os.environ.get('XLA_FLAGS', '')}"
    key = hashlib.sha256(built_for.encode()).hexdigest()[:12]
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return home / "lapwing-tests" / f"jax-{jax.__version__}-{key}"


jax.config.update("jax_compilation_cache_dir", str(_compilation_cache()))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
# Processes that tests start keep theirs apart from those of the user too.
os.environ["LAPWING_COMPILATION_CACHE"] = str(_compilation_cache().with_name("processes"))


def pytest_collection_finish():
    """What is imported stays to the end: JAX's tracing would have it looked through again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    """Tests from here, and doctests from the package alone: looking for them here takes seconds."""
    return [found for found in (yield) if type(found) is pytest.Module]


@pytest.fixture(autouse=True)
def chance_that_repeats(monkeypatch):
    """Environments and spaces that a test leaves unseeded draw the same numbers in every run of it."""
    seeds, seeded = itertools.count(), gymnasium.utils.seeding.np_random
    monkeypatch.setattr(
        gymnasium.utils.seeding, "np_random", lambda seed=None: seeded(next(seeds) if seed is None else seed)
    )


@pytest.fixture(scope="session")
def small() -> dict:
    return dict(SMALL)


@pytest.fixture(scope="session")
def four_room_run(tmp_path_factory) -> Path:
    """The folder of a finished run; read it, do not change it."""
    import lapwing

    out = tmp_path_factory.mktemp("runs") / "four_room"
    lapwing.learn("FourRoom", out=out, **SMALL)
    return out


@pytest.fixture(scope="session")
def four_room(four_room_run):
    """The representation of `four_room_run`."""
    import lapwing

    return lapwing.load(four_room_run)


@pytest.fixture
def often(monkeypatch) -> None:
    """A checkpoint after every evaluation."""
    from lapwing.runs import folder

    monkeypatch.setattr(folder, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    monkeypatch.setattr(folder, "SHARE_OF_CHECKPOINTS", float("inf"))


@pytest.fixture
def sketched(monkeypatch) -> None:
    """Pictures are made but not rendered, which takes most of the time of a small run of the command line.

    For tests of something else: those of pictures render each kind.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    monkeypatch.setattr(FigureCanvasAgg, "print_png", lambda canvas, file: file.write(b"sketch"))
    monkeypatch.setattr(FigureCanvasSVG, "print_svg", lambda canvas, file, metadata: file.write(b"sketch"))


@pytest.fixture
def elsewhere(tmp_path, monkeypatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def maze_file(tmp_path) -> Path:
    path = tmp_path / "room.txt"
    path.write_text(sources.ROOM)
    return path


@pytest.fixture
def data_file(tmp_path) -> Path:
    """A walk around a ring of four states."""
    from lapwing.data.experience import Experience

    path = tmp_path / "ring.npz"
    Experience(sources.walk(), [100, 100]).save(path)
    return path
