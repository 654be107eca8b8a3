import copy
import io
import subprocess
import sys
from typing import get_args

import jax
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import ConfigError
from lapwing.integrations.torch import to_torch
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.laplacian.forward import What
from tests.support.fitted import OBSERVATIONS, REPRESENTATIONS
from tests.support.representations import (
    answer,
    assert_same,
    by_hand,
    random_observations,
    random_representation,
    specifications,
)

pytestmark = pytest.mark.numeric

WHATS = get_args(What)
TRACING = [
    pytest.mark.filterwarnings(f"ignore:`torch.jit.{name}` is deprecated:DeprecationWarning")
    for name in ("trace", "trace_method", "save", "load")
]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """The networks are small, and threads that wait for each other slow down all that runs beside them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=list(REPRESENTATIONS))
def kind(request) -> str:
    return request.param


@pytest.mark.parametrize("what", WHATS)
def test_torch_says_what_jax_says(kind, what):
    rep, batch = REPRESENTATIONS[kind], OBSERVATIONS[kind]
    module, expected = to_torch(rep, what), answer(rep, batch, what)
    found = module(torch.from_numpy(batch))
    assert found.dtype == torch.float32
    assert found.shape == expected.shape
    assert module.dim == expected.shape[1]
    assert_same(found.numpy(), expected)
    assert module(torch.from_numpy(batch[:0])).shape == (0, module.dim)


@settings(max_examples=60)
@given(specification=specifications(), seed=st.integers(0, 2**16))
def test_encoders_of_any_size_are_their_formula(specification, seed):
    spec = EncoderSpec(*specification)
    rep = random_representation(spec, seed)
    seen = random_observations(spec, 4, np.random.default_rng(seed))
    expected = np.stack([by_hand(rep, one) for one in seen])
    within = 1e-5 * np.abs(expected).max()
    for module, numbers in (
        (to_torch(rep, "phi"), torch.float32),
        (to_torch(rep, "phi").double(), torch.float64),
    ):
        found = module(torch.from_numpy(seen))
        assert found.dtype == numbers
        np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=within)


@pytest.mark.parametrize("name", ["conv", "bumps of images"])
def test_images_are_bytes_or_whole_numbers_or_floats(name):
    rep, images = REPRESENTATIONS[name], OBSERVATIONS[name]
    module, expected = to_torch(rep, "phi"), rep.phi(images)
    for other in (images.astype(np.int64), images / np.float32(255), images / 255):
        assert_same(module(torch.from_numpy(other)).numpy(), expected)


def test_indices_of_any_kind():
    rep = REPRESENTATIONS["linear"]
    for dtype in (torch.uint8, torch.int32, torch.int64):
        found = to_torch(rep, "phi")(torch.tensor([3, 8, 3], dtype=dtype))
        np.testing.assert_array_equal(found.numpy(), np.asarray(rep.encoder.weight)[[3, 8, 3]])


NEEDS_AN_EMBEDDING = """
import gymnasium, lapwing
from lapwing.laplacian.encoders import EncoderSpec
from tests.support.representations import random_representation
rep = random_representation(EncoderSpec("mlp", (2,), 4, None, (8,)))
env = gymnasium.make("lapwing/TwoRoom-v0")
for name, ask in {
    "embed": lambda: rep.embed([0.0, 0.0], "hitting"),
    "Forward": lambda: lapwing.Forward(rep, "hitting"),
    "to_torch": lambda: lapwing.to_torch(rep, "hitting"),
    "LaplacianObservation": lambda: lapwing.LaplacianObservation(env, rep, what="hitting"),
}.items():
    try:
        ask()
    except lapwing.errors.ConfigError as error:
        print(name, "'hitting'" in str(error))
