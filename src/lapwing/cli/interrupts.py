"""Ctrl-C at any moment: it ends a command with one line, also where libraries would crash or overlook it."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS_TO_TRY_AGAIN = 0.05


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Let Ctrl-C wait until the end: some libraries crash if they are interrupted while they are imported."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        raise KeyboardInterrupt


@contextmanager
def interrupts_heeded() -> Iterator[None]:
    """Interrupt again where Python could only print the interrupt, as in JAX's garbage collection."""
    before = sys.unraisablehook

    def hook(ignored: "sys.UnraisableHookArgs") -> None:
        if ignored.exc_type is KeyboardInterrupt:
            threading.Timer(SECONDS_TO_TRY_AGAIN, signal.raise_signal, [signal.SIGINT]).start()
        else:
            before(ignored)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
