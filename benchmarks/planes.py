"""Continuous positions in mazes whose spectrum is known: two built-in planes and two random ones."""

import numpy as np
from scipy.spatial import KDTree

from benchmarks.others import learn
from benchmarks.rows import Row
from lapwing.envs.plane import Plane
from lapwing.laplacian.evaluate import Spectrum, evaluate, exact_spectrum
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.ritz import pair_moments, rayleigh_ritz
from lapwing.laplacian.target import Target, open_target
from lapwing.mazes import parse_maze
from lapwing.settings.learn import LearnSettings

DIM = 11
NEARLY_REPEATED = 0.03
"""Eigenvalues that differ by less than this share count as repeated: a million steps do not resolve them."""


def measure(name: str) -> list[Row]:
    if name.startswith("random-"):
        return _plane(f"a random plane, seed {name[7:]}", Plane(random_rooms(int(name[7:]))))
    return _plane(name, name)


def random_rooms(seed: int, size: int = 16):
    """A maze of rooms: walls at random places, each with a random door."""
    rng = np.random.default_rng(seed)
    floor = np.zeros((size, size), bool)
    floor[1:-1, 1:-1] = True
    for wall in (5, 10):
        wall += int(rng.integers(-1, 2))
        floor[wall, :] = False
        floor[wall, rng.integers(2, size - 3) + np.arange(2)] = True
    column = int(rng.integers(6, 10))
    for top, bottom in ((1, 5), (6, 10), (11, 15)):
        floor[top:bottom, column] = False
        floor[int(rng.integers(top, bottom)), column] = True
    floor[[0, -1]] = floor[:, [0, -1]] = False
    text = "\n".join("".join(".#"[not cell] for cell in row) for row in floor)
    return parse_maze(text, name=f"Rooms{seed}")


def _plane(name: str, source) -> list[Row]:
    target = open_target(source, LearnSettings(dim=DIM))
    representation, seconds = learn(target, dim=DIM)
    measures = evaluate(representation, target)
    exact = np.array(measures["eigenvalues_exact"])
    errors = np.abs(representation.eigenvalues[1:] / exact[1:] - 1)
    closed = 1 - measures["gap"] / measures["gap_random"]
    note = f"largest {errors.max():.3f}; {representation.config['tried'][0]['what']}; {seconds:.0f} s"
    gap = f"random basis {measures['gap_random']:.2f}"
    one_by_one = f"one by one {measures['cosine_mean']:.3f}"
    return [
        Row(f"{name}, 10⁶ steps, d = 11: relative error of λ₂ … λ₁₁", errors.mean(), 0.05, True, note),
        Row(
            "… cosine, nearly repeated eigenvalues as one",
            _cosine(representation, target),
            0.99,
            note=one_by_one,
        ),
        Row(
            "… the same of the best combinations of exact eigenfunctions on this data",
            _floor(target),
            note="what the data allows",
        ),
        Row("… gap", measures["gap"], None, note=gap),
        Row("… share of a random basis's gap closed", closed, 0.99),
    ]


def _cosine(representation: Representation, target: Target) -> float:
    """The mean cosine of each function with the exact functions of nearly the same eigenvalue."""
    return _cosines(target, representation.eigenfunctions(target.reference_states()).astype(np.float64))


def _floor(target: Target) -> float:
    """The same of Rayleigh-Ritz over the exact eigenfunctions: what chance in the data does, no more.

    Between points of the lattice they are interpolated from the four nearest.
    """
    states = target.reference_states()
    functions = _exact(target).functions[:, 1:]
    seen = target.learned_from
    apart, nearest = KDTree(states).query(seen.observations, k=4)
    weights = 1 / np.maximum(apart, 1e-3)
    weights /= weights.sum(axis=1, keepdims=True)
    values = np.einsum("nk,nkd->nd", weights, functions[nearest])
    begins = seen.transitions(np.arange(seen.n_transitions))
    coefficients = rayleigh_ritz(*pair_moments(values[begins], values[begins + 1]), DIM).coefficients
    return _cosines(target, np.insert(functions, 0, 1.0, axis=1) @ coefficients)


def _exact(target: Target) -> Spectrum:
    truth = target.truth()
    assert truth is not None
    return exact_spectrum(truth, 4 * DIM)


def _cosines(target: Target, functions: np.ndarray) -> float:
    spectrum = _exact(target)
    rho, values = spectrum.chain.rho, spectrum.eigenvalues
    overlaps = spectrum.functions.T @ (rho[:, None] * functions)
    overlaps /= np.sqrt(rho @ functions**2)
    larger = np.maximum(values[:, None], values[:DIM])
    same = np.abs(values[:, None] - values[:DIM]) <= NEARLY_REPEATED * larger
    return float(np.mean(np.sqrt(np.sum(np.where(same, overlaps**2, 0.0), axis=0))))
