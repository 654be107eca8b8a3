"""Vectors of environments in forked processes."""

import sys
import warnings

import gymnasium
import jax
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from lapwing.errors import LapwingWarning
from lapwing.integrations.vector_wrappers import VectorLaplacianReward

GOAL = [0.0] * 4


def make() -> gymnasium.Env:
    return gymnasium.make("CartPole-v1")


@pytest.mark.skipif(sys.platform != "linux", reason="nothing is forked elsewhere")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("context", ["fork", "forkserver"])
def test_forked_workers_are_warned_of_with_a_remedy(context):
    jax.devices()  # starts it
    envs = AsyncVectorEnv([make], context=context)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            VectorLaplacianReward(envs, goal=GOAL, form="sparse")
    finally:
        envs.close()
    told = [str(warning.message) for warning in caught if warning.category is LapwingWarning]
    assert ["context='forkserver'" in words for words in told] == [True] * (context == "fork")


def test_vectors_without_processes_are_not():
    jax.devices()
    VectorLaplacianReward(SyncVectorEnv([make]), goal=GOAL, form="sparse")  # warnings are errors
