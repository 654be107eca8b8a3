"""The smallest eigenvalues of a symmetric Laplacian, by the solver that suits its size and graph."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, splu

Matrix = Any
"""A NumPy array, a sparse array, or a `LinearOperator`: whatever multiplies vectors by `@`."""
DENSE_EIGEN_LIMIT = 1_500
"""Up to this many states eigenpairs come from a dense solver, which cannot miss any."""
FEW_EDGES = 8
"""With no more at a state, as in a maze, the factors of a sparse matrix are sparse too."""
LANCZOS_VECTORS, LANCZOS_PRODUCTS = 40, 1_000
"""Otherwise it is multiplied so often before it is factorised."""
SHIFT = -1e-6
"""Inverted about this number, which is no eigenvalue, the smallest eigenvalues become the largest."""


def smallest(operator: Matrix, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of I - operator, ascending, with orthonormal eigenvectors."""
    size = operator.shape[0]
    if not isinstance(operator, LinearOperator) and (size <= DENSE_EIGEN_LIMIT or d >= size - 1):
        values, vectors = scipy.linalg.eigh(dense(operator), subset_by_index=[size - d, size - 1])
        return 1 - values[::-1], vectors[:, ::-1]
    start = np.random.default_rng(0).standard_normal(size)
    if isinstance(operator, LinearOperator):
        values, vectors = eigsh(operator, k=d, which="LA", v0=start)
        order = np.argsort(-values)
        return 1 - values[order], vectors[:, order]
    found = None
    if sparse.issparse(operator) and operator.nnz > FEW_EDGES * size and 2 * d < LANCZOS_VECTORS:
        found = _by_products(operator, d, start)
    values, vectors = found or _by_inversion(operator, d, start)
    order = np.argsort(values)
    return values[order], vectors[:, order]


def _by_products(operator: Matrix, d: int, start: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Eigenpairs of I - operator by Lanczos iteration; None if it is slow, or may have missed some.

    It is quick just where a graph branches in many dimensions, so that its factors would fill up.
    """
    size = len(start)
    rounds = LANCZOS_PRODUCTS // (LANCZOS_VECTORS - d)
    limits: Any = {"which": "LA", "ncv": LANCZOS_VECTORS, "maxiter": rounds}
    try:
        largest, vectors = eigsh(operator, k=d, v0=start, **limits)
        # Of several equal eigenvalues some may be missing. Then another start finds them in what remains.
        rest = operator_of(size, lambda x: operator @ x - vectors @ (largest * (vectors.T @ x)))
        missed = eigsh(rest, k=1, v0=start[::-1], return_eigenvectors=False, **(limits | {"tol": 1e-8}))
    except ArpackNoConvergence:
        return None
    return None if missed[0] > largest.min() else (1 - largest, vectors)


def _by_inversion(operator: Matrix, d: int, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs of I - operator shifted to just above zero and inverted: the smallest are well apart."""
    size = operator.shape[0]
    solve: Any = partial(eigsh, k=d, sigma=SHIFT, which="LM", v0=start)
    if isinstance(operator, np.ndarray):
        return solve(np.eye(size) - operator)
    laplacian = (sparse.eye_array(size) - operator).tocsc()
    shifted = (laplacian - SHIFT * sparse.eye_array(size)).tocsc()
    factors = splu(
        shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    inverse = operator_of(size, factors.solve)
    return solve(laplacian, OPinv=inverse)


def operator_of(size: int, multiply: Callable[[np.ndarray], np.ndarray]) -> Matrix:
    """A symmetric operator known by its products alone."""
    make: Any = LinearOperator
    return make((size, size), matvec=multiply, rmatvec=multiply, dtype=np.float64)


def dense(matrix: Matrix) -> Any:
    """The matrix written out."""
    if isinstance(matrix, np.ndarray):
        return matrix
    return matrix @ np.eye(matrix.shape[1]) if isinstance(matrix, LinearOperator) else matrix.toarray()
