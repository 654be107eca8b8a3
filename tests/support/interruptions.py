"""Runs that are cut off, as Ctrl-C would."""


class Interrupted(BaseException):
    """What Ctrl-C would raise."""


def stop_at(phase: str, step: int):
    """A progress callback that interrupts a phase."""

    def on_progress(named, done, total, metrics):
        if named == phase and done >= step:
            raise Interrupted

    return on_progress
