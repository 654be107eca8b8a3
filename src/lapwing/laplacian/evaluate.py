"""The accuracy of a representation, measured against the exact spectrum of a chain.

Every measure takes the reference chain, and functions as columns over its states. Functions that share an
eigenvalue form one eigenspace: any basis of it is equally valid.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from lapwing.envs.gridworld import GridWorld
from lapwing.laplacian.barriers import find_barriers
from lapwing.laplacian.chain import Chain
from lapwing.laplacian.distances import euclidean, measure_of
from lapwing.laplacian.flow import sampled_flow
from lapwing.laplacian.held_out import held_out_measures
from lapwing.laplacian.objectives.drawing import distance_to_identity
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.ritz import RANK_TOLERANCE
from lapwing.laplacian.target import Target

SOME_STATES = 4_000
"""From so many states of an arena the way to the goal is measured."""
SAME_EIGENVALUE = 1e-7
FIRST_EIGENFUNCTIONS = 11
"""`cosine_mean` is over this many, as later papers report it."""


_MEASURES = (
    "operator",
    "gap",
    "gap_floor",
    "gap_random",
    "rank",
    "cosine",
    "cosine_mean",
    "cosine_floor",
    "eigenvalues_exact",
    "eigenvalue_error",
    "principal_angle",
    "orthonormality_error",
    "distance_correlation",
    "held_out",
    "irreversibility",
    "parts",
    "barriers",
)


class Spectrum(NamedTuple):
    """Exact eigenvalues and eigenfunctions, to the end of the eigenspace that the last one is in."""

    chain: Chain
    eigenvalues: np.ndarray
    functions: np.ndarray


def exact_spectrum(chain: Chain, dim: int) -> Spectrum:
    """At least `dim` exact eigenpairs, and the rest of the last eigenspace."""
    visited = int(np.sum(chain.rho > 0))
    margin = 8
    while True:
        values, functions = chain.eigenpairs(min(dim + margin, visited))
        end = int(np.searchsorted(values, values[min(dim, len(values)) - 1] + SAME_EIGENVALUE))
        if end < len(values) or len(values) == visited:
            break
        margin *= 2
    return Spectrum(chain, values[:end], functions[:, :end])


def orthonormal_basis(chain: Chain, functions: np.ndarray) -> np.ndarray:
    """The principal orthonormal basis of the columns, by SVD of diag(√ρ)Φ; as many as independent."""
    root = np.sqrt(chain.rho)[:, None]
    left, sizes, _ = np.linalg.svd(root * functions, full_matrices=False)
    rank = int(np.sum(sizes > RANK_TOLERANCE * sizes.max(initial=0)))
    return np.divide(left[:, :rank], root, out=np.zeros_like(left[:, :rank]), where=root > 0)


def objective_gap(spectrum: Spectrum, functions: np.ndarray, dim: int) -> float:
    """The paper's metric: G of the orthonormalised functions, above the smallest possible G.

    Where fewer than `dim` functions are independent (r < d), the expectation over a random completion:
    G_r + (tr L - G_r)(d - r)/(S - r).
    """
    basis = orthonormal_basis(spectrum.chain, functions)[:, :dim]
    missing = dim - basis.shape[1]
    objective = spectrum.chain.objective(basis)
    if missing:
        states = int(np.sum(spectrum.chain.rho > 0))
        rest = (spectrum.chain.trace() - objective) / (states - basis.shape[1])
        objective += rest * missing
    return objective - float(spectrum.eigenvalues[:dim].sum())


def random_gap(spectrum: Spectrum, dim: int) -> float:
    """The expected gap of a random orthonormal basis."""
    return objective_gap(spectrum, np.zeros((spectrum.chain.n_states, 1)), dim)


def cosine_similarities(spectrum: Spectrum, functions: np.ndarray) -> np.ndarray:
    """For each function in turn, the length of its projection on the eigenspace that its index is in."""
    rho = spectrum.chain.rho
    sizes = np.sqrt(rho @ functions**2)
    overlaps = (spectrum.functions.T @ (rho[:, None] * functions)) / np.where(sizes > 0, sizes, 1.0)
    count = min(functions.shape[1], len(spectrum.eigenvalues))
    near = np.abs(spectrum.eigenvalues[:, None] - spectrum.eigenvalues[None, :count])
    same = near <= SAME_EIGENVALUE
    return np.sqrt(np.sum(np.where(same, overlaps[:, :count] ** 2, 0.0), axis=0))


def single_cosines(spectrum: Spectrum, functions: np.ndarray) -> np.ndarray:
    """The cosine of each function with the eigenvector of its index alone.

    Where eigenvalues repeat, it depends on the basis that the solver happens to choose.
    """
    rho, count = spectrum.chain.rho, min(functions.shape[1], len(spectrum.eigenvalues))
    sizes = np.sqrt(rho @ functions[:, :count] ** 2)
    products = rho @ (functions[:, :count] * spectrum.functions[:, :count])
    return np.abs(products) / np.where(sizes > 0, sizes, 1.0)


def principal_angles(spectrum: Spectrum, functions: np.ndarray) -> np.ndarray:
    """The angles, in radians, between the span of the functions and the exact eigenspaces.

    One for each function; where they are not independent, the missing directions are at right angles.
    """
    rho = spectrum.chain.rho[:, None]
    basis = orthonormal_basis(spectrum.chain, functions)
    cosines = np.linalg.svd(basis.T @ (rho * spectrum.functions), compute_uv=False)
    angles = np.arccos(np.clip(cosines[: basis.shape[1]], -1.0, 1.0))
    return np.pad(angles, (0, functions.shape[1] - len(angles)), constant_values=np.pi / 2)


def orthonormality_error(chain: Chain, functions: np.ndarray) -> float:
    """How far the functions are from orthonormal in ⟨f, g⟩ = Σ f g ρ."""
    return distance_to_identity(functions.T @ (chain.rho[:, None] * functions))


def eigenvalue_error(eigenvalues: np.ndarray, exact: np.ndarray) -> float | None:
    """The mean relative error, zeros (the constant's, and one more for each further part) left out."""
    count = min(len(eigenvalues), len(exact))
    nonzero = exact[:count] > SAME_EIGENVALUE
    if not nonzero.any():
        return None
    wanted = exact[:count][nonzero]
    return float(np.mean(np.abs(eigenvalues[:count][nonzero] - wanted) / wanted))


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's correlation, ties sharing their mean rank; 0 where either is constant.

    Example:
        >>> rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0]))
        0.5
    """
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])


def distance_correlation(
    world: GridWorld,
    embedded: np.ndarray,
    goals: np.ndarray,
    measure: Callable[[np.ndarray, np.ndarray], np.ndarray] = euclidean,
) -> float:
    """Rank correlation of embedding distance with the fewest steps to a goal, mean over `goals`."""
    steps = np.atleast_2d(world.steps_to(goals))
    correlations = [
        rank_correlation(measure(embedded, embedded[goal]), steps[row]) for row, goal in enumerate(goals)
    ]
    return float(np.mean(correlations))


def evaluate(representation: Representation, target: Target) -> dict[str, Any]:
    """All measures for which `target` has a reference; the others are None."""
    measures: dict[str, Any] = dict.fromkeys(_MEASURES)
    measures["eigenvalues"] = representation.eigenvalues.tolist()
    states = target.reference_states()
    if states is not None:
        chain = target.truth() or target.one_step
        dim = representation.config["settings"]["dim"]
        spectrum = exact_spectrum(chain, dim)
        functions = representation.eigenfunctions(states).astype(np.float64)
        measures |= _spectral_measures(spectrum, representation, functions, dim)
        if target.states is not None:
            measures |= _floors(spectrum, target, dim)
    if target.experience is not None:
        measures |= sampled_flow(target.experience)._asdict()
        if representation.config["settings"].get("rotate"):
            measures["barriers"] = find_barriers(representation, target.learned_from)
    share = representation.config["settings"].get("held_out")
    if share and target.held_out:  # the share that φ was learned with, whatever the target would hold out now
        split = dataclasses.replace(target, held_out=share)
        measures["held_out"] = _held_out(representation, split)
    if target.world is not None:
        measures["distance_correlation"] = _distance_correlations(representation, target)
    if target.arena is not None:
        states = target.some_observations(SOME_STATES, representation.config["settings"]["seed"])
        ways = target.arena.path_lengths(states[:, :2])
        goal = target.goal_observation()
        measures["distance_correlation"] = path_correlations(representation, states, goal, ways)
    return measures


def _held_out(representation: Representation, target: Target) -> dict[str, Any]:
    """What was measured when it was learned, if on these episodes; else the same on these."""
    known = representation.config.get("held_out", {})
    if known.get("sha256") == target.held_out_episodes.sha256():
        return known
    return held_out_measures(representation, target.learned_from, target.held_out_episodes)


def _spectral_measures(
    spectrum: Spectrum, representation: Representation, functions: np.ndarray, dim: int
) -> dict[str, Any]:
    chain = spectrum.chain
    functions = np.pad(functions, ((0, 0), (0, dim - functions.shape[1])))  # vanished: similar to none
    cosines = cosine_similarities(spectrum, functions)
    return {
        "operator": chain.name,
        "gap": objective_gap(spectrum, functions, dim),
        "gap_random": random_gap(spectrum, dim),
        "rank": orthonormal_basis(chain, functions).shape[1],
        "cosine": cosines.tolist(),
        "cosine_mean": float(np.mean(cosines[:FIRST_EIGENFUNCTIONS])),
        "eigenvalues_exact": spectrum.eigenvalues[:dim].tolist(),
        "eigenvalue_error": eigenvalue_error(representation.eigenvalues, spectrum.eigenvalues),
        "principal_angle": float(principal_angles(spectrum, functions).max()),
        "orthonormality_error": orthonormality_error(chain, functions),
    }


def _floors(spectrum: Spectrum, target: Target, dim: int) -> dict[str, float]:
    """What the data allows: the exact eigenvectors of its own chain, against those of the true one."""
    visited = int(np.sum(target.one_step.rho > 0))
    _, functions = target.one_step.eigenpairs(min(dim, visited))  # to the same bits whatever has been known
    cosines = cosine_similarities(spectrum, functions)
    return {
        "gap_floor": objective_gap(spectrum, functions, dim),
        "cosine_floor": float(np.mean(cosines[:FIRST_EIGENFUNCTIONS])),
    }


def _distance_correlations(representation: Representation, target: Target) -> dict[str, float]:
    """For each distance; to the maze's goal, or in the mean to a hundred cells."""
    world = target.world
    assert world is not None
    goals = np.unique(np.linspace(0, world.n_states - 1, 100).astype(int))
    if world.goal_state is not None:
        goals = np.array([world.goal_state])
    return {
        name: distance_correlation(
            world, representation.coordinates(target.states, name), goals, measure_of(name)
        )
        for name in representation.distances
    }


def path_correlations(
    representation: Representation, states: np.ndarray, goal: np.ndarray, ways: np.ndarray
) -> dict[str, float]:
    """Rank correlation of distance with the length of the shortest path, for each of φ's and for l2.

    Args:
        representation: whose distances are measured.
        states: observations that begin with (x, y).
        goal: the observation at the goal.
        ways: the length of the shortest path from each state to the goal.
    """
    found = {
        name: rank_correlation(representation.distance(states, goal, name), ways)
        for name in representation.distances
    }
    return found | {"l2": rank_correlation(np.linalg.norm(states[:, :2] - goal[:2], axis=1), ways)}
