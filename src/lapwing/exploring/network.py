"""φ in NumPy, and its network as a page holds it: matrices that the page multiplies itself."""

from typing import Any

import numpy as np

from lapwing.exploring.arrays import packed, rounded, text_size
from lapwing.laplacian.encoders import ConvNet
from lapwing.laplacian.forward import Forward, Weights, folded
from lapwing.laplacian.representation import Representation


def network_of(representation: Representation) -> dict[str, Any]:
    """What the page needs to give φ of any observation."""
    return {
        "shape": list(representation.spec.shape),
        "kernel": ConvNet.KERNEL,
        "weights": _as_json(folded(representation, "phi")),
    }


def network_size(representation: Representation) -> int:
    """About how many characters `network_of` takes."""
    return _size(folded(representation, "phi"))


def functions_at(representation: Representation, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """φ and the eigenfunctions, in NumPy: a page is to be there at once, and nothing is compiled."""
    phi = np.asarray(Forward(representation)(observations), np.float64)
    coefficients = np.asarray(representation.coefficients, np.float64)
    return phi, phi @ coefficients[1:] + coefficients[0]


def _as_json(weights: Weights) -> dict[str, Any]:
    # Bumps make much of the last digits of where they stand.
    dense = rounded if weights.centres is None else packed
    found: dict[str, Any] = {
        "layers": [{"weight": dense(weight), "bias": packed(bias)} for weight, bias in weights.layers],
        "strides": list(weights.strides),
        "before": [_as_json(stage) for stage in weights.before],
    }
    if weights.width is not None:
        found["width"] = float(weights.width)
    for name in ("shift", "directions", "centres"):
        array = getattr(weights, name)
        if array is not None:
            found[name] = packed(array)
    return found


def _size(weights: Weights) -> int:
    each = 3 if weights.centres is None else 4
    total = sum(text_size(weight.size, each) + text_size(bias.size, 4) for weight, bias in weights.layers)
    for array in (weights.shift, weights.directions, weights.centres):
        total += 0 if array is None else text_size(np.size(array), 4)
    return total + sum(map(_size, weights.before))
