"""What is in a folder, to compare it with another's."""

from pathlib import Path


def content(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, hidden files too, but for the lock."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def without_times(value):
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if "second" not in k and k != "run"}
    return [without_times(each) for each in value] if isinstance(value, list) else value
