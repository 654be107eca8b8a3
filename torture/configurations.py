"""Random settings, sensible and not, through the API and the command line: accepted, or one sentence."""

import contextlib
import dataclasses
import io
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

import lapwing
from lapwing.cli.parse import parse
from lapwing.errors import LapwingError
from lapwing.settings.learn import LearnSettings
from tests.support.walks import reflected
from torture.tally import REFUSED, SAME, Tally

TRIES = {"configurations:api": 5_000, "configurations:command": 5_000, "configurations:run": 300}
ABOUT = {
    "configurations:api": "random settings given to `LearnSettings`",
    "configurations:command": "random words given to `lapwing learn`",
    "configurations:run": "random settings learned with, to the end",
}
NAMES = [field.name for field in dataclasses.fields(LearnSettings)]
WILD = (
    None,
    -1,
    0,
    1,
    7,
    2**70,
    0.5,
    -0.5,
    1e300,
    math.nan,
    math.inf,
    "",
    "x",
    "φ",
    True,
    (),
    (8, 8),
    [],
    {},
    object,
)
"""Values of every kind."""
TAME: dict[str, tuple[Any, ...]] = {
    "dim": (1, 2, 3, 5),
    "observation": ("index", "position", "image"),
    "estimator": ("exact", "pairwise", "sampled", "closed-form"),
    "objective": ("graph-drawing", "generalised", "allo", "omm", "nested"),
    "lam": (0.0, 0.5, 0.9),
    "lam_final": (0.0, 0.5),
    "past_end": ("discard", "truncate"),
    "beta": (0.1, 1.0, 5.0),
    "delta": (0.05, 1.0),
    "batch": (2, 16, 64),
    "encoder": ("linear", "mlp", "fourier", "conv", "bumps"),
    "hidden": ((4,), (8, 8), ()),
    "oversample": (0, 1, 4),
    "held_out": (0.0, 0.2, 0.5),
    "rotate": (True, False),
    "standardise": (True, False),
    "schedule": ("constant", "cosine"),
    "learning_rate": (1e-4, 1e-2, 1.0),
    "bumps": ((5,), (5, 5)),
    "bump_width": ((1.0,), (2.0, 2.0)),
    "trials": (1, 2),
    "episode_length": (1, 2, 20),
    "stay": (True,),
    "true_chain": (True,),
    "seed": (0, 1, 2**31),
    "preset": ("default", "paper"),
}
"""Values that may go together."""


def settings(chance: random.Random, wild: float) -> dict[str, Any]:
    """Some settings; so large a share of them may be anything."""
    names = chance.sample(NAMES, chance.randrange(1, 8))
    return {
        name: chance.choice(WILD if chance.random() < wild or name not in TAME else TAME[name])
        for name in names
    }


def attempts(part: str, tally: Tally) -> Iterator[str]:
    """One configuration after the other."""
    attempt = {"api": _constructed, "command": _parsed, "run": _learned}[part.partition(":")[2]]
    for number in range(tally.tries, 10**9):
        chance = random.Random(f"{part} {number}")
        try:
            with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
                attempt(chance)
            yield SAME
        except LapwingError:
            yield REFUSED
        except SystemExit as ended:
            yield REFUSED if ended.code == 2 else f"{number}: exit code {ended.code}"
        except Exception as error:
            yield f"{number}: {type(error).__name__}: {str(error)[:200]}"


def _constructed(chance: random.Random) -> None:
    LearnSettings.from_keywords(settings(chance, 0.5))


def _parsed(chance: random.Random) -> None:
    words = ["learn", "TwoRoom"]
    for name, value in settings(chance, 0.4).items():
        values = value if isinstance(value, tuple | list) else [] if value in (True, False) else [value]
        words += [f"--{name.replace('_', '-')}", *map(str, values)]
    if chance.random() < 0.2:
        words.insert(
            chance.randrange(len(words)), chance.choice(["--nothing", "-", "--dim", "", "--dim=", "=", "--"])
        )
    parse(words).settings()


def _learned(chance: random.Random) -> None:
    names = chance.sample(sorted(TAME), chance.randrange(0, 5))
    chosen: dict[str, Any] = {name: chance.choice(TAME[name]) for name in names} | {"steps": 3}
    if chosen.get("estimator") == "closed-form" or "bumps" in chosen:
        del chosen["steps"]
    if chance.random() < 0.5:
        rep = lapwing.learn("TwoRoom", transitions=600, **chosen)
    else:
        walks = reflected(20, 31, 0.1, dims=2, seed=chance.randrange(5)).astype(np.float32)
        rep = lapwing.learn(list(walks), **chosen)
    if not np.isfinite(rep.eigenvalues).all():
        raise ArithmeticError(f"eigenvalues of {chosen} are not finite")
