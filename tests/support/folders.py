"""Files of a folder: what they hold, and new content in their place."""

from pathlib import Path


def content(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, hidden files too, but for the lock."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def put(path: Path, content: bytes | bytearray) -> None:
    """Give a file other content, hundreds of times in a second: overwriting waits for the disk on ext4."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def without_times(value):
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if "second" not in k and k != "run"}
    return [without_times(each) for each in value] if isinstance(value, list) else value
