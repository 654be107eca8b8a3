"""What of a representation goes into its page, and what is left out so that the page stays small."""

import base64
import io
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from PIL import Image

from lapwing._version import __version__
from lapwing.errors import ConfigError
from lapwing.exploring.actions import Actions, described_actions
from lapwing.exploring.arrays import packed, scaled, text_size
from lapwing.exploring.commands import command_line, python_lines
from lapwing.exploring.network import functions_at, network_of, network_size
from lapwing.exploring.opening import Opened
from lapwing.exploring.plans import plan_of
from lapwing.exploring.scenes import described
from lapwing.laplacian.evaluate import SAME_EIGENVALUE, exact_spectrum
from lapwing.laplacian.representation import Representation
from lapwing.mazes import MOVES

LARGEST_PAGE = 1_500_000
"""Bytes."""
RESERVED = 180_000
"""So many of these are for the program of the page and for plain text."""
FEWER = (1.0, 0.6, 0.4, 0.2, 0.1)
"""Shares of the states, and of the eigenfunctions, that are tried until it fits."""
TOO_LARGE = "what actions do is too large for the page, so that no reward can be painted: use lapwing.solve"
DARK = 64
"""Images whose largest byte is smaller are shown brighter."""
LARGEST_PICTURE = 200
"""Pixels of an image along a side."""


@dataclass(frozen=True)
class Budget:
    """What fits into a page."""

    states: int
    columns: int
    network: bool
    extras: bool
    """Whether a reacher's plan, or what actions do at landmarks, is in it."""
    pictures: int
    """So many characters are left for pictures."""


def payload(opened: Opened) -> dict[str, Any]:
    """All data of a page, as JSON can hold it."""
    representation = opened.representation
    if opened.scene.observations is None:
        phi, functions = None, np.asarray(representation.reference, np.float64)
    else:
        phi, functions = functions_at(representation, opened.scene.observations)
    plan = None if opened.reacher is None else plan_of(opened.reacher, opened.scene)
    actions, no_actions = _actions(opened)
    extras = sum(len(json.dumps(extra)) for extra in (plan, actions) if extra is not None)
    budget = fitting(opened, functions.shape, extras)
    if budget.states < len(functions) and opened.scene.coarser is not None:
        return payload(replace(opened, scene=opened.scene.coarser(budget.states)))
    if opened.scene.discrete or budget.states >= len(functions):
        scene, rows = opened.scene, np.arange(len(functions))
    else:
        rows = np.sort(np.random.default_rng(0).permutation(len(functions))[: budget.states])
        scene = opened.scene.taken(rows)
    columns, chain = budget.columns, opened.scene.chain
    exact = None
    if chain is not None and len(rows) == chain.n_states and representation.rotated:
        exact = scaled(aligned_exact(chain, functions[:, :columns]), "i1")
    whole = columns == functions.shape[1]
    pictures = _pictures(scene.observations, budget.pictures)
    vectors = scene.observations if scene.observations is not None and scene.observations.ndim == 2 else None
    return {
        "version": __version__,
        "title": str(opened.result.get("target") or representation.config.get("target") or "representation"),
        "about": repr(representation),
        "scene": described(scene)
        | {
            "points": packed(scene.points.astype(np.float32)),
            "neighbours": packed(scene.neighbours()) if len(rows) > 1 else None,
        },
        "moves": [*MOVES, "stay"][: scene.moves.shape[1]] if scene.moves is not None else None,
        "actions": actions if budget.extras else None,
        "noActions": no_actions or TOO_LARGE,
        "observations": None if vectors is None else packed(vectors.astype(np.float32)),
        "functions": scaled(functions[rows][:, :columns]),
        "phi": scaled(phi[rows]) if phi is not None and whole else None,
        "exact": exact,
        "coefficients": packed(representation.coefficients[:, :columns].astype(np.float32)),
        "filters": _filters(representation, columns, soft=phi is not None and whole),
        "defaultFilter": representation.default_filter,
        "rotated": representation.rotated,
        "spectrum": _spectrum(representation, opened.result, columns),
        "network": network_of(representation) if budget.network else None,
        "pictures": pictures,
        "brightness": _brightness(scene.observations) if pictures else 1.0,
        "plan": plan if budget.extras else None,
        "learning": _learning(opened),
        "run": _provenance(opened),
        "remarks": [*scene.remarks, *remarks(opened, budget, functions.shape, len(pictures))],
    }


def fitting(opened: Opened, shape: tuple[int, ...], extras: int = 0) -> Budget:
    """The first of what could be shown that fits: fewer states, no network, no extras, then fewer functions.

    `extras` is how many characters a reacher's plan or what actions do takes; a plan is made by all
    functions, so it goes before them.
    """
    states, columns = shape
    scene, network = opened.scene, network_size(opened.representation)
    observations = scene.observations
    features = observations.shape[1] if observations is not None and observations.ndim == 2 else 0
    shares = (1.0,) if scene.discrete else FEWER
    for columns_share, extra in [(1.0, extras)] * (extras > 0) + [(share, 0) for share in FEWER]:
        kept = max(2, int(columns * columns_share))
        spectral = 2 * kept + (2 * opened.representation.spec.dim if kept == columns else 0)
        spectral += kept if scene.chain is not None else 0
        for with_network in (True, False):
            for share in shares:
                count = max(1, int(states * share))
                each = spectral + 8 + 4 * features + 4 * 8
                size = text_size(count * each, 1) + with_network * network
                room = LARGEST_PAGE - RESERVED - extra - size
                if room >= 0:
                    return Budget(count, kept, with_network, extra > 0, room)
    raise ConfigError(
        f"{states:,} states are too many for a page of {LARGEST_PAGE / 1e6:.1f} MB; explore a smaller maze"
    )


