"""TwoRoom and a random representation of it for each kind of observation, for the wrappers' tests."""

from lapwing.envs.gridworld import GridWorld
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.mazes import read_maze
from tests.support.representations import random_representation

GAMMA = 0.9
WORLD = GridWorld(read_maze("TwoRoom"))
TABLES = {kind: WORLD.observations(kind) for kind in ("position", "index", "image")}
SPECS = {
    "position": EncoderSpec("fourier", (2,), 6, None, (16,), 8),
    "index": EncoderSpec("linear", (), 6, n_states=WORLD.n_states),
    "image": EncoderSpec("conv", TABLES["image"].shape[1:], 6),
}
REPRESENTATIONS = {kind: random_representation(spec) for kind, spec in SPECS.items()}
SEEKER_SPECS = {False: EncoderSpec("mlp", (2,), 4, None, (8,)), True: EncoderSpec("linear", (), 4, 9)}
