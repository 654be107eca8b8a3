"""φ of cells: the eigenvectors of the counts between them, by NumPy."""

import numpy as np
import pytest

from lapwing.data.experience import Experience
from lapwing.errors import ConfigError
from lapwing.laplacian.cells import cell_phi
from lapwing.reaching.build import build_reacher
from lapwing.reaching.files import save_reacher
from lapwing.settings.reach import ReachSettings


def walks(places: int, episodes: int = 40, steps: int = 200) -> np.ndarray:
    """Of a walk on a line, which stays where it would leave it; (episodes, steps)."""
    rng = np.random.default_rng(0)
    at, path = rng.integers(places, size=episodes), []
    for _ in range(steps):
        path.append(at)
        at = np.clip(at + rng.choice([-1, 1], size=episodes), 0, places - 1)
    return np.array(path).T


def experience_of(path: np.ndarray, seen: np.ndarray, **more) -> Experience:
    return Experience(seen.reshape(-1, 2).astype(np.float32), [path.shape[1]] * len(path), **more)


def test_cells_that_are_states_have_the_eigenvectors_of_the_walk():
    path = walks(6)
    seen = np.stack([3.0 * path, np.zeros(path.shape)], axis=-1)
    phi = cell_phi(experience_of(path, seen), dim=4, most=6)
    assert len(phi.middles) == 6
    walk = (np.eye(6, k=1) + np.eye(6, k=-1)) / 2
    walk[0, 0] = walk[-1, -1] = 0.5
    values, vectors = np.linalg.eigh(walk)
    exact = (vectors[:, ::-1] * np.sqrt(6))[:, 1:4] / np.sqrt(1 - values[::-1][1:4])
    found = phi(np.stack([3.0 * np.arange(6), np.zeros(6)], axis=-1))
    cosines = (
        np.abs(np.sum(found * exact, axis=0)) / np.linalg.norm(found, axis=0) / np.linalg.norm(exact, axis=0)
    )
    assert cosines.min() > 0.98
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), np.linalg.norm(exact, axis=0), rtol=0.1)


def test_a_state_has_the_value_of_its_cell_and_an_unseen_one_that_of_the_nearest():
    path = walks(30)
    rng = np.random.default_rng(1)
    seen = np.stack([path, rng.uniform(0, 5, path.shape)], axis=-1)
    phi = cell_phi(experience_of(path, seen), dim=3, most=20)
    assert 5 <= len(phi.middles) <= 20
    np.testing.assert_array_equal(phi(phi.middles + 1e-3), phi.values)
    far = np.array([[-100.0, 2.0]])
    nearest = np.linalg.norm(phi.middles - far, axis=1).argmin()
    np.testing.assert_array_equal(phi(far)[0], phi.values[nearest])


def test_a_reacher_takes_cells_for_phi_and_is_not_saved_with_them(tmp_path):
    path = walks(8)
    moves = np.diff(path, axis=1, append=path[:, -1:]) + 1
    experience = experience_of(path, np.stack([path, path], axis=-1), actions=moves.reshape(-1))
    settings = ReachSettings(landmarks=8, controller="neighbours", noise=0.0)
    reacher = build_reacher(experience, cell_phi(experience, dim=5, most=8), settings)
    assert reacher.act(np.array([1.0, 1.0]), np.array([6.0, 6.0])) == 2
    assert reacher.act(np.array([6.0, 6.0]), np.array([1.0, 1.0])) == 0
    with pytest.raises(ConfigError, match="function"):
        save_reacher(reacher, tmp_path / "r.safetensors")
