"""A cache of compiled programs on disk: a program is compiled once per machine.

JAX stores each program under its digest. This module sets the cache folder: one in the user's cache folder
for each combination of versions and CPU, because a program is native code and must not run on a CPU that
lacks its instructions. It is set only while lapwing runs, so that the caller's own programs are not stored.

The environment variable `LAPWING_COMPILATION_CACHE` names another folder, or turns the cache `off`. If JAX
already has a cache (`JAX_COMPILATION_CACHE_DIR`), that one is used and nothing is changed.
"""

import hashlib
import os
import platform
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache as jax_cache

from lapwing import storage
from lapwing._version import __version__
from lapwing.errors import ConfigError

SETTING, OFF = "LAPWING_COMPILATION_CACHE", ("off", "no", "false", "0")
MOST_BYTES = 1 << 28
"""The oldest programs are deleted when all of them take more."""
PROGRAMS = "lapwing-*/jit_*-cache"
"""How JAX names them, in folders of ours: the folder that a user names may have files of other kinds."""
LEAST_FREE = 1 << 28
"""With fewer bytes left on the disk nothing is kept."""


@contextmanager
def kept_programs() -> Iterator[None]:
    """Keep what is compiled inside, and load what was kept, if there is a folder for it; a decorator too."""
    check_devices()
    folder = None if getattr(jax.config, "jax_compilation_cache_dir", None) else programs_folder()
    if folder is None:
        yield
        return
    # A program that cannot be read or written is compiled, as it would be without a cache.
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")
    options = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
        "jax_persistent_cache_enable_xla_caches": "none",
    }
    before = {name: getattr(jax.config, name) for name in options}
    _configure(options)
    try:
        yield
    finally:
        _configure(before)


def check_devices() -> None:
    """Refuse a device that JAX is told to use and cannot find, as `JAX_PLATFORMS=cuda` without a GPU."""
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:  # which of them depends on the platform
        asked = getattr(jax.config, "jax_platforms", None)
        raise ConfigError(
            f"JAX_PLATFORMS={asked} asks for a device that JAX cannot use here"
            f"{f' ({error})' if str(error) else ''}; unset it or set it to cpu, or install JAX for that "
            "device, such as pip install 'jax[cuda12]' for a GPU of NVIDIA's"
        ) from error


def _configure(options: dict) -> None:
    """Set options of JAX's cache, which looks at them when it is used for the first time."""
    for name, value in options.items():
        jax.config.update(name, value)
    jax_cache.reset_cache()


def programs_folder() -> Path | None:
    """The folder for programs of this version on this CPU, made if it is missing.

    None if the setting is `off`, if the folder cannot be written to, if others could write to it, who then
    could let this process run any code, or if the disk is nearly full.
    """
    setting = os.environ.get(SETTING, "")
    if setting.lower() in OFF:
        return None
    kept = Path(setting).expanduser().absolute() if setting else storage.user_cache() / "compiled"
    folder = kept / f"lapwing-{__version__}-jax-{jax.__version__}-{machine_digest()}"
    if not storage.is_private_folder(folder, free=LEAST_FREE):
        return None
    _trim_once(kept)
    return folder


@cache
def machine_digest() -> str:
    """A name for what XLA compiles for: the instructions that this CPU has, and XLA's own flags."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    features = next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    built_for = f"{platform.machine()} {features} {os.environ.get('XLA_FLAGS', '')}"
    return hashlib.sha256(built_for.encode()).hexdigest()[:12]


@cache
def _trim_once(kept: Path) -> None:
    storage.trim_folder(kept, PROGRAMS, MOST_BYTES)
