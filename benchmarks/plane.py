"""Continuous states: PlaneFourRoom against the fine discretisation, and what held-out episodes say."""

import time

from benchmarks.rows import Row
from lapwing.laplacian.choose import resolve
from lapwing.laplacian.evaluate import evaluate
from lapwing.laplacian.learn import learn_resolved
from lapwing.laplacian.target import open_target
from lapwing.settings.learn import LearnSettings


def measure() -> list[Row]:
    settings = LearnSettings(dim=11)
    target = open_target("PlaneFourRoom", settings)
    began = time.perf_counter()
    representation, trained = learn_resolved(target, resolve(settings, target))
    seconds = time.perf_counter() - began
    measures = evaluate(representation, target)
    held_out = measures["held_out"]
    closed = 1 - measures["gap"] / measures["gap_random"]
    trusted = held_out["trusted"]
    note = f"learning {trained.learn_seconds:.0f} s, {seconds:.0f} s in all"
    return [
        Row(
            "PlaneFourRoom, 10⁶ steps, d = 11: share of a random basis's gap closed", closed, 0.99, note=note
        ),
        Row("… gap", measures["gap"], None, note=f"random basis {measures['gap_random']:.2f}"),
        Row("… mean cosine with the reference eigenfunctions", measures["cosine_mean"], None),
        Row("… eigenvalue error, mean, relative", measures["eigenvalue_error"], None),
        Row("… eigenfunctions held to be trusted, of 11", trusted, None),
        Row("… orthonormality error on held-out episodes", held_out["orthonormality_error"], None),
    ]
