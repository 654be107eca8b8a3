"""Properties of this machine: its memory, and its cache folder."""

import os
import sys
from pathlib import Path


def memory_bytes() -> int:
    """The memory of this machine; 4 TiB where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 1 << 42


def user_cache() -> Path:
    """The folder for what lapwing can make again, which need not be there yet.

    `LAPWING_CACHE` names it; else it is `lapwing` in the folder that the system has for such files.
    """
    if os.environ.get("LAPWING_CACHE"):
        return Path(os.environ["LAPWING_CACHE"]).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "lapwing" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "lapwing"
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if Path(home).is_absolute() else Path.home() / ".cache") / "lapwing"
