"""What goes into a page, and what is left out of it."""

import base64
import io
import json
import re
import struct

import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image

import lapwing
from lapwing import storage
from lapwing.envs.arena import open_arena
from lapwing.envs.gridworld import GridWorld
from lapwing.envs.plane import open_plane
from lapwing.errors import ConfigError
from lapwing.exploring import export
from lapwing.exploring.arrays import packed, rounded, scaled
from lapwing.exploring.explore import explore
from lapwing.exploring.export import LARGEST_PAGE, RESERVED, aligned_exact, payload
from lapwing.exploring.network import functions_at
from lapwing.exploring.opening import Opened, open_representation, open_run
from lapwing.exploring.page import PROGRAM, program
from lapwing.exploring.scenes import described, of_arena, of_plane, of_vectors, spread_rows, telling_columns
from lapwing.laplacian.chain import true_chain
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.mazes import read_maze
from tests.support.pages import array_of, data_of
from tests.support.representations import random_representation


def test_arrays_come_back():
    array = np.random.default_rng(0).normal(size=(7, 3)) * [1, 100, 1e-4]
    text = packed(array)
    assert_allclose(np.frombuffer(base64.b64decode(text["data"]), "<f4").reshape(7, 3), array, rtol=1e-6)
    whole = scaled(array)
    numbers = np.frombuffer(base64.b64decode(whole["data"]), "<i2").reshape(7, 3) * whole["scale"]
    assert np.all(np.abs(numbers - array) <= np.abs(array).max(axis=0) / 60_000)
    short = base64.b64decode(rounded(array)["data"])
    values = [struct.unpack("<f", b"\0" + short[i : i + 3])[0] for i in range(0, len(short), 3)]
    assert_allclose(np.reshape(values, (7, 3)), array, rtol=2**-16)


def test_a_run_has_its_numbers_in_its_page(four_room_run, four_room, tmp_path):
    page = explore(four_room_run, out=tmp_path / "page.html", show=False)
    data = data_of(page)
    assert page.stat().st_size <= LARGEST_PAGE
    assert_allclose(data["spectrum"]["learned"], four_room.eigenvalues)
    assert data["functions"]["shape"] == [152, 4]
    assert data["run"]["sha256"] == four_room.sha256()
    assert data["run"]["command"].startswith("lapwing learn FourRoom ")
    assert "--transitions 5000" in data["run"]["command"]
    assert data["remarks"] == []


def test_the_words_that_remake_a_run_make_the_same(four_room_run, four_room, tmp_path):
    page = explore(four_room_run, out=tmp_path / "page.html", show=False)
    lines = data_of(page)["run"]["python"].splitlines()
    made = next(line for line in lines if "lapwing.learn(" in line).partition(" = ")[2]
    again = eval(made.partition(", out=")[0] + ")", {"lapwing": lapwing})
    assert again.sha256() == four_room.sha256()


def test_the_exact_function_is_the_projection_on_its_eigenspace():
    chain = true_chain(GridWorld(read_maze("FourRoom")).transition_matrix())
    values, functions = chain.eigenpairs(6)
    turned = functions.copy()
    turned[:, 1] = (functions[:, 1] + functions[:, 2]) / np.sqrt(2)  # λ₂ = λ₃
    turned[:, 3] *= -1
    assert abs(values[1] - values[2]) < 1e-9
    found = aligned_exact(chain, turned)
    assert_allclose(found[:, [1, 3, 4]], turned[:, [1, 3, 4]], atol=1e-6)


def test_what_is_too_large_is_left_out_and_said():
    rep = random_representation(EncoderSpec("mlp", (2,), 10, None, (700, 700)))
    data = payload(open_representation(rep, np.random.default_rng(0).normal(size=(500, 2))))
    assert data["network"] is None
    assert any("network" in remark for remark in data["remarks"])
    many = random_representation(EncoderSpec("mlp", (60,), 40, None, (8,)))
    data = payload(open_representation(many, np.random.default_rng(0).normal(size=(9_000, 60))))
    assert len(json.dumps(data)) < LARGEST_PAGE
    assert any("of 9,000 states" in remark for remark in data["remarks"])


def test_each_picture_is_that_of_its_state(monkeypatch):
    monkeypatch.setattr(export, "LARGEST_PAGE", RESERVED + 15_000)
    rep = random_representation(EncoderSpec("conv", (6, 6, 1), 2))
    images = np.random.default_rng(0).integers(0, 256, (300, 6, 6, 1)).astype(np.uint8)
    data = payload(open_representation(rep, images))
    count, columns = data["functions"]["shape"]
    assert 0 < len(data["pictures"]) < count < 300
    shown = [np.array(Image.open(io.BytesIO(base64.b64decode(text)))) for text in data["pictures"]]
    expected = functions_at(rep, np.stack(shown)[..., None])[1][:, :columns]
    whole = np.frombuffer(base64.b64decode(data["functions"]["data"]), "<i2").reshape(count, columns)
    scale = np.array(data["functions"]["scale"])
    assert np.all(np.abs(whole[: len(shown)] * scale - expected) <= scale)
    assert any(f"{len(shown)} of {count} images" in remark for remark in data["remarks"])


