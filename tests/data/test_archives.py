import io
import os
import pickle
import re
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from lapwing.data.archives import BOMB_BYTES, names_in, read_archive
from lapwing.errors import DatasetError
from tests.support.folders import put

in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
STORED, DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED


def zipped(*entries: dict) -> bytes:
    """An archive written by hand, which may say of itself what no library would write."""
    body, directory = b"", b""
    for entry in entries:
        name, content = entry["name"].encode(), entry["content"]
        size, crc = entry.get("size", len(content)), entry.get("crc", zlib.crc32(content))
        packed_size = entry.get("packed_size", len(content))
        flags, method = entry.get("flags", 0), entry.get("method", STORED)
        fields = struct.pack("<HHHHIII", flags, method, 0, 0x21, crc, packed_size, size)
        where = len(body)
        body += b"PK\3\4" + struct.pack("<H", 20) + fields + struct.pack("<HH", len(name), 0) + name + content
        directory += b"PK\1\2" + struct.pack("<HH", 20, 20) + fields
        directory += struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, where) + name
    counts = struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(directory), len(body), 0)
    return body + directory + b"PK\5\6" + counts


def npy(array: np.ndarray, **instead) -> bytes:
    """The bytes of an .npy file, with a header that may say something else."""
    array = np.ascontiguousarray(array)
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape} | instead
    text = repr(header).encode() + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + array.tobytes()


def deflated_zeros(length: int) -> bytes:
    """A deflate stream of so many zeros, a multiple of 1 MiB, made by repeating that of 1 MiB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    mebibyte = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return mebibyte * (length // 2**20) + packer.flush()


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "data.npz"


def refusal(path: Path, content: bytes | None = None, wanted=("a",), **options) -> str:
    """What refuses the file."""
    if content is not None:
        put(path, content)
    with pytest.raises(DatasetError) as caught:
        read_archive(path, wanted, **options)
    sentence = str(caught.value)
    assert str(path) in sentence
    assert "\n" not in sentence
    return sentence


dtypes = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?"),
    hnp.complex_number_dtypes(),
    hnp.unicode_string_dtypes(min_len=1, max_len=4),
    hnp.byte_string_dtypes(min_len=1, max_len=4),
)
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))


@in_one_folder
@given(
    st.dictionaries(st.sampled_from("abc"), arrays, max_size=3),
    st.sampled_from([np.savez, np.savez_compressed]),
    st.sampled_from([np.asarray, np.asfortranarray]),
)
def test_arrays_come_back_as_numpy_reads_them(path, content, save, ordered):
    save(path, **{name: ordered(array) if array.ndim else array for name, array in content.items()})
    found = read_archive(path, ["a", "b", "d"])
    assert found.keys() == content.keys() - {"c"}
    assert names_in(path) == list(content)
    with np.load(path) as expected:
        for name, array in found.items():
            assert array.dtype == expected[name].dtype
            assert array.shape == expected[name].shape
            assert array.tobytes() == expected[name].tobytes()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_array_of_many_chunks(save, path):
    array = np.random.default_rng(0).integers(0, 9, (700_000, 3), np.int32)
    save(path, a=array, b=array[:5])
    found = read_archive(path, ["b", "a"])
    np.testing.assert_array_equal(found["a"], array)
    np.testing.assert_array_equal(found["b"], array[:5])
    found["a"][0] = 7  # it is the caller's own


def test_a_stored_array_is_held_once(path):
    array = np.zeros((1_000_000, 8), np.float32)
    np.savez(path, a=array)
    tracemalloc.start()
    try:
        read_archive(path, ["a"])
        assert tracemalloc.get_traced_memory()[1] < array.nbytes + 5e6
    finally:
        tracemalloc.stop()


def test_names_with_a_folder(path):
    np.savez(path, **{"train/a..b": np.arange(3), "c:d": np.arange(2)})
    assert names_in(path) == ["train/a..b", "c:d"]
    np.testing.assert_array_equal(read_archive(path, ["train/a..b"])["train/a..b"], [0, 1, 2])


def test_what_is_not_wanted_is_not_opened(path):
    odd = {"name": "b.npy", "content": b"", "method": 99, "flags": 1}
    path.write_bytes(zipped({"name": "a.npy", "content": npy(np.arange(2))}, odd))
    np.testing.assert_array_equal(read_archive(path, ["a"])["a"], [0, 1])
    assert names_in(path) == ["a", "b"]


class Intruder:
    """Unpickling this writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


