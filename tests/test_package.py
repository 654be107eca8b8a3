import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import gymnasium
import pytest

import lapwing

SOURCE = Path(lapwing.__file__).parent


def test_every_public_name_is_there():
    for name in lapwing.__all__:
        assert getattr(lapwing, name) is not None
    assert set(lapwing.__all__) <= set(dir(lapwing))


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'lern'"):
        lapwing.lern  # noqa: B018


def test_importing_it_is_light_and_registers_the_environments():
    script = (
        "import sys, lapwing, gymnasium\n"
        "assert 'lapwing/FourRoom-v0' in gymnasium.registry\n"
        "heavy = [m for m in ('jax', 'equinox', 'optax', 'scipy', 'matplotlib') if m in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_maze_has_an_environment():
    for name in ("OneRoom", "TwoRoom", "HardMaze", "FourRoom", "Maze"):
        assert f"lapwing/{name}-v0" in gymnasium.registry


def test_types_and_mazes_are_shipped():
    assert resources.files("lapwing").joinpath("py.typed").is_file()
    assert len(list(SOURCE.joinpath("mazes").glob("*.txt"))) == 4


def test_nothing_that_is_read_could_be_executed():
    unsafe = re.compile(r"import pickle|pickle\.load|allow_pickle=True|\beval\(|\bexec\(|yaml\.load\(")
    for path in SOURCE.rglob("*.py"):
        assert not unsafe.search(path.read_text()), path


def test_only_storage_writes_files():
    writes = re.compile(r"\.write_text\(|\.write_bytes\(|open\([^)]*['\"][wax]b?['\"]|np\.savez?\([^b]")
    for path in SOURCE.rglob("*.py"):
        if path.name != "storage.py":
            assert not writes.search(path.read_text()), path
