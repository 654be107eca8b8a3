"""Experience in files: an .npz archive, an HDF5 file, or a folder of .npy files for data larger than memory.

All are validated when they are read: shapes, NaN, and their SHA-256. Nothing in them is executed.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from lapwing.data import archives, hdf5
from lapwing.data.archives import names_in, read_archive
from lapwing.data.experience import Experience
from lapwing.data.folders import is_data_folder, load_folder, without_manifest
from lapwing.data.hdf5 import HDF5_SUFFIXES, datasets_in, read_datasets
from lapwing.data.layouts import KEYS, experience_in
from lapwing.errors import ConfigError, DatasetError, nearest

FILE_SUFFIXES = (".npz", *HDF5_SUFFIXES)
"""Of the files that `load_experience` reads."""


def load_experience(path: str | Path, keys: Mapping[str, str] | None = None) -> Experience:
    """Read an .npz or HDF5 file, or a folder of `save_episodes`, whose observations are memory-mapped.

    A file holds `observations` with `lengths`, with `ends`, or with the flags of D4RL and OGBench:
    `terminals`, `timeouts`, `dones`, `next_observations`; optionally also `actions` and `rewards`.
    docs/data.md describes the layouts. Pickled content is rejected, never executed.

    Args:
        path: the file or folder.
        keys: the names of those arrays in the file, if they differ: `{"observations": "obs"}`.
    """
    path = Path(path)
    if is_data_folder(path):
        if keys:
            raise ConfigError(
                f"keys only work with .npz and HDF5 files, and {path} is a folder; leave them out"
            )
        return load_folder(path)
    with suppress(OSError):  # no folder can have such a name; what reads archives says so
        if path.is_dir():
            raise DatasetError(without_manifest(path))
    arrays = read_arrays(path, keys)
    digest = arrays.pop("sha256", None)
    try:
        experience = experience_in(arrays, held=array_names(path))
    except DatasetError as error:
        raise DatasetError(f"{path}: {error}") from error
    if digest is not None and digest.tobytes().hex() != experience.sha256():
        raise DatasetError(
            f"{path} is damaged: its content does not match its SHA-256 "
            "(if you changed it on purpose, leave the array sha256 out)"
        )
    return experience


def read_arrays(path: Path, keys: Mapping[str, str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of a file that lapwing looks at, by lapwing's names for them."""
    read = read_datasets if path.suffix in HDF5_SUFFIXES else read_archive
    if not keys:
        return read(path, (*KEYS, "sha256"))
    for role in keys:
        if role not in KEYS:
            raise ConfigError(f"keys name {role!r}, which is no array of lapwing's; {nearest(role, KEYS)}")
    renamed = set(keys.values()) - set(keys)  # which do not count by their own names as well
    names = {role: keys.get(role, role) for role in KEYS if role not in renamed}
    found = read(path, tuple(dict.fromkeys(names.values())))
    for role, name in keys.items():
        if name not in found:
            held = ", ".join(array_names(path))
            raise DatasetError(f"{path} holds no array {name!r}, as keys name for {role}; it holds {held}")
    return {role: found[name] for role, name in names.items() if name in found}


def as_keys(pairs: Iterable[str]) -> dict[str, str]:
    """The setting `keys`, pairs such as `observations=obs`, as `load_experience` takes them."""
    return dict(pair.split("=", 1) for pair in pairs)


def array_names(path: Path) -> list[str]:
    """The names of all that a file holds."""
    return datasets_in(path) if path.suffix in HDF5_SUFFIXES else names_in(path)


def array_kinds(path: Path) -> dict[str, tuple[np.dtype, tuple[int, ...]] | None]:
    """The type and shape of all that a file holds, none of which is read; None for what is no plain array."""
    return hdf5.kinds_in(path) if path.suffix in HDF5_SUFFIXES else archives.kinds_in(path)