class TestPickles:
    @pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
    def test_objects_are_never_run(self, save, path):
        canary = path.parent / "canary"
        save(path, a=np.array([Intruder(canary)], object))
        assert "pickled Python objects" in refusal(path)
        assert not canary.exists()
        with np.load(path, allow_pickle=True) as file:  # the canary is a live one
            file["a"][0].close()
        assert canary.exists()

    def test_an_object_array_is_refused_before_it_is_read(self, path):
        # Had it been read to its end, the checksum would have been refused.
        content = npy(np.zeros(2**17), descr="|O")
        sentence = refusal(path, zipped({"name": "a.npy", "content": content, "crc": 1}))
        assert "pickled Python objects" in sentence

    @pytest.mark.parametrize(("protocol", "words"), [(0, "damaged"), (2, "pickled"), (5, "pickled")])
    def test_a_bare_pickle(self, protocol, words, path):
        canary = path.parent / "canary"
        assert words in refusal(path, pickle.dumps(Intruder(canary), protocol))
        assert not canary.exists()


def test_no_file(tmp_path):
    for path in (tmp_path / "none.npz", tmp_path):
        assert refusal(path) == f"no data file {path}"
        with pytest.raises(DatasetError, match=str(path)):
            names_in(path)


def test_a_path_that_cannot_be(tmp_path):
    assert "File name too long" in refusal(tmp_path / ("x" * 300))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(path):
    np.savez(path, a=np.arange(3))
    path.chmod(0)
    assert "Permission denied" in refusal(path)


def test_a_single_array(path):
    assert "single array" in refusal(path, npy(np.arange(3)))


@pytest.mark.parametrize("content", [b"", b"PK\3\4", b"text, not an archive", b"\x93NUMP"])
def test_not_an_archive(content, path):
    assert "damaged" in refusal(path, content)


def test_an_archive_behind_a_program(path):
    buffer = io.BytesIO()
    np.savez(buffer, a=np.arange(3))
    assert "damaged" in refusal(path, b"#!/bin/sh\nexit\n" + buffer.getvalue())


@pytest.mark.parametrize("name", ["a", "a.npy"])
def test_an_archive_of_something_else(name, path):
    assert "magic string" in refusal(path, zipped({"name": name, "content": b"text, and no array at all"}))


def test_records(path):
    np.savez(path, a=np.zeros(2, [("x", "f4"), ("y", "i4")]))
    assert "records in 'a'" in refusal(path)


@pytest.mark.parametrize("name", ["x/../a.npy", "..", "/a.npy", "x\\a.npy", "C:/a.npy", "a\0b.npy"])
def test_names_that_lead_elsewhere(name, path):
    content = zipped({"name": "a.npy", "content": npy(np.arange(2))}, {"name": name, "content": b""})
    assert repr(name) in refusal(path, content)
    with pytest.raises(DatasetError, match=re.escape(repr(name))):
        names_in(path)


@pytest.mark.parametrize("names", [("a.npy", "a.npy"), ("a.npy", "a"), ("b", "b")])
def test_two_arrays_of_a_name(names, path):
    content = zipped(*({"name": name, "content": npy(np.arange(2))} for name in names))
    assert f"holds two arrays {names[1].removesuffix('.npy')!r}" in refusal(path, content)


@pytest.mark.parametrize(
    "said",
    [
        {"shape": (3,)},
        {"shape": (5,)},
        {"shape": ()},
        {"shape": (2**62, 4)},
        {"shape": (-2, -2)},
        {"shape": (0, 10**30)},
        {"descr": "<f4"},
        {"descr": "<U0", "shape": (10**15,)},
        {"descr": "nonsense"},
        {"descr": 7},
        {"shape": [4]},
        {"fortran_order": "yes"},
        {"more": 1},
    ],
    ids=str,
)
def test_headers_that_lie(said, path):
    array = np.zeros(0) if said == {"shape": (0, 10**30)} else np.arange(4.0)
    assert "damaged" in refusal(path, zipped({"name": "a.npy", "content": npy(array, **said)}))


def test_what_is_read_is_limited(path):
    np.savez(path, a=np.zeros(1000), b=np.zeros(1000), c=np.zeros(10_000))
    total = 2 * (8000 + 128)  # numpy aligns what follows its header to 64 bytes
    assert len(read_archive(path, ["a", "b"], most_bytes=total + 1)) == 2
    assert "of a, b, and at most 0.0 GiB" in refusal(path, wanted=["a", "b"], most_bytes=total)


