import numpy as np

from lapwing import Experience
from lapwing.reaching.jumps import cut_at, random_jumps


def circle(ends) -> Experience:
    """Walks of small steps from 0 to 1, then a jump to one of `ends`."""
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(40):
        way = np.append(np.linspace(0, 1, 101), rng.choice(ends) + np.linspace(0, 1, 100))
        episodes.append(np.stack([way, np.zeros_like(way)], axis=1) + rng.normal(0, 1e-3, (201, 2)))
    actions = np.tile(np.ones((201, 1), np.float32), (40, 1))
    return Experience(np.concatenate(episodes), [201] * 40, actions=actions)


def test_steps_with_random_outcome_are_found_and_cut():
    experience = circle([10.0, 20.0, 30.0])
    jumps = random_jumps(experience, experience.observations)
    np.testing.assert_array_equal(jumps, 100 + 201 * np.arange(40))
    cut = cut_at(experience, jumps)
    assert (cut.n_episodes, cut.n_transitions) == (80, experience.n_transitions - 40)


def test_a_jump_that_always_ends_alike_is_as_good_as_a_step():
    experience = circle([10.0])
    assert len(random_jumps(experience, experience.observations)) == 0
