"""What is written in a page of the explorer."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np


def data_of(path: Path) -> dict[str, Any]:
    """What a page holds."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"))
    assert found is not None
    return json.loads(found[1])


def array_of(text: dict[str, Any]) -> np.ndarray:
    """The numbers of an array in it."""
    numbers = np.frombuffer(base64.b64decode(text["data"]), f"<{text['kind']}").reshape(text["shape"])
    return numbers * text.get("scale", 1)