def test_a_bomb(path):
    size = BOMB_BYTES + 2**20
    content = deflated_zeros(size)
    entry = {"name": "a.npy", "content": content, "size": size, "method": DEFLATED}
    assert f"1.0 GiB of 'a' in {len(content):,} bytes" in refusal(path, zipped(entry))


def test_a_bomb_of_2_gib_that_says_it_is_small_unpacks_no_further(path):
    header = npy(np.zeros(0), descr="|u1", shape=(1000,))
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    content = packer.compress(header) + packer.flush(zlib.Z_FULL_FLUSH) + deflated_zeros(2**31)
    entry = {"name": "a.npy", "content": content, "size": len(header) + 1000, "method": DEFLATED}
    tracemalloc.start()
    try:
        assert "Bad CRC-32" in refusal(path, zipped(entry))
        assert tracemalloc.get_traced_memory()[1] < 3e7  # of which the archive itself is 2e6
    finally:
        tracemalloc.stop()


def test_a_long_header_is_not_read(path):
    text = b"\x93NUMPY\2\0" + struct.pack("<I", 2**26 - 12)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    content = packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH) + deflated_zeros(2**26)
    entry = {"name": "a.npy", "content": content, "size": 2**26, "method": DEFLATED}
    tracemalloc.start()
    try:
        assert "67,108,852 bytes" in refusal(path, zipped(entry))
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


def test_a_large_directory(path):
    entries = [{"name": f"{number}" + "x" * 60_000, "content": b""} for number in range(20)]
    assert "its directory takes 1,2" in refusal(path, zipped(*entries))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"flags": 0x1}, "'a' encrypted"),
        ({"flags": 0x40}, "'a' encrypted"),
        ({"flags": 0x20}, "damaged"),
        ({"method": zipfile.ZIP_BZIP2}, "'a' compressed by method 12"),
        ({"method": 99}, "method 99"),
        ({"size": 10**9}, "two sizes, 1000000000"),
        ({"size": 10**9, "packed_size": 10**9}, "beyond the end of the file"),
        ({"size": 10**9, "packed_size": 10**9, "method": DEFLATED}, "beyond the end of the file"),
        ({"crc": 1}, "Bad CRC-32"),
        ({"method": DEFLATED}, "damaged"),
    ],
    ids=str,
)
def test_entries_that_lie(said, reason, path):
    entry = {"name": "a.npy", "content": npy(np.arange(4.0))} | said
    assert reason in refusal(path, zipped(entry))


ORIGINAL = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([2, 3], np.uint8)}


@pytest.fixture(scope="module", params=[np.savez, np.savez_compressed])
def saved(request) -> bytes:
    buffer = io.BytesIO()
    request.param(buffer, **ORIGINAL)
    return buffer.getvalue()


def is_refused_or_intact(path: Path, content: bytes) -> bool:
    """Whether the content is refused by name; if not, each array that is found must be what was saved."""
    put(path, content)
    try:
        found = read_archive(path, list(ORIGINAL))
    except DatasetError as error:
        return str(path) in str(error)
    for name, array in found.items():
        assert array.dtype == ORIGINAL[name].dtype
        np.testing.assert_array_equal(array, ORIGINAL[name])
    return False


def test_every_flipped_byte(saved, path):
    refused = 0
    for position in range(len(saved)):
        damaged = bytearray(saved)
        damaged[position] ^= 0xFF
        refused += is_refused_or_intact(path, bytes(damaged))
    assert refused > len(saved) / 2  # dates, attributes and versions do not matter


def test_every_truncation(saved, path):
    for length in range(len(saved)):
        assert is_refused_or_intact(path, saved[:length])


@in_one_folder
@given(st.data())
def test_any_damage(saved, path, data):
    start = data.draw(st.integers(0, len(saved)))
    end = data.draw(st.integers(start, min(len(saved), start + 30)))
    is_refused_or_intact(path, saved[:start] + data.draw(st.binary(max_size=30)) + saved[end:])


@in_one_folder
@given(st.text(max_size=200) | st.just("(" * 9000) | st.just("-" * 9000 + "1") | st.just("[" * 90), st.data())
def test_any_header(path, text, data):
    header = text.encode()
    version = data.draw(st.integers(0, 4))
    content = b"\x93NUMPY" + struct.pack("<BBH", version, 0, len(header)) + header
    assert is_refused_or_intact(path, zipped({"name": "a.npy", "content": content}))
