"""Early stopping for scarce data.

If enumerated states have few visits, the counts are mostly noise, and φ learns their smooth part first.
Stopping before the loss on held-out episodes rises again is worth several times the data.
"""

from contextlib import suppress

import numpy as np

from lapwing.laplacian.chain import Chain, empirical_chain
from lapwing.laplacian.representation import embed_batch
from lapwing.laplacian.ritz import moments_of_chain, rayleigh_ritz
from lapwing.laplacian.target import Target
from lapwing.laplacian.train import TrainState, train
from lapwing.progress import OnChunk, report_begin
from lapwing.settings.learn import ResolvedSettings

SCARCE_VISITS = 100
"""Below so many transitions a state, data is scarce."""
FOLDS = 4
PATIENCE = 30
"""A trial ends when the held-out objective has not been lower for more hundredths of the steps than this."""


def is_scarce(target: Target) -> bool:
    """Whether enumerated states have been left so seldom that their counts can be over-fitted."""
    if target.experience is None or target.states is None:
        return False
    seen = len(np.unique(target.experience.observations))
    return target.experience.n_transitions < SCARCE_VISITS * seen


def held_out_stop(target: Target, settings: ResolvedSettings, on_chunk: OnChunk | None = None) -> int:
    """The step after which what three of four episodes teach serves every fourth one best."""
    assert target.experience is not None
    rest, held_out = target.folded(min(FOLDS, target.experience.n_episodes))
    trial = _Trial(rest, empirical_chain(held_out), target.one_step.rho, settings.dim)
    with suppress(_OutOfPatienceError):
        report_begin(on_chunk, settings.stop)
        train(rest, settings, checkpoints=trial, on_chunk=on_chunk)
    return trial.best_step


class _OutOfPatienceError(Exception):
    """The held-out objective has not been lower for long."""


class _Trial:
    """`Checkpoints` that keep no state, but the step with the lowest held-out objective."""

    def __init__(self, learned_from: Target, held_out: Chain, rho: np.ndarray, dim: int):
        self._learned_from, self._held_out, self._rho, self._dim = learned_from, held_out, rho, dim
        self._lowest, self._since = np.inf, 0
        self.best_step = 0

    def restore(self, like: TrainState) -> None:
        """There is no state to resume from."""

    def record(self, row: dict) -> None:
        """The metrics of a trial are of no use later."""

    def keep(self, state: TrainState, step: int, seconds: float, *, last: bool) -> None:
        """Measure G of the eigenfunctions on the held-out episodes."""
        assert self._learned_from.states is not None
        phi = embed_batch(state.encoder, self._learned_from.states)
        objective = self._objective(np.asarray(phi, np.float64))
        if objective < self._lowest:
            self._lowest, self.best_step, self._since = objective, step, 0
        elif self._since == PATIENCE:
            raise _OutOfPatienceError
        else:
            self._since += 1

    def _objective(self, phi: np.ndarray) -> float:
        """G on held-out episodes of the functions that Rayleigh-Ritz finds, orthonormal over all the data.

        A dimension that has vanished counts 1, about what a random function has.
        """
        ritz = rayleigh_ritz(*moments_of_chain(self._learned_from.one_step, phi), self._dim)
        functions = ritz.coefficients[0] + phi @ ritz.coefficients[1:]
        moment = functions.T @ (self._rho[:, None] * functions)
        smoothness = functions.T @ (self._held_out.rho[:, None] * functions)
        smoothness -= functions.T @ (self._held_out.weights @ functions)
        found = np.trace(np.linalg.pinv(moment, rcond=1e-8, hermitian=True) @ smoothness)
        return float(found) + self._dim - int(np.linalg.matrix_rank(moment, rtol=1e-8, hermitian=True))
