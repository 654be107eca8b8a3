"""φ's network as a page holds it: the matrices of `laplacian.forward`, which the page multiplies itself."""

from typing import Any

import numpy as np

from lapwing.exploring.arrays import packed, rounded, text_size
from lapwing.laplacian.encoders import ConvNet
from lapwing.laplacian.forward import Weights, folded
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
