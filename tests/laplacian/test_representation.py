import dataclasses
import hashlib
import json
import pickle
import re

import equinox as eqx
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from lapwing import storage
from lapwing.errors import CheckpointError, ConfigError, DatasetError, LapwingWarning, StorageError
from lapwing.laplacian.distances import mean_distance
from lapwing.laplacian.model_files import named_arrays
from lapwing.laplacian.representation import Representation, load_representation
from tests.support.fitted import OBSERVATIONS, REPRESENTATIONS
from tests.support.folders import put

pytestmark = pytest.mark.numeric

FILTERS = ("soft", "unit", "commute", "biharmonic", "heat")
positions = hnp.arrays(np.float32, 2, elements=st.floats(-1, 1, width=32))


@pytest.fixture(params=list(REPRESENTATIONS))
def kind(request) -> str:
    return request.param


@pytest.mark.parametrize(
    "changed",
    [
        {"step": {"observation": 0.2, "distance": {"soft": 1.0}}},
        {"step": {"observation": 0.1, "distance": {"soft": 2.0}}},
        {"maze": "G.\n"},
        {"arena": {"name": "PointUMaze"}},
        {"trusted": [0, 1]},
        {"settings": {"rotate": False, "observation": "position"}},
        {"settings": {"rotate": True, "observation": "image"}},
        {"settings": {"rotate": True, "observation": "position", "observation_key": "where"}},
    ],
)
def test_the_digest_covers_what_wrappers_and_agents_take_from_the_configuration(changed, tmp_path):
    config = {
        "step": {"observation": 0.1, "distance": {"soft": 1.0}},
        "settings": {"rotate": True, "observation": "position"},
    }
    rep = dataclasses.replace(REPRESENTATIONS["fourier"], config=config)
    other = dataclasses.replace(rep, config=config | changed)
    assert rep.sha256() != other.sha256()
    for one in (rep, other):
        one.save(tmp_path / "phi.safetensors")
        assert load_representation(tmp_path / "phi.safetensors").sha256() == one.sha256()


def test_the_digest_covers_what_is_computed_with():
    rep = REPRESENTATIONS["mlp"]
    weight = np.asarray(rep.encoder.layers[0].weight)
    encoder = eqx.tree_at(lambda net: net.layers[0].weight, rep.encoder, jnp.asarray(weight + 1))
    changes = [{"encoder": encoder}, {"soft_distance": 2 * rep.soft_distance}]
    changes += [{name: getattr(rep, name) + 1} for name in ("eigenvalues", "coefficients", "reference")]
    digests = {dataclasses.replace(rep, **change).sha256() for change in changes}
    assert len(digests | {rep.sha256()}) == len(changes) + 1
    later = dataclasses.replace(rep, config=rep.config | {"provenance": {"lapwing": "99"}})
    assert later.sha256() == rep.sha256()


def test_one_observation_or_a_batch(kind):
    rep, batch = REPRESENTATIONS[kind], OBSERVATIONS[kind]
    for method, width in ((rep.phi, 6), (rep.eigenfunctions, 4)):
        many = method(batch)
        assert many.shape == (9, width)
        assert many.dtype == np.float32
        one = method(batch[3])
        assert one.shape == (width,)
        np.testing.assert_allclose(one, many[3], rtol=1e-5, atol=1e-6)
        assert method(batch[:1]).shape == (1, width)
        assert method(batch[:0]).shape == (0, width)


def test_distances_between_one_and_one_one_and_many_row_by_row(kind):
    rep, batch = REPRESENTATIONS[kind], OBSERVATIONS[kind]
    for filter in FILTERS:
        embedded = rep.embed(batch, filter)
        assert embedded.shape == (9, 6 if filter == "soft" else 3)
        expected = np.linalg.norm(embedded - embedded[2], axis=1)
        np.testing.assert_allclose(rep.distance(batch, batch[2], filter), expected, atol=1e-5)
        np.testing.assert_allclose(rep.distance(batch[2], batch, filter), expected, atol=1e-5)
        assert np.shape(rep.distance(batch[0], batch[2], filter)) == ()
        assert rep.distance(batch[0], batch[2], filter) == pytest.approx(expected[0], abs=1e-5)
        rows = rep.distance(batch[:4], batch[5:], filter)
        np.testing.assert_allclose(rows, np.linalg.norm(embedded[:4] - embedded[5:], axis=1), atol=1e-5)


