import hashlib
import json
import os
import random
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import HealthCheck, given, settings

from lapwing import storage
from lapwing.errors import CheckpointError, StorageError
from tests.support.folders import put
from tests.support.processes import in_own_mount

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
arrays = hnp.arrays(
    st.sampled_from([np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def start(script: str, *arguments: str | Path, **options) -> subprocess.Popen:
    """A Python process that runs `script`."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


@in_one_folder
@given(st.dictionaries(st.text(min_size=1), arrays, max_size=3), st.dictionaries(st.text(), json_values))
def test_tensors_come_back_bit_for_bit(tmp_path, tensors, manifest):
    tensors.pop("__metadata__", None)
    path = tmp_path / "x.safetensors"
    storage.write_tensors(path, tensors, manifest)
    found, found_manifest = storage.read_tensors(path)
    assert found_manifest == manifest
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        assert found[name].tobytes() == tensor.tobytes()


def test_arrays_of_any_order_come_back(tmp_path):
    matrix = np.arange(12.0).reshape(3, 4)
    tensors = {"transposed": matrix.T, "strided": matrix[:, ::2], "fortran": np.asfortranarray(matrix)}
    storage.write_tensors(tmp_path / "x", tensors, {})
    for name, found in storage.read_tensors(tmp_path / "x")[0].items():
        np.testing.assert_array_equal(found, tensors[name])


def test_a_tensor_file_is_an_ordinary_safetensors_file(tmp_path):
    storage.write_tensors(tmp_path / "x", {"a": np.arange(3.0)}, {"step": 7})
    with safetensors.safe_open(tmp_path / "x", "numpy") as file:
        np.testing.assert_array_equal(file.get_tensor("a"), [0.0, 1.0, 2.0])
        assert json.loads(file.metadata()["lapwing"])["manifest"] == {"step": 7}


def test_equal_content_gives_equal_files(tmp_path):
    tensors = {name: np.full(3, number) for number, name in enumerate("hgfedcba")}
    for number in range(20):
        storage.write_tensors(tmp_path / f"{number}", tensors, {"b": 1, "a": {"sha256": "0" * 64}})
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


@pytest.fixture
def small_file(tmp_path) -> Path:
    path = tmp_path / "small.safetensors"
    storage.write_tensors(path, {"w": np.arange(6, dtype=np.float32)}, {"step": 3})
    return path


def test_every_flipped_bit_is_refused_by_name(small_file):
    content = small_file.read_bytes()
    for position in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            put(small_file, damaged)
            with pytest.raises(CheckpointError, match=r"small.safetensors"):
                storage.read_tensors(small_file)


def test_a_file_cut_or_continued_is_refused_by_name(small_file):
    content = small_file.read_bytes()
    for damaged in (*(content[:length] for length in range(len(content))), content + b"\0"):
        put(small_file, damaged)
        with pytest.raises(CheckpointError, match=r"small.safetensors"):
            storage.read_tensors(small_file)


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x04N.",
        (2).to_bytes(8, "little") + b"[]",
        (20).to_bytes(8, "little") + b'{"__metadata__":[1]}',
        (27).to_bytes(8, "little") + b'{"__metadata__":{"sha256":1}}',
        safetensors.numpy.save({"w": np.ones(2)}, {"format": "np"}),
    ],
)
def test_a_foreign_file_is_refused_by_name(tmp_path, content):
    path = tmp_path / "foreign.bin"
    put(path, content)
    with pytest.raises(CheckpointError, match=r"foreign.bin"):
        storage.read_tensors(path)


@in_one_folder
@given(st.binary(max_size=400))
def test_no_bytes_at_all_make_the_reader_stumble(tmp_path, content):
    put(tmp_path / "any", content)
    with pytest.raises(CheckpointError):
        storage.read_tensors(tmp_path / "any")


@in_one_folder
@given(json_values)
def test_json_comes_back(tmp_path, value):
    storage.write_json(tmp_path / "x.json", value)
    assert storage.read_json(tmp_path / "x.json") == value


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"a": 1'])
def test_damaged_json_is_refused_by_name(tmp_path, content):
    put(tmp_path / "x.json", content)
    with pytest.raises(CheckpointError, match=r"x\.json"):
        storage.read_json(tmp_path / "x.json")


def test_nan_never_enters_json(tmp_path):
    storage.write_json(tmp_path / "x.json", 1)
    for write in (storage.write_json, storage.append_json_line):
        with pytest.raises(ValueError, match="JSON compliant"):
            write(tmp_path / "x.json", {"loss": float("nan")})
    assert storage.read_json(tmp_path / "x.json") == 1
    assert names(tmp_path) == ["x.json"]


def test_json_lines_grow_and_are_read_in_order(tmp_path):
    path = tmp_path / "x.jsonl"
    assert storage.read_json_lines(path) == []
    rows = [{"step": step, "text": "a\nb é"} for step in range(5)]
    for row in rows:
        storage.append_json_line(path, row)
    assert storage.read_json_lines(path) == rows
    storage.write_json_lines(path, rows[:2])
    storage.append_json_line(path, rows[4])
    assert storage.read_json_lines(path) == [*rows[:2], rows[4]]


def test_a_last_line_cut_anywhere_is_left_out(tmp_path):
    path = tmp_path / "x.jsonl"
    storage.write_json_lines(path, [{"step": 1}])
    whole = path.read_bytes()
    storage.append_json_line(path, {"step": 2, "loss": 0.5})
    last = path.read_bytes().removeprefix(whole)
    for length in range(len(last)):
        put(path, whole + last[:length])
        assert storage.read_json_lines(path) == [{"step": 1}]


@pytest.mark.parametrize("digests", [True, False])
def test_a_damaged_line_before_the_last_is_refused_by_number(tmp_path, digests):
    path = tmp_path / "x.jsonl"
    storage.write_json_lines(path, [{"step": 1}])
    path.write_bytes(path.read_bytes() + b'{"step":\n{"step": 3}\n')
    with pytest.raises(CheckpointError, match=r"x\.jsonl .*line 2"):
        storage.read_json_lines(path, digests=digests)


def test_lines_without_digests_are_read_where_none_are_expected(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(b'{"step": 1}\n{"step": 2}\n{"st')
    assert storage.read_json_lines(tmp_path / "x.jsonl", digests=False) == [{"step": 1}, {"step": 2}]
    with pytest.raises(CheckpointError, match=r"x.jsonl"):
        storage.read_json_lines(tmp_path / "x.jsonl")


def flipped(path: Path):
    """Write the file with each of its bits flipped in turn, and say which."""
    content = path.read_bytes()
    for position in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            put(path, damaged)
            yield position, bit


def test_every_flipped_bit_of_checked_json_is_refused_by_name(tmp_path):
    path = tmp_path / "x.json"
    for value in ({}, {"a": {"sha256": "0" * 64}, "b": [1, None, "é"]}):
        storage.write_checked_json(path, value)
        assert storage.read_checked_json(path) == value
        for _ in flipped(path):
            with pytest.raises(CheckpointError, match=r"x\.json"):
                storage.read_checked_json(path)


def test_every_flipped_bit_of_json_lines_is_refused_by_name(tmp_path):
    path = tmp_path / "x.jsonl"
    for step in range(3):
        storage.append_json_line(path, {"step": step, "loss": 0.5})
    for _ in flipped(path):
        with pytest.raises(CheckpointError, match=r"x\.jsonl"):
            storage.read_json_lines(path)


def test_lines_in_another_order_are_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    storage.write_json_lines(path, [{"step": step} for step in range(3)])
    first, second, third = path.read_bytes().splitlines(keepends=True)
    for lines in ([first, third], [second, third], [first, third, second], [first, first, second, third]):
        path.write_bytes(b"".join(lines))
        with pytest.raises(CheckpointError, match=r"x\.jsonl"):
            storage.read_json_lines(path)


@pytest.mark.parametrize("read", [storage.read_json, storage.read_json_lines, storage.read_tensors])
def test_a_file_larger_than_memory_is_refused_unread(tmp_path, read):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(2**42)
    with pytest.raises(CheckpointError, match="huge is too large"):
        read(tmp_path / "huge")


@pytest.mark.parametrize(
    "tensor", [([10**12], [0, 4]), ([10**12], [0, 4 * 10**12]), ([2**63, 2**63], [0, 0])]
)
def test_a_forged_header_is_refused_before_any_memory_is_taken(tmp_path, tensor):
    shape, offsets = tensor
    described = json.dumps({"sha256": "0" * 64, "manifest": {}})
    entry = {"dtype": "F32", "shape": shape, "data_offsets": offsets}
    header = json.dumps({"__metadata__": {"lapwing": described}, "w": entry}).encode()
    content = len(header).to_bytes(8, "little") + header + bytes(4)
    digest = hashlib.sha256(content).hexdigest().encode()
    (tmp_path / "forged").write_bytes(content.replace(b"0" * 64, digest, 1))
    with pytest.raises(CheckpointError, match="forged"):
        storage.read_tensors(tmp_path / "forged")


def test_what_fails_half_way_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "x"
    storage.write_bytes(path, b"old")

    def fail(file):
        file.write(b"new" * 10_000)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        storage.write_atomically(path, fail)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["x"]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_files_have_the_permissions_that_the_user_asks_for(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        storage.write_bytes(tmp_path / "x", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == mode


def test_a_reader_sees_one_version_or_the_other(tmp_path):
    path, size, done = tmp_path / "x", 200_000, threading.Event()
    storage.write_bytes(path, b"a" * size)

    def write():
        for turn in range(60):
            storage.write_bytes(path, b"ab"[turn % 2 : turn % 2 + 1] * size)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while not done.is_set():
            content = path.read_bytes()
            assert content in (b"a" * size, b"b" * size)
    finally:
        writer.join()
    assert names(tmp_path) == ["x"]


WRITE_FOR_EVER = """
    import sys
    from pathlib import Path
    from lapwing import storage
    path, letter = Path(sys.argv[1]), 0
    print("ready", flush=True)
    while True:
        letter = (letter + 1) % 26
        storage.write_bytes(path, bytes([97 + letter]) * 2_000_000)
"""


def test_a_killed_writer_never_leaves_half_a_file(tmp_path):
    path, moments = tmp_path / "x", random.Random(0)
    for _ in range(8):
        writer = start(WRITE_FOR_EVER, path)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(timeout=moments.uniform(0.0, 0.1))
        writer.kill()
        writer.communicate()
        if path.exists():
            content = path.read_bytes()
            assert len(content) == 2_000_000
            assert content == content[:1] * 2_000_000
    storage.remove_leftovers(tmp_path)
    assert set(names(tmp_path)) <= {"x"}
    assert path.exists()


def test_leftovers_are_temporary_files_alone(tmp_path):
    foreign = [".config.json.ab12.part", ".lock", ".lapwing.part", ".notes.part", "config.json", "mine.part"]
    for name in (*foreign, ".config.json.ab12cd3_.lapwing.part"):
        (tmp_path / name).write_bytes(b"")
    storage.remove_leftovers(tmp_path)
    assert names(tmp_path) == sorted(foreign)
    for _ in range(2):
        storage.remove(tmp_path / "mine.part")
    assert "mine.part" not in names(tmp_path)


def test_the_digest_of_a_file_is_its_sha256(tmp_path):
    content = np.random.default_rng(0).bytes(100_000)
    (tmp_path / "x").write_bytes(content)
    assert storage.file_sha256(tmp_path / "x") == hashlib.sha256(content).hexdigest()


HOLD = """
    import sys, time
    from pathlib import Path
    from lapwing import storage
    with storage.lock(Path(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.read()
    print("let go", flush=True)
"""


def test_a_second_holder_is_refused_until_the_first_lets_go(tmp_path):
    holder = start(HOLD, tmp_path, stdin=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    for _ in range(2):
        with (
            pytest.raises(StorageError, match=str(tmp_path)),
            storage.lock(tmp_path),
        ):
            pass
    out, _ = holder.communicate("")
    assert out == "let go\n"
    with storage.lock(tmp_path):
        pass


def test_a_killed_holder_lets_go(tmp_path):
    holder = start(HOLD, tmp_path, stdin=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    with storage.lock(tmp_path):
        pass


def test_the_lock_holds_within_one_process_too_and_an_error_lets_go(tmp_path):
    def fail() -> None:
        with storage.lock(tmp_path):
            for _ in range(2):
                with pytest.raises(StorageError, match=str(tmp_path)), storage.lock(tmp_path):
                    pass
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with storage.lock(tmp_path):
        pass


def test_a_full_disk_is_named_with_its_remedy_and_nothing_is_left_or_lost(tmp_path):
    printed = in_own_mount(
        tmp_path,
        "size=64k",
        """
        import os, sys
        from pathlib import Path
        from lapwing import storage
        from lapwing.errors import StorageError
        path = Path(sys.argv[1]) / "x"
        storage.write_bytes(path, b"old")
        rows = path.with_name("rows")
        for attempt in (
            lambda: storage.write_bytes(path, bytes(1_000_000)),
            lambda: [storage.append_json_line(rows, {"step": step}) for step in range(100_000)],
        ):
            try:
                attempt()
            except StorageError as error:
                print(error)
        print(path.read_bytes().decode(), sorted(os.listdir(path.parent)))
        print(storage.read_json_lines(rows)[:2])
        """,
    ).splitlines()
    assert "disk/x: the disk is full" in printed[0]
    assert "disk/rows: the disk is full" in printed[1]
    assert printed[2] == "old ['rows', 'x']"
    assert printed[3] == "[{'step': 0}, {'step': 1}]"


def test_a_read_only_disk_is_named_with_its_remedy(tmp_path):
    printed = in_own_mount(
        tmp_path,
        "ro",
        """
        import sys
        from pathlib import Path
        from lapwing import storage
        from lapwing.errors import StorageError
        folder = Path(sys.argv[1])
        def hold():
            with storage.lock(folder):
                pass
        for attempt in (
            lambda: storage.write_bytes(folder / "x", b""),
            lambda: storage.append_json_line(folder / "x", {}),
            lambda: storage.make_folder(folder / "run"),
            hold,
        ):
            try:
                attempt()
            except StorageError as error:
                print(error)
        """,
    ).splitlines()
    assert len(printed) == 4
    for line in printed:
        assert "read-only" in line


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this machine")
def test_a_device_without_space_is_a_full_disk():
    with pytest.raises(StorageError, match="/dev/full: the disk is full") as caught:
        storage.append_json_line(Path("/dev/full"), {"step": 1})
    assert isinstance(caught.value.__cause__, OSError)


def test_a_limit_on_file_sizes_is_an_error_that_leaves_nothing(tmp_path):
    script = """
        import os, resource, sys
        from pathlib import Path
        from lapwing import storage
        from lapwing.errors import StorageError
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        try:
            storage.write_bytes(Path(sys.argv[1]) / "x", bytes(1_000_000))
        except StorageError as error:
            print(error)
    """
    out, errors = start(script, tmp_path).communicate()
    assert "too large" in out, errors
    assert names(tmp_path) == []


def test_a_folder_without_permission_is_named_with_its_remedy(tmp_path):
    tmp_path.chmod(0o500)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("this user may write anywhere")
        with pytest.raises(StorageError, match="permission denied"):
            storage.write_bytes(tmp_path / "x", b"")
    finally:
        tmp_path.chmod(0o700)


def test_a_path_below_a_file_is_named_with_its_remedy(tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    for attempt in (storage.make_folder, lambda path: storage.write_bytes(path, b"")):
        with pytest.raises(StorageError, match="file/run: "):
            attempt(tmp_path / "file" / "run")
    with pytest.raises(StorageError, match="file: "):
        storage.make_folder(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"mine"


@pytest.mark.parametrize("read", [storage.read_json, storage.read_tensors, storage.file_sha256])
def test_what_cannot_be_read_is_named(tmp_path, read):
    for path in (tmp_path / "gone", tmp_path):
        with pytest.raises(StorageError, match=f"{path}: "):
            read(path)


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "home/.cache/lapwing"),
        ("linux", {"XDG_CACHE_HOME": "{root}/xdg"}, "xdg/lapwing"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "home/.cache/lapwing"),
        ("linux", {"LAPWING_CACHE": "{root}/mine", "XDG_CACHE_HOME": "{root}/xdg"}, "mine"),
        ("linux", {"LAPWING_CACHE": "~/mine"}, "home/mine"),
        ("darwin", {}, "home/Library/Caches/lapwing"),
        ("win32", {"LOCALAPPDATA": "{root}/local"}, "local/lapwing/Cache"),
    ],
)
def test_the_cache_folder(platform, variables, expected, tmp_path, monkeypatch):
    for name in ("LAPWING_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("sys.platform", platform)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(root=tmp_path))
    assert storage.user_cache() == tmp_path / expected


def test_a_folder_is_trimmed_to_its_youngest_files_of_a_pattern(tmp_path):
    for age, name in enumerate(("ours/youngest-cache", "ours/oldest-cache", "ours/notes", "theirs/x-cache")):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    storage.trim_folder(tmp_path, "ours/*-cache", 200)
    assert len(list(tmp_path.rglob("*"))) == 6
    storage.trim_folder(tmp_path, "ours/*-cache", 150)
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"youngest-cache", "notes", "x-cache"}
    storage.trim_folder(tmp_path / "nowhere", "*", 0)


def test_a_private_folder_is_made_and_needs_room(tmp_path):
    assert storage.is_private_folder(tmp_path / "new" / "folder", free=0)
    assert (tmp_path / "new" / "folder").is_dir()
    assert not storage.is_private_folder(tmp_path / "new" / "folder", free=1 << 60)
    (tmp_path / "file").touch()
    assert not storage.is_private_folder(tmp_path / "file", free=0)
