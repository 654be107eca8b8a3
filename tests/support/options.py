"""Options whose networks are random."""

import numpy as np

from lapwing.data.action_spaces import Bounds
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.options.option_set import NetworkOptions
from tests.support.representations import random_representation


def arena_options(**values) -> NetworkOptions:
    """As of an arena: networks see four numbers, φ the first two, actions are two numbers, states a Dict."""
    spec = EncoderSpec("mlp", (4,), 2, None, (4,))
    networks = tuple(random_representation(spec, seed).encoder for seed in (0, 1))
    phi = random_representation(EncoderSpec("mlp", (2,), 3, None, (4,)), 2)
    bounds = Bounds(np.array([-1.0, 0.5], np.float32), np.array([3.3, 0.7], np.float32))
    known = {"bounds": bounds, "key": "observation"} | values
    return NetworkOptions(networks, spec, phi, ((2, 1), (2, -1)), np.array([9.0, 9.0]), 50, **known)
