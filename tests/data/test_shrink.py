"""Images made smaller, against means computed block by block."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from lapwing.data.collect import collect
from lapwing.data.experience import Experience
from lapwing.data.files import load_experience
from lapwing.data.shrink import shrinking_of
from lapwing.errors import DatasetError


def means(image: np.ndarray, block: int) -> np.ndarray:
    """Of every block, in plain loops."""
    rows, columns = (range(0, size, block) for size in image.shape[:2])
    return np.array([[image[y : y + block, x : x + block].mean(axis=(0, 1)) for x in columns] for y in rows])


@pytest.mark.parametrize(("height", "width", "most"), [(70, 50, 64), (21, 13, 5), (9, 40, 7)])
def test_blocks_become_their_means_and_bytes_stay_bytes(height, width, most):
    images = np.random.default_rng(0).integers(0, 256, (3, height, width, 3)).astype(np.uint8)
    shrinking = shrinking_of(images.shape[1:], most)
    assert shrinking is not None
    small = shrinking(images)
    assert small.dtype == np.uint8
    assert max(small.shape[1:3]) <= most
    wanted = np.floor(np.array([means(image, shrinking.block) for image in images]) + 0.5)
    assert np.array_equal(small, wanted)
    assert np.array_equal(shrinking.of_arrays(jnp.asarray(images), jnp), small)
    floats = shrinking(images / np.float32(255))
    assert np.allclose(floats, np.array([means(image / 255, shrinking.block) for image in images]), atol=1e-6)


def test_small_images_and_vectors_stay_as_they_are():
    assert shrinking_of((64, 64, 3), 64) is None
    assert shrinking_of((200, 200, 3), 0) is None
    assert shrinking_of((200,), 64) is None


class Screen(gymnasium.Env):
    """A bright square that moves over a large screen, channels last or first."""

    action_space = spaces.Discrete(2)

    def __init__(self, channels_first: bool = False):
        self.channels_first = channels_first
        shape = (3, 90, 100) if channels_first else (90, 100, 3)
        self.observation_space = spaces.Box(0, 255, shape, np.uint8)

    def _image(self):
        image = np.zeros((90, 100, 3), np.uint8)
        image[40:50, self.at : self.at + 10] = 200, 100, 50
        return np.moveaxis(image, -1, 0) if self.channels_first else image

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = 40, 0
        return self._image(), {}

    def step(self, action):
        self.at = min(max(self.at + 10 * (2 * int(action) - 1), 0), 90)
        self.steps += 1
        return self._image(), 0.0, False, self.steps == 20, {}


@pytest.mark.parametrize("first", [False, True])
def test_what_is_collected_is_what_would_be_shrunk_afterwards(first):
    whole = collect(Screen(first), 60, seed=3)
    small = collect(Screen(first), 60, seed=3, image_size=32)
    vector = collect(gymnasium.vector.SyncVectorEnv([Screen]), 60, seed=3, image_size=32)
    assert small.observation_shape == vector.observation_shape == (23, 25, 3)
    assert np.array_equal(small.observations, whole.with_shrunk_images(32).observations)
    assert small.shrinking == whole.with_shrunk_images(32).shrinking
    assert whole.with_shrunk_images(0) is whole


def test_a_file_keeps_how_its_images_were_shrunk(tmp_path):
    small = collect(Screen(), 40, image_size=32)
    small.save(tmp_path / "screen.npz")
    loaded = load_experience(tmp_path / "screen.npz")
    assert loaded.shrinking == small.shrinking
    assert loaded.sha256() == small.sha256()
    assert loaded.tabulated().shrinking == loaded.split(0.5)[0].shrinking == small.shrinking


def test_numbers_that_do_not_fit_the_images_are_refused():
    with pytest.raises(DatasetError, match="shrunk"):
        Experience(np.zeros((4, 5, 5, 3), np.uint8), [4], shrunk=[2, 30, 30, 3])


def test_images_that_recur_are_states():
    experience = collect(Screen(), 200)
    table = experience.tabulated()
    assert table.n_states == len({image.tobytes() for image in experience.observations})
    assert np.array_equal(table.observe(np.arange(201)), experience.observations[:201])
