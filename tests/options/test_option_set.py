"""Options as files, and what is refused of a file that is none."""

import dataclasses

import gymnasium
import numpy as np
import pytest

import lapwing
from lapwing import storage
from lapwing.data.action_spaces import Bounds
from lapwing.errors import CheckpointError, ConfigError
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.options.option_set import NetworkOptions, load_options
from tests.support.options import arena_options
from tests.support.representations import random_representation


@pytest.fixture(scope="module")
def options():
    return lapwing.discover_options("TwoRoom", count=4, exact=True)


def test_options_are_the_same_after_a_file(options, tmp_path):
    options.save(tmp_path / "o.safetensors")
    read = load_options(tmp_path / "o.safetensors")
    for name in ("actions", "begins", "stops"):
        np.testing.assert_array_equal(getattr(read.table, name), getattr(options.table, name))
    assert (read.names, read.longest, read.n_actions) == (options.names, options.longest, 4)
    np.testing.assert_array_equal(
        read.begins(options.observations[7]), options.begins(options.observations[7])
    )


def test_networks_are_the_same_after_a_file(tmp_path):
    spec = EncoderSpec("mlp", (2,), 3, None, (4,))
    networks = tuple(random_representation(spec, seed).encoder for seed in (0, 1))
    phi = random_representation(EncoderSpec("mlp", (2,), 3, None, (4,)), 2)
    options = NetworkOptions(networks, spec, phi, ((2, 1), (2, -1)), np.array([0.1, 0.2]), 50)
    options.save(tmp_path / "o.safetensors")
    read, seen = load_options(tmp_path / "o.safetensors"), np.array([[0.3, -0.4], [1.0, 2.0]], np.float32)
    for option in (0, 1):
        np.testing.assert_allclose(read.values(option, seen), options.values(option, seen), rtol=1e-6)
        assert read.act(option, seen[0]) == options.values(option, seen)[0].argmax()
        climbed = (1, -1)[option] * float(phi.eigenfunctions(seen[1])[1])
        assert read.height(option, seen[1]) == pytest.approx(climbed, abs=1e-5)
        for level in (climbed - 0.1, climbed + 0.1):
            ending = dataclasses.replace(read, levels=np.full(2, level))
            assert ending.stops(option, seen[1]) == (climbed >= level)
    assert read.names == ("f2+", "f2-")


def test_actors_are_the_same_after_a_file(tmp_path):
    options, seen = arena_options(), np.array([0.3, -0.4, 2.0, 1.0], np.float32)
    options.save(tmp_path / "o.safetensors")
    read = load_options(tmp_path / "o.safetensors")
    assert (read.n_actions, read.key, read.shape) == (0, "observation", (4,))
    for option in (0, 1):
        action = read.act(option, seen)
        np.testing.assert_array_equal(action, options.act(option, seen))
        assert gymnasium.spaces.Box(*options.bounds).contains(action)
        climbed = (1, -1)[option] * float(options.representation.eigenfunctions(seen[:2])[1])
        assert read.height(option, seen) == pytest.approx(climbed, abs=1e-5)
        assert read.height(option, seen * [1, 1, 5, -5]) == read.height(option, seen)
    with pytest.raises(ConfigError, match="shape"):
        read.height(0, np.zeros(7))


@pytest.mark.parametrize(
    "wrong",
    [
        {"bounds": Bounds(np.zeros(3, np.float32), np.ones(3, np.float32))},
        {"bounds": Bounds(np.zeros(2, np.float32), np.full(2, np.inf, np.float32))},
        {"representation": random_representation(EncoderSpec("mlp", (3,), 3, None, (4,)), 2)},
    ],
)
def test_forged_actors_are_refused(wrong, tmp_path):
    dataclasses.replace(arena_options(), **wrong).save(tmp_path / "o.safetensors")
    with pytest.raises(CheckpointError, match=r"o\.safetensors"):
        load_options(tmp_path / "o.safetensors")


def test_networks_take_states_that_are_numbers():
    spec = EncoderSpec("linear", (), 3, 5)
    network = random_representation(spec).encoder
    phi = random_representation(EncoderSpec("linear", (), 3, 5))
    options = NetworkOptions((network,), spec, phi, ((2, 1),), np.array([0.1]), 50, first_state=2)
    assert options.height(0, 3) == pytest.approx(float(phi.eigenfunctions(1)[1]), abs=1e-5)
    np.testing.assert_allclose(options.values(0, np.array([2, 6])), np.asarray(network.weight)[[0, 4]])
    assert options.act(0, 3) == np.argmax(network.weight[1])
    with pytest.raises(ConfigError, match="outside"):
        options.act(0, 1)


def test_an_unknown_observation_is_refused(options):
    with pytest.raises(ConfigError, match="states"):
        options.act(0, np.array([0.123, 0.456], np.float32))


@pytest.mark.parametrize("what", ["actions", "stops", "observations"])
def test_a_forged_table_is_refused(options, tmp_path, what):
    path = tmp_path / "o.safetensors"
    options.save(path)
    tensors, manifest = storage.read_tensors(path)
    tensors[what] = tensors[what] + 9 if what == "actions" else tensors[what][:-1].copy()
    storage.write_tensors(path, tensors, manifest)
    with pytest.raises(CheckpointError, match="description"):
        load_options(path)


def test_other_files_are_refused(tmp_path):
    storage.write_tensors(tmp_path / "x.safetensors", {"a": np.zeros(2)}, {"format": 1, "kind": "agent"})
    with pytest.raises(CheckpointError, match="agent"):
        load_options(tmp_path / "x.safetensors")
    with pytest.raises(ConfigError, match="no options"):
        load_options(tmp_path)
