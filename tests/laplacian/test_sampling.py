"""Pairs and states drawn from experience, against the closed form of their distribution."""

from collections import defaultdict

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from lapwing.data.experience import Experience
from lapwing.laplacian.chain import sampled_chain
from lapwing.laplacian.sampling import (
    cumulative,
    draw_pairs,
    pair_sampler,
    sample_by,
    sample_pairs,
    sample_states,
    surviving_share,
)

RAGGED = [2, 3, 7, 12, 2, 5, 31]
LAMS = [0.0, 0.3, 0.9, 0.99]
RULES = ["discard", "truncate"]
draw = jax.jit(sample_pairs, static_argnames=("batch", "past_end"))


def distinct_states(lengths) -> Experience:
    return Experience(np.arange(sum(lengths)), lengths)


def closed_form(lengths, lam: float, past_end: str) -> dict[tuple[int, int], float]:
    """p(t, t + τ), place by place: τ ~ (1-λ) λ^(τ-1), and either no pair past the end or the last state."""
    weight, begin = defaultdict(float), 0
    for length in lengths:
        last = begin + length - 1
        for place in range(begin, last):
            for tau in range(1, last - place + 1):
                weight[place, place + tau] += (1 - lam) * lam ** (tau - 1)
            if past_end == "truncate":
                weight[place, last] += lam ** (last - place)
        begin += length
    total = sum(weight.values())
    return {pair: w / total for pair, w in weight.items() if w > 0}


def fits(observed: np.ndarray, probability: np.ndarray) -> bool:
    """Pearson's χ² with rare cells put together; a right sampler fails once in ten thousand seeds."""
    expected = probability * observed.sum()
    rare = expected < 5
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    if len(expected) == 1:
        return True
    return chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-4


def assert_pairs_follow(u, v, lengths, lam: float, past_end: str) -> None:
    probability = closed_form(lengths, lam, past_end)
    counts = np.zeros((sum(lengths), sum(lengths)))
    np.add.at(counts, (u, v), 1)
    observed = np.array([counts[pair] for pair in probability])
    assert observed.sum() == len(u), "a pair that cannot be"
    assert fits(observed, np.array(list(probability.values())))


@pytest.mark.parametrize("past_end", RULES)
@pytest.mark.parametrize("lam", LAMS)
@pytest.mark.parametrize("lengths", [RAGGED, [2], [20] * 4], ids=str)
def test_pairs_have_the_closed_form_distribution(lengths, lam, past_end):
    sampler = pair_sampler(distinct_states(lengths))
    u, v = draw(sampler, lam, 100_000, past_end, key=jax.random.key(1))
    assert_pairs_follow(np.asarray(u), np.asarray(v), lengths, lam, past_end)


def test_the_chi_square_test_sees_a_wrong_rule():
    """Redrawing τ alone (place uniform, τ truncated) and a slightly wrong λ are both told apart."""
    sampler = pair_sampler(distinct_states(RAGGED))
    for lam, past_end in [(0.88, "discard"), (0.9, "truncate")]:
        u, v = draw(sampler, lam, 100_000, past_end, key=jax.random.key(1))
        with pytest.raises(AssertionError):
            assert_pairs_follow(np.asarray(u), np.asarray(v), RAGGED, 0.9, "discard")


@pytest.mark.parametrize("past_end", RULES)
@pytest.mark.parametrize("lam", [0.0, 0.5, 0.95])
def test_pairs_of_states_follow_the_sampled_chain(lam, past_end):
    rng = np.random.default_rng(0)
    experience = Experience(rng.integers(4, size=sum(RAGGED)), RAGGED)
    u, v = draw(pair_sampler(experience), lam, 100_000, past_end, key=jax.random.key(2))
    counts = np.zeros((4, 4))
    np.add.at(counts, (experience.observations[u], experience.observations[v]), 1)
    W = sampled_chain(experience, lam, past_end).weights.toarray()
    upper = np.triu_indices(4, 1)
    observed = np.concatenate([np.diag(counts), (counts + counts.T)[upper]])
    assert fits(observed, np.concatenate([np.diag(W), 2 * W[upper]]))


