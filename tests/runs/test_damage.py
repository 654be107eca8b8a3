"""Single bits of a finished run are flipped: each is refused by the name of its file, or changes nothing."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing
from lapwing import storage
from lapwing.data.files import load_experience
from lapwing.errors import CheckpointError, LapwingError
from lapwing.runs.folder import RunFolder
from tests.support.command_line import called
from tests.support.folders import put

FLIPS = 12
"""In each file."""
READERS = {
    "config.json": lambda path: RunFolder(path.parent).config(),
    "result.json": lambda path: RunFolder(path.parent).result(),
    "metrics.jsonl": lambda path: RunFolder(path.parent).metrics(),
    "representation.safetensors": lambda path: lapwing.load(path.parent).sha256(),
    "experience.npz": lambda path: load_experience(path).sha256(),
}
"""What is read from each file of a run."""


def flip(path: Path, position: int, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << bit
    put(path, content)


def places(path: Path, count: int) -> list[tuple[int, int]]:
    chance = np.random.default_rng(0)
    size = path.stat().st_size
    return [(int(chance.integers(size)), int(chance.integers(8))) for _ in range(count)]


def tried(read: Callable[[Path], Any], path: Path) -> tuple[Any, str | None]:
    """What is read, or the words with which it is refused."""
    try:
        return read(path), None
    except LapwingError as error:
        return None, str(error)


@pytest.fixture
def finished(four_room_run, tmp_path) -> Path:
    return Path(shutil.copytree(four_room_run, tmp_path / "run"))


def test_every_file_of_a_run_is_tried(finished):
    assert {path.name for path in finished.iterdir()} - {".lock"} == set(READERS)


@pytest.mark.parametrize("name", READERS)
def test_a_flipped_bit_is_refused_by_name_or_changes_nothing(finished, name):
    path, read = finished / name, READERS[name]
    before = read(path)
    for position, bit in places(path, FLIPS):
        flip(path, position, bit)
        found, refusal = tried(read, path)
        if refusal is not None:
            assert name in refusal
        else:  # only an archive has bytes that mean nothing, such as the time of an entry
            assert name == "experience.npz", (position, bit)
            assert found == before
        flip(path, position, bit)
    assert read(path) == before


@pytest.mark.parametrize("name", READERS)
def test_a_flipped_bit_ends_no_command_in_a_traceback(finished, name):
    path = finished / name
    ((position, bit),) = places(path, 1)
    flip(path, position, bit)
    for arguments in (["evaluate", str(finished)], ["learn", "FourRoom", "--out", str(finished), "--resume"]):
        code, out, err = called(*arguments)
        assert "Traceback" not in err
        assert code == 2 or name == "experience.npz"
        assert out == ""


@pytest.mark.parametrize(
    "encoder",
    [
        {"name": "mlp", "shape": [10**12], "dim": 4, "hidden": [8]},
        {"name": "mlp", "shape": [2], "dim": 10**12, "hidden": [10**12]},
        {"name": "linear", "shape": [], "dim": 4, "n_states": 10**12, "hidden": []},
        {"name": "conv", "shape": [10**12, 10**12, 3], "dim": 4, "hidden": []},
    ],
    ids=str,
)
def test_a_representation_that_claims_what_no_machine_has_is_refused(tmp_path, encoder):
    """A file from someone else, with a digest that fits."""
    path = tmp_path / "forged.safetensors"
    manifest = {"format": 1, "version": "0.1.0", "kind": "representation", "config": {}, "soft_distance": 1.0}
    storage.write_tensors(path, {}, manifest | {"encoder": encoder})
    with pytest.raises(CheckpointError, match="forged"):
        lapwing.load(path)
