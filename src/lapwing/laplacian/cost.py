"""Estimates of the time and memory of learning from images, made before it starts.

Measured on one core of a virtual machine: they give the order of magnitude only.
"""

import math

from lapwing.data.shrink import Shrinking
from lapwing.errors import LapwingNote, warn
from lapwing.laplacian.bases import components_of
from lapwing.settings.learn import LearnSettings

BASE_BYTES = 0.7 * 2**30
"""What the process takes whatever it learns from: JAX and its programs, SciPy, Matplotlib."""
BYTES_A_NUMBER = 10
"""For each number of all images, at the peak: as collected, in parts, and in products of float32 and float64.
Measured: Freeway, 5,000, 10,000 and 20,000 frames of 53 × 40 × 3 0.96, 1.26 and 1.81 GiB, 5,000 of
105 × 80 × 3 1.69; Pong, 20,000 frames of 53 × 40 × 3 1.98."""
PASSES = 9
"""How often closed-form projects all images on their principal components."""
PRODUCTS_A_SECOND = 2e10
"""Multiplications and additions of float32 in matrix products."""
BASE_SECONDS = 25.0
"""What trials, evaluation and compiling take, whatever the images."""
NETWORK_PRODUCTS, NETWORK_SPEED = 700, 1e10
"""Products that a step of `conv` takes for each number of an image, and how many it makes a second."""
NETWORK_STEPS = 6_000
LARGE = 64 * 64
"""Images of fewer pixels are not worth a word."""


def announce(shape: tuple[int, ...], rows: int, settings: LearnSettings, shrinking: Shrinking | None) -> None:
    """Note what images become, and about how long learning from them takes, and how much memory.

    Args:
        shape: of an image as φ sees it.
        rows: how many there are.
        settings: how it is learned.
        shrinking: how the images became smaller, if they did.
    """
    if len(shape) != 3 or (shrinking is None and math.prod(shape[:2]) < LARGE):
        return
    seconds, memory = cost_of_images(shape, rows, by_network=_by_network(settings))
    images = f"images of {' × '.join(map(str, shape))} are learned from as they are"
    remedy = f" (image_size={settings.image_size})" if shrinking else "; image_size=64 would average them"
    warn(
        f"{shrinking or images}{remedy}; once they are there, learning from {rows:,} takes about "
        f"{seconds:,.0f} s on one core, and {memory / 2**30:.1f} GiB of memory",
        LapwingNote,
    )


def cost_of_images(shape: tuple[int, ...], rows: int, *, by_network: bool = False) -> tuple[float, float]:
    """About how many seconds of one core and bytes of memory learning takes.

    Example:
        >>> small, large = (cost_of_images((size, size, 3), 20_000)[0] for size in (32, 64))
        >>> small < large
        True
    """
    numbers = math.prod(shape)
    memory = BASE_BYTES + BYTES_A_NUMBER * rows * numbers
    if by_network:
        products = 2.0 * NETWORK_STEPS * LearnSettings.batch * numbers * NETWORK_PRODUCTS
        return BASE_SECONDS + products / NETWORK_SPEED, memory
    components = min(numbers, components_of(shape, rows))
    products = 2.0 * PASSES * rows * numbers * components
    return BASE_SECONDS + products / PRODUCTS_A_SECOND, memory


def _by_network(settings: LearnSettings) -> bool:
    gradient = settings.estimator not in (None, "closed-form") or settings.encoder not in (None, "bumps")
    return gradient or settings.preset != "default"