def test_annealed_inside_a_compiled_loop():
    """λ as a traced value, another one each step."""
    sampler = pair_sampler(distinct_states(RAGGED))
    lams = jnp.array([0.0, 0.5, 0.9, 0.99])

    @jax.jit
    def annealed(key):
        def step(index, lam):
            pairs = sample_pairs(sampler, lam, 100_000, key=jax.random.fold_in(key, index))
            return index + 1, pairs

        return jax.lax.scan(step, 0, lams)[1]

    u, v = annealed(jax.random.key(3))
    for index, lam in enumerate([0.0, 0.5, 0.9, 0.99]):
        assert_pairs_follow(np.asarray(u[index]), np.asarray(v[index]), RAGGED, lam, "discard")


@st.composite
def lengths_of_35(draw) -> list[int]:
    """Eight episodes, one of nine observations: few shapes to compile for, many ways to cut."""
    lengths = [4] * 6 + [2]
    for giver, taker in draw(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=20)):
        if lengths[giver] > 2 and lengths[taker] < 9:
            lengths[giver] -= 1
            lengths[taker] += 1
    lengths.insert(draw(st.integers(0, 7)), 9)
    return lengths


@settings(max_examples=100)
@given(lengths_of_35(), st.floats(0, 0.999), st.sampled_from(RULES), st.integers(0, 2**31 - 1))
def test_no_pair_crosses_the_end_of_an_episode(lengths, lam, past_end, seed):
    sampler = pair_sampler(distinct_states(lengths))
    u, v = (np.asarray(places) for places in draw(sampler, lam, 256, past_end, key=jax.random.key(seed)))
    episode = np.repeat(np.arange(len(lengths)), lengths)
    np.testing.assert_array_equal(episode[u], episode[v])
    assert (u < v).all()


@settings(max_examples=40)
@given(st.lists(st.integers(2, 12), min_size=1, max_size=10))
def test_every_place_with_a_successor_is_in_the_group_of_its_horizon(lengths):
    experience = distinct_states(lengths)
    sampler = pair_sampler(experience)
    places = np.asarray(sampler.indices)
    np.testing.assert_array_equal(np.sort(places), np.flatnonzero(experience.horizons > 0))
    groups = np.stack([sampler.horizons, sampler.first, sampler.counts], axis=1)
    for horizon, first, count in groups.tolist():
        assert (experience.horizons[places[first : first + count]] == horizon).all()
    assert int(sampler.counts.sum()) == len(places)


def test_states_have_their_distribution():
    """One is never visited, and one nearly always."""
    rho = np.array([0.05, 0.0, 0.8, 0.1, 0.05])
    drawn = sample_by(cumulative(rho), 100_000, key=jax.random.key(4))
    counts = np.bincount(drawn, minlength=5)
    assert counts[1] == 0
    assert fits(counts[rho > 0], rho[rho > 0])


