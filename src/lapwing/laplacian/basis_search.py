"""The search for the bumps that do best on validation episodes: one stage after the other, greedily."""

from dataclasses import dataclass, field

from lapwing.data.experience import Experience
from lapwing.errors import ConfigError
from lapwing.laplacian.bases import MOST_COORDINATES
from lapwing.laplacian.closed_form import BETTER, CUTOFFS, LEAST_SCORED, Choice, Study, Trial
from lapwing.progress import OnChunk, report_begin

SLOWNESSES = (0.5, 1.0, 0.0)
"""Powers p that are tried in the first stage; further stages have the first of them."""
BUMPS = (150, 300)
"""Numbers of bumps that are tried in the first stage, one after the other while the score falls."""
FURTHER_BUMPS, MOST_STAGES = 300, 3
WIDTHS, FURTHER_WIDTHS = (1.0, 1.5, 2.0, 3.0, 4.0), (2.0, 3.0, 4.5)
"""Widths that are tried in the first and in further stages, in median distances between centres."""
NARROW = WIDTHS[:2]
"""A stage so narrow may be no better by itself, and pass on functions that know of walls."""
MOST_TRIALS = len(SLOWNESSES) + 1 + 1 + MOST_STAGES
"""More are never made."""


def choose(
    learned_from: Experience,
    dim: int,
    seed: int,
    trials: int,
    *,
    fixed: dict[str, tuple],
    on_trial: OnChunk | None = None,
    study: Study | None = None,
) -> list[Trial]:
    """What was tried, the chosen one first.

    Coordinates are compared with few bumps; then there are more bumps, and further stages, while the score
    falls. If it does not fall behind wide bumps, further stages are tried behind narrow ones too.

    Args:
        learned_from: the episodes.
        dim: how many eigenfunctions are wanted.
        seed: of what is drawn.
        trials: how many at most.
        fixed: fields of `StageChoice` that are not to be chosen, with a value for each stage.
        on_trial: called after each with (done, all, scores).
        study: that of these episodes, if it is known.
    """
    most = max(fixed.get("bumps", (FURTHER_BUMPS,))) + MOST_COORDINATES
    if dim > most:
        raise ConfigError(
            f"dim must be at most {most} in closed form, not {dim}; lower --dim, or train a network with "
            "--estimator pairwise"
        )
    stages = len(next(iter(fixed.values()))) if fixed else None
    report_begin(on_trial, trials)
    search = _Search(study or Study(learned_from, dim, seed, max(dim, LEAST_SCORED)), trials, fixed, on_trial)
    best = search.with_further_stages(search.first_stage(), stages)
    if stages is None and len(best.choice) == 1:
        best = search.behind_narrow(best)
    return [best, *(trial for trial in search.done if trial is not best)]


@dataclass(eq=False)
class _Search:
    """The trials so far."""

    study: Study
    trials: int
    fixed: dict[str, tuple]
    on_trial: OnChunk | None
    done: list[Trial] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.unstaged = self.study

    def given(self, name: str, stage: int, otherwise: tuple) -> tuple:
        """The values to try of a field of `StageChoice`."""
        return (self.fixed[name][stage],) if name in self.fixed else otherwise

    def first_stage(self) -> Trial:
        """The best coordinates; then more bumps over them while the score falls."""
        wide = self.study.reduction.matrix.shape[1] > 1
        slownesses = self.given("slowness", 0, SLOWNESSES if wide else SLOWNESSES[:1])
        counts = sorted({min(n, self.study.most_bumps) for n in self.given("bumps", 0, BUMPS)})
        widths = self.given("bump_width", 0, WIDTHS)
        for slowness in slownesses[: self.trials]:
            self.attempt((), slowness, counts[0], widths)
        best = min(self.done, key=lambda trial: trial.score)
        for count in counts[1:]:
            if len(self.done) < self.trials:
                found = self.attempt((), best.choice[0].slowness, count, widths)
                best = found if found.score < BETTER * best.score else best
        return best

    def with_further_stages(self, best: Trial, stages: int | None = None) -> Trial:
        """So many stages on top of the first; None: as many as lower the score."""
        while len(best.choice) < (stages or MOST_STAGES):
            found = self.further_stage(best)
            if found is None or (stages is None and found.score >= BETTER * best.score):
                break
            best = found
        return best

    def behind_narrow(self, best: Trial) -> Trial:
        """Further stages behind narrow bumps, if they do better than the wide ones of a single stage."""
        (choice,) = best.choice
        if choice.bump_width <= NARROW[-1] or len(self.done) + 2 > self.trials:
            return best
        self.study = self.unstaged
        found = self.with_further_stages(self.attempt((), choice.slowness, choice.bumps, NARROW))
        return found if found.score < BETTER * best.score else best

    def further_stage(self, best: Trial) -> Trial | None:
        """One stage on top of the best so far."""
        stage = len(best.choice)
        required = bool(self.fixed)
        if len(self.done) >= self.trials and not required:
            return None
        self.study = self.study.behind(self.study.fitted(best.choice[-1]))
        slowness = self.given("slowness", stage, SLOWNESSES)[0]
        count = min(self.given("bumps", stage, (FURTHER_BUMPS,))[0], self.study.most_bumps)
        return self.attempt(best.choice, slowness, count, self.given("bump_width", stage, FURTHER_WIDTHS))

    def attempt(self, before: Choice, slowness: float, bumps: int, widths: tuple) -> Trial:
        """Try bumps behind the stages before."""
        cutoffs = self.given("cutoff", len(before), CUTOFFS)
        choice, score, values = self.study.trial(slowness, bumps, widths, cutoffs)
        stages = (*before, choice)
        self.done.append(Trial("; then ".join(map(str, stages)), score, stages, tuple(values.tolist())))
        if self.on_trial:
            self.on_trial(len(self.done), max(self.trials, len(self.done)), {"score": score})
        return self.done[-1]
