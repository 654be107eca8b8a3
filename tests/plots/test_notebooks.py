"""What notebooks show: a table and a picture, in which names are text."""

import base64
import io
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image

import lapwing
from lapwing.laplacian.encoders import EncoderSpec
from tests.support.representations import random_representation


def read(html: str) -> tuple[dict[str, str], Image.Image | None]:
    """The rows of the table, and the picture."""
    root = ElementTree.fromstring(html.replace('">', '"/>') if "<img" in html else html)
    rows = {row[0].text: row[1].text for row in root.iter("tr")}
    found = re.search(r"base64,([^\"]+)", html)
    return rows, found and Image.open(io.BytesIO(base64.b64decode(found[1])))


def test_a_representation_shows_its_eigenfunctions(four_room):
    rows, picture = read(four_room._repr_html_())
    assert rows["eigenfunctions"] == "4"
    assert picture.width > 200
    assert len(four_room._repr_html_()) < 200_000


def test_a_policy_shows_its_values(four_room):
    policy = lapwing.solve(four_room, np.eye(152)[7])
    rows, picture = read(policy._repr_html_())
    assert rows["states"] == "152"
    assert rows["states with a reward"] == "1"
    assert picture is not None


def test_a_reacher_shows_its_landmarks():
    reacher = lapwing.reach("GridMaze-7", transitions=3_000, dim=4, steps=20, landmarks=10)
    rows, picture = read(reacher._repr_html_())
    assert rows["landmarks"] == str(reacher.graph.count)
    assert picture is not None


@pytest.mark.parametrize("shape", [(2,), (5, 4, 3)])
def test_names_are_escaped(shape):
    rep = random_representation(EncoderSpec("mlp" if len(shape) == 1 else "conv", shape, 4, None, (8,)))
    rep.config["target"] = "<script>alert(1)</script>"
    html = rep._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