def test_a_plan_is_within_the_size_of_the_page(reach_run, monkeypatch):
    data = payload(reach_run)
    plan, rest = len(json.dumps(data["plan"])), len(json.dumps(data | {"plan": None}))
    assert plan > 150_000
    assert data["remarks"] == []
    monkeypatch.setattr(export, "LARGEST_PAGE", RESERVED + plan)
    smaller = payload(reach_run)
    assert smaller["plan"] is None
    assert len(json.dumps(smaller)) <= rest + 100
    assert smaller["functions"] == data["functions"]
    assert smaller["remarks"] == ["the plan over landmarks is too large for the page and is left out"]


def test_the_goal_of_a_thinned_scene_is_where_it_was():
    arena = open_arena("PointUMaze")
    whole = of_arena(arena, "position", 5_000)
    assert whole.goal is not None
    thin = of_arena(arena, "position", len(whole.points) // 5)
    assert len(thin.points) < len(whole.points) / 4
    apart = np.linalg.norm(thin.points - whole.points[whole.goal], axis=1)
    assert apart[thin.goal] == apart.min()


def test_what_is_too_fine_a_lattice_becomes_a_coarser_one(monkeypatch):
    rep = random_representation(EncoderSpec("mlp", (2,), 10, None, (8,)))
    fine = of_plane(open_plane("PlaneFourRoom"), 5_000)
    monkeypatch.setattr(export, "LARGEST_PAGE", RESERVED + 150_000)
    data = payload(Opened(rep, fine))
    count = len(array_of(data["scene"]["points"]))
    assert 152 < count < len(fine.points)
    assert count * data["scene"]["spacing"] ** 2 == pytest.approx(152)
    assert not any("states are shown" in remark for remark in data["remarks"])


def test_functions_that_tell_states_apart_are_drawn():
    rng = np.random.default_rng(0)
    functions = np.column_stack([np.ones(400), rng.integers(2, size=(400, 2)), rng.normal(size=(400, 2))])
    assert telling_columns(functions, 1) == (3, 4)
    functions[:, 1:3] = rng.normal(size=(400, 2))
    assert telling_columns(functions, 1) == (1, 2)
    assert telling_columns(np.ones((5, 1)), 0) == (0, 0)


def test_dark_images_are_shown_brighter():
    rep = random_representation(EncoderSpec("conv", (6, 6, 1), 2))
    images = np.random.default_rng(0).integers(0, 256, (10, 6, 6, 1)).astype(np.uint8)
    assert payload(open_representation(rep, images))["brightness"] == 1
    assert payload(open_representation(rep, images // 50))["brightness"] == pytest.approx(255 / 5)


def test_thinned_points_are_spread():
    points = np.random.default_rng(0).normal(size=(5_000, 2)) * [1, 3]
    kept = points[spread_rows(points, 400)]
    assert 200 < len(kept) <= 400
    assert np.ptp(kept, axis=0) == pytest.approx(np.ptp(points, axis=0), rel=0.2)


def test_names_at_the_top_of_the_modules_differ():
    names = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", program(), flags=re.MULTILINE)
    assert len(PROGRAM) == len(set(PROGRAM))
    assert len(names) == len(set(names))


@pytest.mark.parametrize("left", ["nothing", "no result"])
def test_what_is_no_finished_run_is_refused(four_room_run, tmp_path, left):
    if left == "no result":
        for name in ("config.json", "representation.safetensors"):
            (tmp_path / name).write_bytes((four_room_run / name).read_bytes())
    with pytest.raises(ConfigError, match=str(tmp_path)):
        open_run(tmp_path)


@pytest.mark.parametrize(("kind", "words"), [("options", "holds options"), ("other", "kind 'other'")])
def test_a_run_of_another_command_is_refused(four_room_run, tmp_path, kind, words):
    for path in filter(storage.is_file, four_room_run.iterdir()):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    config = storage.read_checked_json(tmp_path / "config.json")
    storage.write_checked_json(tmp_path / "config.json", config | {"kind": kind})
    with pytest.raises(
        ConfigError, match=f"{re.escape(str(tmp_path))} .*{words}.*; name the run of lapwing learn"
    ):
        open_run(tmp_path)


def test_observations_go_with_a_representation_only(four_room_run):
    with pytest.raises(ConfigError, match="observations"):
        explore(four_room_run, np.zeros((3, 2)))


@pytest.mark.parametrize(("height", "to_scale"), [(2.0, True), (0.1, False)])
def test_coordinates_are_drawn_to_one_scale_and_other_features_are_not(height, to_scale):
    rng = np.random.default_rng(0)
    seen = rng.uniform(0, 1, (200, 2)) * [1.0, height]
    assert described(of_vectors(seen, seen))["toScale"] is to_scale
