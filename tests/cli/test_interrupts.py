"""Ctrl-C where libraries would crash of it or overlook it."""

import signal
import subprocess
import sys
import time

import pytest

from lapwing.cli.interrupts import interrupts_heeded, interrupts_held


def test_an_interrupt_waits_until_what_it_would_break_is_done():
    done = []

    def interrupted() -> None:
        with interrupts_held():
            signal.raise_signal(signal.SIGINT)
            done.append("all")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done == ["all"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Collected:
    """Python prints what its end raises, and goes on."""

    def __del__(self):
        raise self.error


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_only_an_interrupt_that_would_be_overlooked_is_made_again(error):
    Collected.error, interrupted = error, False
    try:
        with interrupts_heeded():
            Collected()
            time.sleep(1)
    except KeyboardInterrupt:
        interrupted = True
    assert interrupted == (error is KeyboardInterrupt)


INTERRUPTED = """
import signal, sys

awaited = sys.argv[1]

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == awaited:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from lapwing.cli.start import main
sys.argv[1:] = ["learn", "FourRoom"]
main()
"""


@pytest.mark.parametrize("module", ["lapwing.cli.main", "tyro", "jaxlib", "jax.numpy", "lapwing.runs.learn"])
def test_a_command_that_is_interrupted_while_it_is_imported_ends_with_one_line(tmp_path, module):
    command = [sys.executable, "-c", INTERRUPTED, module]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (130, "lapwing: interrupted\n")
    assert not list(tmp_path.iterdir())


BUSY = """
import signal, threading
import jax
import lapwing.cli.main, lapwing.cli.start

def work():
    product = jax.jit(lambda x: jax.lax.fori_loop(0, 10**6, lambda _, y: y @ x, x))
    product(jax.numpy.ones((64, 64)))  # goes on in a thread of XLA's
    signal.raise_signal(signal.SIGINT)

lapwing.cli.main.main = lambda: lapwing.cli.main.carry_out(work)
lapwing.cli.start.main()
"""


def test_an_interrupt_does_not_wait_for_what_is_still_computed(tmp_path):
    done = subprocess.run([sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "lapwing: interrupted\n")