def test_states_far_more_than_float32_can_tell_apart():
    """The sums of a million equal shares, the last of which float32 would round by a tenth of a share."""
    size = 1_000_000
    drawn = np.asarray(sample_by(cumulative(np.full(size, 1 / size)), 400_000, key=jax.random.key(5)))
    last = drawn[drawn >= size // 2] - size // 2
    assert abs(np.mean(last % 2) - 0.5) < 5 * 0.5 / np.sqrt(len(last))
    assert fits(np.bincount(drawn * 20 // size, minlength=20), np.full(20, 0.05))


def test_one_long_episode():
    """A group for each place: rounding of the running sums must not show."""
    length, lam, batch = 300_001, 0.99, 200_000
    sampler = pair_sampler(Experience(np.zeros(length, int), [length]))
    u, v = (np.asarray(places) for places in draw(sampler, lam, batch, key=jax.random.key(5)))
    assert v.max() < length
    # Ends are 1/3000 of the episode away, so places are uniform and τ geometric to less than the noise.
    bins = np.bincount(u * 100 // length, minlength=100)
    assert fits(bins, np.full(100, 0.01))
    tau = np.minimum(v - u, 1_000)
    geometric = (1 - lam) * lam ** np.arange(1_000)
    geometric[-1] = 1 - geometric[:-1].sum()
    assert fits(np.bincount(tau - 1, minlength=1_000), geometric)


class TestDrawPairs:
    """The same law without a table of places."""

    @pytest.mark.parametrize("past_end", RULES)
    @pytest.mark.parametrize("lam", [*LAMS, 0.9999])
    @pytest.mark.parametrize("lengths", [RAGGED, [2], [20] * 4], ids=str)
    def test_the_closed_form(self, lengths, lam, past_end):
        rng = np.random.default_rng(7)
        u, v = draw_pairs(distinct_states(lengths), lam, 100_000, past_end, rng)
        assert (len(u), len(v)) == (100_000, 100_000)
        assert_pairs_follow(u, v, lengths, lam, past_end)

    def test_the_test_sees_a_wrong_rule(self):
        u, v = draw_pairs(distinct_states(RAGGED), 0.9, 100_000, "truncate", np.random.default_rng(7))
        with pytest.raises(AssertionError):
            assert_pairs_follow(u, v, RAGGED, 0.9, "discard")

    @pytest.mark.parametrize("lam", [1 - 1e-6, 1 - 1e-9, 1 - 1e-12])
    def test_it_ends_however_seldom_a_pair_survives(self, lam):
        """Near λ = 1 all τ are as likely, and hardly a pair in a million ends within its episode."""
        u, v = draw_pairs(distinct_states(RAGGED), lam, 50_000, "discard", np.random.default_rng(0))
        pairs = [
            (place, later)
            for begin, length in zip(np.cumsum([0, *RAGGED[:-1]]), RAGGED, strict=True)
            for place in range(begin, begin + length)
            for later in range(place + 1, begin + length)
        ]
        counts = np.zeros((sum(RAGGED), sum(RAGGED)))
        np.add.at(counts, (u, v), 1)
        observed = np.array([counts[pair] for pair in pairs])
        assert observed.sum() == 50_000
        assert fits(observed, np.full(len(pairs), 1 / len(pairs)))

    @settings(max_examples=100)
    @given(
        st.lists(st.integers(2, 12), min_size=1, max_size=10),
        st.floats(0, 0.999),
        st.sampled_from(RULES),
        st.integers(1, 300),
        st.integers(0, 2**32),
    )
    def test_no_pair_crosses_the_end_of_an_episode(self, lengths, lam, past_end, batch, seed):
        u, v = draw_pairs(distinct_states(lengths), lam, batch, past_end, np.random.default_rng(seed))
        episode = np.repeat(np.arange(len(lengths)), lengths)
        assert u.shape == v.shape == (batch,)
        np.testing.assert_array_equal(episode[u], episode[v])
        assert (u < v).all()

    def test_the_generator_decides(self):
        drawn = [
            np.stack(draw_pairs(distinct_states(RAGGED), 0.9, 500, "discard", np.random.default_rng(seed)))
            for seed in (1, 1, 2)
        ]
        np.testing.assert_array_equal(drawn[0], drawn[1])
        assert (drawn[0] != drawn[2]).any()


def test_same_key_same_pairs_and_other_keys_differ():
    sampler = pair_sampler(distinct_states(RAGGED))
    first, again, other = (
        draw(sampler, 0.9, 100_000, "discard", key=jax.random.key(seed)) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (np.asarray(first) != np.asarray(other)).any()


class TestStates:
    def test_uniform_over_all_places(self):
        places = np.asarray(sample_states(37, 100_000, key=jax.random.key(0)))
        assert fits(np.bincount(places, minlength=37), np.full(37, 1 / 37))


class TestSurvivingShare:
    @settings(max_examples=200)
    @given(st.lists(st.integers(2, 15), min_size=1, max_size=6), st.floats(0, 0.999))
    def test_against_a_sum_over_all_draws(self, lengths, lam):
        shares = [
            sum((1 - lam) * lam ** (tau - 1) for tau in range(1, length - place))
            for length in lengths
            for place in range(length - 1)
        ]
        assert surviving_share(distinct_states(lengths), lam) == pytest.approx(np.mean(shares), abs=1e-9)

    @pytest.mark.parametrize("lam", [0.3, 0.99, 0.9999])
    def test_long_episodes(self, lam):
        lengths = [3, 20_000, 50]
        shares = np.concatenate([1 - lam ** np.arange(1.0, length) for length in lengths])
        assert surviving_share(distinct_states(lengths), lam) == pytest.approx(shares.mean(), rel=1e-9)