def remarks(opened: Opened, budget: Budget, shape: tuple[int, ...], pictures: int) -> list[str]:
    """What was left out, in words."""
    found = []
    if budget.states < shape[0] and not opened.scene.discrete:
        found.append(f"{budget.states:,} of {shape[0]:,} states are shown, so that the page stays small")
    if budget.columns < shape[1]:
        found.append(f"{budget.columns} of {shape[1]} eigenfunctions are shown, so that the page stays small")
    if not budget.network:
        found.append("the network is too large for the page, so φ is known at the states shown alone")
    if opened.reacher is not None and not budget.extras:
        found.append("the plan over landmarks is too large for the page and is left out")
    if isinstance(opened.actions, Actions):
        found += opened.actions.remarks if budget.extras else [TOO_LARGE]
    if _are_pictures(opened.scene.observations) and pictures < budget.states:
        found.append(f"{pictures:,} of {budget.states:,} images are shown, so that the page stays small")
    return found


def _actions(opened: Opened) -> tuple[dict[str, Any] | None, str]:
    """What actions do, where a maze's moves do not say it; or why it is not known."""
    if opened.scene.moves is not None:
        return None, ""
    if isinstance(opened.actions, str):
        return None, opened.actions
    return described_actions(opened.actions, opened.scene), ""


def aligned_exact(chain: Any, functions: np.ndarray) -> np.ndarray:
    """Of each eigenspace the function nearest to the learned one: its projection, with E[f²] = 1.

    Where an eigenvalue is single, it is the exact eigenfunction, turned to the sign of the learned one.
    """
    spectrum = exact_spectrum(chain, functions.shape[1])
    overlaps = spectrum.functions.T @ (chain.rho[:, None] * functions)
    count = min(functions.shape[1], len(spectrum.eigenvalues))
    same = np.abs(spectrum.eigenvalues[:, None] - spectrum.eigenvalues[None, :count]) <= SAME_EIGENVALUE
    projected = spectrum.functions @ np.where(same, overlaps[:, :count], 0.0)
    size = np.sqrt(chain.rho @ projected**2)
    found = np.zeros_like(functions)
    found[:, :count] = projected / np.where(size > 0, size, 1.0)
    return found


def _filters(representation: Representation, columns: int, *, soft: bool) -> dict[str, Any]:
    """What each filter multiplies the eigenfunctions after the constant with; `soft` takes φ itself."""
    weights: dict[str, Any] = {
        name: representation.filter_weights(name)[: columns - 1].astype(float).tolist()
        for name in representation.distances
        if name != "soft"
    }
    return weights | ({"soft": None} if soft or not weights else {})


def _spectrum(representation: Representation, result: dict[str, Any], columns: int) -> dict[str, Any]:
    held_out = result.get("held_out") or representation.config.get("held_out") or {}
    return {
        "learned": representation.eigenvalues[:columns].astype(float).tolist(),
        "exact": result.get("eigenvalues_exact"),
        "cosine": result.get("cosine"),
        "operator": result.get("operator"),
        "heldOut": held_out.get("eigenvalues"),
        "spread": held_out.get("spread"),
        "trusted": representation.config.get("trusted"),
    }


def _learning(opened: Opened) -> dict[str, Any] | None:
    """The curves of training, or what was tried."""
    rows = [row for row in opened.metrics if "loss" in row]
    if rows:
        every = -(-len(rows) // 400)
        rows = [*rows[:-1:every], rows[-1]]
        names = [name for name in ("loss", "graph_drawing", "penalty") if name in rows[0]]
        return {"step": [row["step"] for row in rows]} | {
            "series": {name: [row.get(name) for row in rows] for name in names}
        }
    tried = opened.representation.config.get("tried")
    return {"tried": tried} if tried else None


def _provenance(opened: Opened) -> dict[str, Any]:
    representation = opened.representation
    numbers = {
        name: value
        for name, value in opened.result.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return {
        "path": None if opened.path is None else str(opened.path),
        "settings": representation.config.get("settings", {}),
        "measures": numbers,
        "distances": opened.result.get("distance_correlation"),
        "source": {name: value for name, value in opened.source.items() if name != "text"},
        "sha256": representation.sha256(),
        "command": command_line(opened),
        "python": python_lines(opened),
    }


def _are_pictures(observations: np.ndarray | None) -> bool:
    return observations is not None and observations.ndim == 4 and observations.shape[-1] in (1, 3)


def _pictures(observations: np.ndarray | None, room: int) -> list[str]:
    """Images as PNG, in base64: the first that have room; none where observations are no images."""
    found: list[str] = []
    if observations is None or not _are_pictures(observations):
        return found
    for image in observations:
        picture = _png(image)
        room -= len(picture) + len('"", ')
        if room < 0:
            break
        found.append(picture)
    return found


def _brightness(observations: np.ndarray | None) -> float:
    """What images are multiplied with to be seen: some number things from 0 to 10 in place of colours."""
    most = 0.0 if observations is None else float(observations.max(initial=0))
    most *= 1 if observations is not None and observations.dtype == np.uint8 else 255
    return 255 / most if 0 < most < DARK else 1.0


def _png(image: np.ndarray) -> str:
    whole = image if image.dtype == np.uint8 else np.clip(255 * image, 0, 255).astype(np.uint8)
    picture = Image.fromarray(whole[..., 0] if whole.shape[-1] == 1 else whole)
    if max(picture.size) > LARGEST_PICTURE:
        picture.thumbnail((LARGEST_PICTURE, LARGEST_PICTURE))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode("ascii")