"""


def test_hitting_is_refused_by_all_that_needs_an_embedding():
    """In a process of its own, for here annotations are checked before the words are looked at."""
    script = [sys.executable, "-c", NEEDS_AN_EMBEDDING]
    found = subprocess.run(script, capture_output=True, text=True, check=True)
    names = ("embed", "Forward", "to_torch", "LaplacianObservation")
    assert found.stdout.splitlines() == [f"{name} True" for name in names]


def test_nothing_in_it_learns(kind):
    module = to_torch(REPRESENTATIONS[kind])
    assert list(module.parameters()) == []
    assert module.state_dict()
    assert not any(tensor.requires_grad for tensor in module.state_dict().values())
    assert not any(isinstance(part, torch.nn.Linear | torch.nn.Conv2d) for part in module.modules())


@pytest.mark.parametrize("kind", ["fourier", "mlp", "bumps"])
def test_the_gradient_with_respect_to_the_input_is_that_of_jax(kind):
    rep, batch = REPRESENTATIONS[kind], OBSERVATIONS[kind][:2]
    module = to_torch(rep, "commute")
    for one in batch:
        expected = np.asarray(jax.jacobian(lambda x: rep.embed(x, "commute"))(jax.numpy.asarray(one)))
        found = torch.autograd.functional.jacobian(
            lambda x: module(x[None])[0], torch.from_numpy(one)
        ).numpy()
        assert_same(found, expected, within=1e-4)


@pytest.mark.parametrize("name", ["conv", "bumps of images"])
def test_the_gradient_with_respect_to_an_image_is_its_slope(name):
    module = to_torch(REPRESENTATIONS[name], "unit").double()
    images = torch.rand(2, *module.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(module, images.requires_grad_(), fast_mode=True)


def test_a_state_dict_is_all_there_is(kind):
    rep, batch = REPRESENTATIONS[kind], torch.from_numpy(OBSERVATIONS[kind])
    module, other = to_torch(rep, "heat"), to_torch(rep, "heat")
    for tensor in other.state_dict().values():
        tensor.zero_()
    assert not torch.equal(module(batch), other(batch))
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(module(batch), other(batch))
    assert torch.equal(module(batch), copy.deepcopy(module)(batch))


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=TRACING) for kind in REPRESENTATIONS])
def test_it_can_be_traced_and_saved(kind):
    module, batch = to_torch(REPRESENTATIONS[kind], "unit"), torch.from_numpy(OBSERVATIONS[kind])
    traced, file = torch.jit.trace(module, batch[:2]), io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    for other in (traced, torch.jit.load(file)):
        assert torch.equal(other(batch), module(batch))


@pytest.mark.slow
def test_it_can_be_exported_for_batches_of_any_size(kind):
    module, batch = to_torch(REPRESENTATIONS[kind], "unit"), torch.from_numpy(OBSERVATIONS[kind])
    exported = torch.export.export(module, (batch,), dynamic_shapes=({0: torch.export.Dim("n")},)).module()
    for count in (2, 4, 9):
        assert_same(exported(batch[:count]).numpy(), module(batch[:count]).numpy(), within=1e-6)


@pytest.mark.parametrize(
    ("kind", "wrong", "words"),
    [
        ("fourier", torch.zeros(4, 3), r"\(4, 3\).*\(n, 2\)"),
        ("fourier", torch.zeros(2), r"batch.* \[None\]"),
        ("linear", torch.tensor([1.0]), r"torch\.float32"),
        ("linear", torch.tensor([True]), r"torch\.bool"),
        ("conv", torch.zeros(2, 3, 5, 6), r"\(2, 3, 5, 6\).*\(5, 6, 3\)"),
        ("bumps", torch.zeros(4, 2), r"\(4, 2\).*\(n, 3\)"),
    ],
)
def test_what_does_not_fit_is_refused(kind, wrong, words):
    with pytest.raises(ConfigError, match=words):
        to_torch(REPRESENTATIONS[kind])(wrong)


@pytest.mark.parametrize("index", [-1, 9])
def test_an_index_out_of_range_is_refused(index):
    with pytest.raises(IndexError):
        to_torch(REPRESENTATIONS["linear"])(torch.tensor([0, index]))