def test_numpy_gives_numpy_and_jax_gives_jax(kind):
    rep, batch = REPRESENTATIONS[kind], OBSERVATIONS[kind]
    for answer in (rep.phi, rep.eigenfunctions, rep.embed, lambda x: rep.embed(x, "heat")):
        for chosen in (batch, batch[0]):
            plain, traced = answer(chosen), answer(jnp.asarray(chosen))
            assert isinstance(plain, np.ndarray)
            assert isinstance(traced, jax.Array)
            np.testing.assert_allclose(plain, traced, rtol=1e-5, atol=1e-5)
    assert isinstance(rep.distance(batch, batch[0]), np.ndarray)
    assert isinstance(rep.distance(jnp.asarray(batch), batch[0]), jax.Array)
    assert isinstance(rep.distance(batch[1], jnp.asarray(batch[0])), jax.Array)
    listed = rep.phi(batch.tolist())
    assert isinstance(listed, np.ndarray)
    np.testing.assert_allclose(listed, rep.phi(batch), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["linear", "fourier", "mlp"])
def test_every_method_works_under_jit_and_vmap(kind):
    rep, batch = REPRESENTATIONS[kind], jnp.asarray(OBSERVATIONS[kind])

    @jax.jit
    def answers(batch):
        one_by_one = jax.vmap(rep.eigenfunctions)(batch)
        return rep.phi(batch), one_by_one, rep.distance(batch, batch[0], "commute")

    phi, functions, distances = answers(batch)
    np.testing.assert_allclose(phi, rep.phi(batch), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(functions, rep.eigenfunctions(batch), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(distances, rep.distance(batch, batch[0], "commute"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("filter", [*FILTERS, "hitting"])
def test_the_distance_has_a_gradient(filter):
    rep = REPRESENTATIONS["mlp"]
    here, there = (jnp.asarray(OBSERVATIONS["mlp"][row]) for row in (0, 1))
    gradient = jax.jit(jax.grad(lambda x: rep.distance(x, there, filter)))(here)
    for axis in range(5):
        step = 1e-2 * jnp.eye(5)[axis]
        slope = (rep.distance(here + step, there, filter) - rep.distance(here - step, there, filter)) / 2e-2
        largest = float(jnp.abs(gradient).max())
        assert float(gradient[axis]) == pytest.approx(float(slope), rel=0.05, abs=5e-3 * max(1, largest))


def test_the_gradient_of_the_distance_is_finite_where_there_is_none():
    rep, here = REPRESENTATIONS["mlp"], jnp.asarray(OBSERVATIONS["mlp"][0])
    for gradient in (
        jax.grad(lambda x: rep.distance(x, here))(here),
        jax.grad(lambda x: rep.distance(x, x))(here),
    ):
        assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(gradient, np.zeros(5))


def test_a_state_far_outside_of_the_data_is_warned_of_once(four_room):
    rep = dataclasses.replace(four_room)
    inside, unseen = [0.0, -0.5], [1.1, -1.2]
    rep.distance(inside, unseen)  # warnings are errors
    with pytest.warns(LapwingWarning, match="feature 1"):
        rep.distance(inside, [0.0, 45.0])
    rep.distance([0.0, 45.0], inside)
    assert "ranges" in rep.config


def test_ranges_of_another_shape_are_refused(four_room, tmp_path):
    path = tmp_path / "phi.safetensors"
    dataclasses.replace(four_room, config=four_room.config | {"ranges": [[0.0, 1.0]]}).save(path)
    with pytest.raises(CheckpointError, match=path.name):
        load_representation(path)


@pytest.mark.parametrize("count", [1, 3, 4_097, 9_000])
def test_batches_of_any_size(count):
    rep = REPRESENTATIONS["fourier"]
    batch = np.random.default_rng(count).uniform(-1, 1, (count, 2)).astype(np.float32)
    phi = rep.phi(batch)
    assert phi.shape == (count, 6)
    for row in {0, count // 2, count - 1}:
        np.testing.assert_allclose(phi[row], rep.phi(batch[row]), rtol=1e-4, atol=1e-5)


def test_eigenfunctions_combine_phi_and_the_constant(kind):
    rep, batch = REPRESENTATIONS[kind], OBSERVATIONS[kind]
    phi = rep.phi(batch).astype(np.float64)
    expected = np.column_stack([np.ones(9), phi]) @ rep.coefficients.astype(np.float64)
    np.testing.assert_allclose(rep.eigenfunctions(batch), expected, atol=1e-5)
    np.testing.assert_allclose(rep.eigenfunctions(batch)[:, 0], 1.0)


def test_a_learned_representation_answers_for_observations_it_never_saw(four_room):
    between_cells = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    phi = four_room.phi(between_cells)
    assert phi.shape == (50, 8)
    assert np.isfinite(phi).all()
    assert four_room.eigenfunctions(between_cells).shape == (50, 4)
    np.testing.assert_allclose(four_room.eigenfunctions(between_cells)[:, 0], 1.0, atol=1e-4)
    outside = four_room.phi(np.array([1e6, -1e6]))
    assert np.isfinite(outside).all()
    assert four_room.dim == 4
    assert four_room.eigenvalues[0] == pytest.approx(0, abs=1e-9)
    assert np.all(np.diff(four_room.eigenvalues) >= 0)


@pytest.mark.parametrize(
    ("kind", "wrong", "taken"),
    [
        ("fourier", (3,), r"\(n, 2\)"),
        ("fourier", (2, 2, 2), r"\(n, 2\)"),
        ("fourier", (), ""),
        ("linear", (3, 2), r"\(n,\)"),
    ],
)
def test_a_wrong_shape_is_refused(kind, wrong, taken):
    dtype = int if kind == "linear" else float
    for convert in (np.asarray, jnp.asarray):
        with pytest.raises(ConfigError, match=f"{re.escape(str(wrong))}.*{taken}"):
            REPRESENTATIONS[kind].phi(convert(np.zeros(wrong, dtype)))


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_nan_and_infinity_are_refused_by_row(bad):
    rep, batch = REPRESENTATIONS["fourier"], np.zeros((5, 2))
    batch[3, 1] = bad
    for answer in (rep.phi, rep.eigenfunctions):
        with pytest.raises(DatasetError, match="observation 3"):
            answer(batch)
    with pytest.raises(DatasetError, match="observation 0"):
        rep.distance(np.zeros(2), batch[3])


@pytest.mark.parametrize("index", [-1, 9])
def test_an_index_out_of_range_is_refused(index):
    for wrong in (index, np.array([0, index, 3])):
        with pytest.raises(ConfigError, match=f"index {index} .* 8"):
            REPRESENTATIONS["linear"].phi(wrong)
    with pytest.raises(ConfigError, match="float64"):
        REPRESENTATIONS["linear"].phi(np.array([1.0, 2.0]))


@pytest.mark.parametrize("filter", FILTERS)
@settings(max_examples=25)
@given(a=positions, b=positions, c=positions)
def test_the_distance_is_a_metric(four_room, filter, a, b, c):
    ab, ba, bc, ac = (four_room.distance(x, y, filter) for x, y in ((a, b), (b, a), (b, c), (a, c)))
    assert ab >= 0
    assert ab == ba
    assert four_room.distance(a, a.copy(), filter) == 0
    assert ac <= ab + bc + 1e-4 * (1 + ab + bc)


@pytest.mark.parametrize(
    ("filter", "t", "weights"),
    [
        ("unit", None, [1, 1, 1]),
        ("commute", None, [1, 2**-0.5, 8**-0.5]),
        ("biharmonic", None, [1, 1 / 2, 1 / 8]),
        ("heat", None, [10**-0.125, 10**-0.25, 0.1]),
        ("heat", 30.0, np.exp([-0.3, -0.6, -2.4])),
        ("heat", 5_000.0, np.exp([0, -50, -350])),
    ],
)
def test_an_embedding_is_the_weighed_eigenfunctions_on_the_scale_of_phi(kind, filter, t, weights):
    """Every filter leaves the constant out and has the mean distance of `soft`, over the data."""
    rep, batch = REPRESENTATIONS[kind], OBSERVATIONS[kind]
    functions = rep.eigenfunctions(batch)[:, 1:] * np.asarray(weights, np.float32)

    def distances(points):
        return np.linalg.norm(points[:, None] - points[None], axis=-1)

    expected = distances(functions) * distances(rep.phi(batch)).mean() / distances(functions).mean()
    found = distances(rep.embed(batch, filter, t=t))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert found.mean() == pytest.approx(distances(rep.embed(batch, "soft")).mean(), rel=1e-3)


def test_mean_distance_is_over_all_pairs():
    points = np.random.default_rng(0).standard_normal((40, 3))
    expected = np.mean([[np.linalg.norm(a - b) for a in points] for b in points])
    assert mean_distance(points) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("filter", "t", "words"),
    [
        ("heat", 0.0, "t=0.0"),
        ("heat", np.nan, "t=nan"),
        ("heat", 1e9, "lower t"),
        ("soft", 1.0, "heat"),
        ("unit", 1.0, "heat"),
    ],
)
def test_a_time_that_makes_no_sense_is_refused(filter, t, words):
    with pytest.raises(ConfigError, match=words):
        REPRESENTATIONS["mlp"].embed(OBSERVATIONS["mlp"], filter, t=t)


def rep_distances() -> tuple[str, ...]:
    """What needs single eigenfunctions."""
    return (*FILTERS[1:], "hitting")


def test_filters_need_single_eigenfunctions():
    rep = dataclasses.replace(REPRESENTATIONS["mlp"], config={"settings": {"rotate": False}})
    assert not rep.rotated
    here, there = OBSERVATIONS["mlp"][:2]
    assert rep.distance(here, there) == rep.distance(here, there, "soft") > 0
    for filter in rep_distances():
        with pytest.raises(ConfigError, match=f"'{filter}'.*rotate=True"):
            rep.distance(here, there, filter)
    assert (rep.filters, rep.distances, rep.default_filter) == (("soft",), ("soft",), "soft")


def test_filters_need_more_than_the_constant():
    whole = REPRESENTATIONS["mlp"]
    rep = dataclasses.replace(
        whole,
        eigenvalues=whole.eigenvalues[:1],
        coefficients=whole.coefficients[:, :1],
        reference=whole.reference[:, :1],
    )
    assert rep.dim == 1
    assert rep.eigenfunctions(OBSERVATIONS["mlp"]).shape == (9, 1)
    with pytest.raises(ConfigError, match=r"'unit'.* dim .* 1"):
        rep.embed(OBSERVATIONS["mlp"], "unit")
    assert rep.distances == ("soft",)
    np.testing.assert_array_equal(rep.embed(OBSERVATIONS["mlp"]), rep.phi(OBSERVATIONS["mlp"]))


def test_without_a_filter_the_distance_is_biharmonic(kind):
    rep, batch = REPRESENTATIONS[kind], OBSERVATIONS[kind]
    assert (rep.filters, rep.distances) == (FILTERS, (*FILTERS, "hitting"))
    np.testing.assert_array_equal(rep.embed(batch), rep.embed(batch, "biharmonic"))
    found = rep.distance(batch, batch[2])
    np.testing.assert_array_equal(found, rep.distance(batch, batch[2], "biharmonic"))
    assert not np.allclose(found, rep.distance(batch, batch[2], "soft"))


def hitting_by_hand(rep, here, goal, kept=slice(None)) -> np.ndarray:
    """Σ (f(g)² - f(s) f(g))/λ, function by function."""
    at, to = (np.asarray(rep.eigenfunctions(end), np.float64)[..., 1:][..., kept] for end in (here, goal))
    return np.sum((to**2 - at * to) / rep.eigenvalues[1:][kept], axis=-1)


def test_hitting_is_the_sum_over_eigenfunctions(kind):
    """One against one, one against many, row by row; from the first to the second, in NumPy and JAX."""
    rep, batch = REPRESENTATIONS[kind], OBSERVATIONS[kind]
    one, many = batch[2], batch[3:7]
    scale = np.abs(hitting_by_hand(rep, batch, one)).max()
    for here, goal in ((one, batch[5]), (many, one), (one, many), (batch[:4], batch[5:])):
        expected = hitting_by_hand(rep, here, goal)
        for convert in (np.asarray, jnp.asarray):
            found = rep.distance(convert(here), convert(goal), "hitting")
            assert isinstance(found, jax.Array) == (convert is jnp.asarray)
            assert np.shape(found) == np.shape(expected)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * scale)
    assert rep.distance(one, one, "hitting") == 0
    there, back = rep.distance(one, batch[5], "hitting"), rep.distance(batch[5], one, "hitting")
    assert abs(there - back) > 1e-3 * scale


def test_hitting_has_no_time():
    rep, batch = REPRESENTATIONS["mlp"], OBSERVATIONS["mlp"]
    with pytest.raises(ConfigError, match=r"t=1\.0"):
        rep.distance(batch, batch[0], "hitting", t=1.0)


def test_the_mean_hitting_time_is_that_of_the_data():
    """Over independent states, where eigenfunctions are orthonormal; other distances share their mean."""
    functions = np.linalg.qr(np.column_stack([np.ones(9), np.random.default_rng(0).normal(size=(9, 3))]))[0]
    rep = REPRESENTATIONS["linear"]
    table = (3 * functions[:, 1:]).astype(np.float32)
    encoder = eqx.tree_at(lambda net: net.weight, rep.encoder, jnp.asarray(np.pad(table, ((0, 0), (0, 3)))))
    coefficients = np.zeros((7, 4), np.float32)
    coefficients[0, 0] = coefficients[1, 1] = coefficients[2, 2] = coefficients[3, 3] = 1
    rep = dataclasses.replace(rep, encoder=encoder, coefficients=coefficients)
    states = np.arange(9)
    pairs = np.stack([rep.distance(states, goal, "hitting") for goal in states])
    assert pairs.mean() == pytest.approx(np.sum(1 / rep.eigenvalues[1:]), rel=1e-4)
    assert rep.mean_distance("hitting") == pytest.approx(pairs.mean(), rel=1e-4)
    assert {rep.mean_distance(filter) for filter in FILTERS} == {rep.soft_distance}


def trusting(kind: str, trusted: list[int]) -> Representation:
    rep = REPRESENTATIONS[kind]
    return dataclasses.replace(rep, config=rep.config | {"trusted": trusted})


@pytest.mark.parametrize("filter", [*FILTERS[1:], "hitting"])
def test_what_is_not_trusted_weighs_nothing(kind, filter, tmp_path):
    """Nor does it in the common scale; the others keep their proportions."""
    rep, batch, plain = trusting(kind, [0, 1, 3]), OBSERVATIONS[kind], REPRESENTATIONS[kind]
    rep.save(tmp_path / "rep.safetensors")
    for one in (rep, load_representation(tmp_path / "rep.safetensors")):
        weights, all_of_them = one.filter_weights(filter), plain.filter_weights(filter)
        assert weights[1] == 0
        assert weights[2] / weights[0] == pytest.approx(all_of_them[2] / all_of_them[0], rel=1e-5)
        for keyword, expected in (({}, weights), ({"trusted_only": False}, all_of_them)):
            np.testing.assert_array_equal(one.filter_weights(filter, **keyword), expected)
            goal, functions = batch[4], plain.eigenfunctions(batch)[:, 1:] * expected
            there = functions[4]
            by_hand = np.linalg.norm(functions - there, axis=1)
            if filter == "hitting":
                by_hand = np.sum(there * (there - functions), axis=1)
            found = one.distance(batch, goal, filter, **keyword)
            np.testing.assert_allclose(found, by_hand, rtol=1e-4, atol=1e-4 * np.abs(by_hand).max())
            if filter != "hitting":
                embedded = one.embed(batch, filter, **keyword)
                np.testing.assert_allclose(embedded, functions, rtol=1e-4, atol=1e-4)
                assert mean_distance(plain.reference[:, 1:] * expected) == pytest.approx(
                    plain.soft_distance, rel=1e-4
                )


def test_the_mean_hitting_time_is_of_what_is_trusted():
    rep = trusting("mlp", [0, 1, 3])
    assert rep.mean_distance("hitting") == pytest.approx(1 / 0.01 + 1 / 0.08, rel=1e-5)


@pytest.mark.parametrize("trusted", [[], [0]])
def test_where_none_is_trusted_all_are_used_with_one_warning(trusted):
    rep, plain, batch = trusting("mlp", trusted), REPRESENTATIONS["mlp"], OBSERVATIONS["mlp"]
    with pytest.warns(LapwingWarning, match="trusted"):
        rep.filter_weights("unit")
    for filter in rep_distances():  # where a second warning would be an error
        found = rep.distance(batch, batch[0], filter)
        np.testing.assert_array_equal(found, plain.distance(batch, batch[0], filter))
    trusting("mlp", trusted).distance(batch, batch[0], "commute", trusted_only=False)  # without a warning


def test_what_is_trusted_may_be_known_later():
    """A measure on held-out episodes comes after the first distances."""
    rep = dataclasses.replace(REPRESENTATIONS["mlp"], config=dict(REPRESENTATIONS["mlp"].config))
    before = rep.filter_weights("commute")
    rep.config["trusted"] = [0, 2]
    assert before.all()
    assert (rep.filter_weights("commute") > 0).tolist() == [False, True, False]


def test_phi_and_eigenfunctions_do_not_ask_what_is_trusted():
    rep, plain, batch = trusting("mlp", [0, 2]), REPRESENTATIONS["mlp"], OBSERVATIONS["mlp"]
    np.testing.assert_array_equal(rep.eigenfunctions(batch), plain.eigenfunctions(batch))
    np.testing.assert_array_equal(rep.embed(batch, "soft"), plain.phi(batch))


def as_before(rep: Representation) -> dict:
    """The description of an encoder as it was before images could be made smaller."""
    fields = dataclasses.asdict(rep.spec)
    return {name: value for name, value in fields.items() if name not in ("block", "raw_shape")}


def test_the_digest_of_a_file_that_trusts_all_is_as_before():
    """Runs remember it, and files of earlier versions say nothing about trust."""
    rep = REPRESENTATIONS["fourier"]
    assert trusting("fourier", [0, 1, 2, 3]).sha256() != rep.sha256()
    facts = {"maze": None, "arena": None, "step": None, "observation": None, "observation_key": None}
    facts |= {"encoder": as_before(rep), "rotated": True, "soft_distance": rep.soft_distance}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    arrays = named_arrays(rep.encoder, "encoder")
    arrays |= {name: getattr(rep, name) for name in ("eigenvalues", "coefficients", "reference")}
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode() + array.tobytes())
    assert rep.sha256() == digest.hexdigest()


def assert_same_bits(first: Representation, second: Representation) -> None:
    leaves = [jax.tree.leaves(eqx.filter(rep.encoder, eqx.is_array)) for rep in (first, second)]
    assert jax.tree.structure(first.encoder) == jax.tree.structure(second.encoder)
    for a, b in zip(*leaves, strict=True):
        assert a.dtype == b.dtype
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    for name in ("eigenvalues", "coefficients", "reference"):
        a, b = getattr(first, name), getattr(second, name)
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()
    assert first.spec == second.spec
    assert first.soft_distance == second.soft_distance
    assert first.config == second.config


def test_a_representation_comes_back_bit_for_bit(kind, tmp_path):
    rep, batch = REPRESENTATIONS[kind], OBSERVATIONS[kind]
    rep.save(tmp_path / "rep.safetensors")
    again = load_representation(str(tmp_path / "rep.safetensors"))
    assert_same_bits(rep, again)
    for filter in FILTERS:
        np.testing.assert_array_equal(rep.embed(batch, filter), again.embed(batch, filter))
    again.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "rep.safetensors").read_bytes()


def test_a_damaged_file_is_refused_by_name(tmp_path):
    path = tmp_path / "rep.safetensors"
    REPRESENTATIONS["linear"].save(path)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    put(path, content)
    with pytest.raises(CheckpointError, match=r"rep\.safetensors is damaged"):
        load_representation(path)


def rewritten(path, change) -> None:
    """The file at `path` again, whole, with its parts changed."""
    tensors, manifest = storage.read_tensors(path)
    change(tensors, manifest)
    storage.write_tensors(path, tensors, manifest)


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors, manifest: tensors.pop("eigenvalues"),
        lambda tensors, manifest: tensors.update({"encoder.weight": np.zeros((9, 5), np.float32)}),
        lambda tensors, manifest: tensors.update({"encoder.weight": np.zeros((9, 6), np.float64)}),
        lambda tensors, manifest: manifest.pop("encoder"),
        lambda tensors, manifest: manifest["encoder"].update(shape=3),
        lambda tensors, manifest: manifest["encoder"].update(surprise=3),
        lambda tensors, manifest: manifest.update(soft_distance="far"),
        lambda tensors, manifest: manifest.update(config=None),
        lambda tensors, manifest: manifest["config"].update(trusted=[0, 4]),
        lambda tensors, manifest: manifest["config"].update(trusted=["all"]),
        lambda tensors, manifest: manifest["config"].update(trusted=3),
    ],
)
def test_a_file_that_does_not_fit_itself_is_refused_by_name(tmp_path, change):
    path = tmp_path / "rep.safetensors"
    REPRESENTATIONS["linear"].save(path)
    rewritten(path, change)
    with pytest.raises(CheckpointError, match=r"rep\.safetensors does not fit its own description"):
        load_representation(path)


def test_a_file_of_another_format_is_refused_with_its_version(tmp_path):
    path = tmp_path / "rep.safetensors"
    REPRESENTATIONS["linear"].save(path)
    rewritten(path, lambda tensors, manifest: manifest.update(format=99, version="7.0"))
    with pytest.raises(CheckpointError, match=r"rep\.safetensors.* 7\.0 .* 99"):
        load_representation(path)


def test_another_kind_of_file_is_refused(tmp_path):
    path = tmp_path / "other"
    storage.write_tensors(path, {}, {"format": 1, "version": "0.1.0", "step": 3})
    with pytest.raises(CheckpointError, match=r"other .*checkpoint"):
        load_representation(path)
    path.write_text(json.dumps({"format": 1}))
    with pytest.raises(CheckpointError, match="other"):
        load_representation(path)
    with pytest.raises(StorageError, match="nowhere"):
        load_representation(tmp_path / "nowhere")


class Bomb:
    """Goes off if it is ever unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def test_a_pickle_is_refused_and_never_run(tmp_path):
    (tmp_path / "bomb").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(CheckpointError, match="bomb"):
        load_representation(tmp_path / "bomb")
