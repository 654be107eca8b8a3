import time

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing import timing
from lapwing.timing import stopwatch

HUNDREDTHS = 300
"""The ends of the spans that hypothesis draws lie on a raster, so that a union can be counted."""


def compile_something_new(salt: float):
    """A program that no cache in this process knows, run on a number."""
    return jax.jit(lambda x: jnp.sin(x * salt) + jnp.cumsum(jnp.ones(7) * salt))(jnp.float32(1.0))


def spans_on_a_raster():
    ends = st.tuples(st.integers(0, HUNDREDTHS), st.integers(0, HUNDREDTHS)).map(sorted)
    return st.lists(ends.map(tuple), max_size=12)


def test_compilation_is_not_counted_as_work():
    with stopwatch() as watch:
        began = time.perf_counter()
        compile_something_new(0.123)
        compiled = time.perf_counter() - began
        time.sleep(0.1)
        passed = time.perf_counter() - began
    assert 0 < watch.compiling <= compiled
    assert 0.1 <= watch.working < passed
    told = watch.working, watch.compiling
    assert sum(told) == pytest.approx(passed, rel=0.5)
    compile_something_new(3.333)
    assert (watch.working, watch.compiling) == told, "what comes after the block does not count"


def test_what_was_compiled_before_takes_no_time_again():
    program = jax.jit(lambda x: x * 0.456 + jnp.arange(5.0))
    argument = jnp.float32(2.0)
    jax.block_until_ready(program(argument))
    with stopwatch() as watch:
        jax.block_until_ready(program(argument))
    assert watch.compiling == 0
    assert watch.working > 0


def test_a_function_within_a_function_is_not_counted_twice():
    """The inner trace is part of the outer one: summed up they would exceed what has passed."""
    inner = [jax.jit(lambda x, k=k: jnp.tanh(x) * (k + 0.321)) for k in range(20)]

    @jax.jit
    def outer(x):
        for function in inner:
            x = function(x)
        return x

    began = time.perf_counter()
    with stopwatch() as watch:
        outer(jnp.ones(3))
    assert 0 < watch.compiling <= time.perf_counter() - began
    assert watch.working >= 0


def test_a_stopwatch_within_another_sees_its_own_part_alone():
    with stopwatch() as outer:
        compile_something_new(1.111)
        with stopwatch() as first:
            time.sleep(0.05)
        with stopwatch() as second:
            compile_something_new(2.222)
    assert first.compiling == 0
    assert first.working >= 0.05
    assert second.compiling > 0
    assert outer.compiling > second.compiling
    assert outer.working >= first.working + second.working


def test_a_block_that_fails_is_timed_and_its_error_passed_on():
    def fail() -> None:
        compile_something_new(4.444)
        time.sleep(0.05)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"), stopwatch() as watch:
        fail()
    assert watch.compiling > 0
    assert watch.working >= 0.05


@given(spans_on_a_raster())
def test_the_union_of_spans_is_what_counting_gives(spans):
    covered = {cell for begin, end in spans for cell in range(begin, end)}
    found = timing._covered([(begin / 100, end / 100) for begin, end in spans])
    assert found == pytest.approx(len(covered) / 100, abs=1e-9)


def test_a_stopwatch_that_is_done_leaves_nothing_behind():
    with stopwatch():
        compile_something_new(5.555)
    compile_something_new(6.666)
    assert not timing._running()
