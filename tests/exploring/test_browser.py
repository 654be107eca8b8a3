"""The page in a real browser: every view reacts to clicks and keys, and its numbers are lapwing's."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import lapwing
from lapwing.envs.gridworld import GridWorld
from lapwing.exploring.explore import explore
from lapwing.exploring.export import payload
from lapwing.exploring.page import page as html
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.mazes import parse_maze, read_maze
from tests.support import browser
from tests.support.browser import click, drag, element
from tests.support.representations import random_observations, random_representation

ENCODERS = {
    "linear": EncoderSpec("linear", (), 6, 40),
    "mlp": EncoderSpec("mlp", (3,), 6, None, (64, 64)),
    "fourier": EncoderSpec("fourier", (2,), 6, None, (64, 64), 32),
    "bumps": EncoderSpec("bumps", (3,), 6, None, (), 0, ((3, 60, 5), (5, 80, 6))),
    "conv": EncoderSpec("conv", (9, 7, 3), 6),
    "bumps of images": EncoderSpec("bumps", (4, 5, 1), 6, None, (), 0, ((4, 50, 6),)),
}


def test_every_view_opens_without_a_complaint_or_a_request(driver, page):
    browser.open_page(driver, page)
    for tab in driver.find_elements("css selector", "[role=tab]"):
        tab.click()
        browser.settled(driver)
        shown = driver.find_elements("css selector", "[role=tabpanel]:not([hidden])")
        assert [panel.get_attribute("id") for panel in shown] == [tab.get_attribute("aria-controls")]
        assert len(shown[0].text) > 50
    assert browser.complaints(driver) == []
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_the_slider_and_the_keys_walk_through_the_eigenfunctions(driver, page, four_room):
    from selenium.webdriver.common.keys import Keys

    browser.open_page(driver, page)
    slider = element(driver, "#panel-eigenfunctions input[type=range]")
    for index in (2, 3):
        slider.send_keys(Keys.ARROW_RIGHT)
        browser.settled(driver)
        listed = browser.facts(driver, "#panel-eigenfunctions")
        assert_allclose(float(listed["eigenvalue λ"]), four_room.eigenvalues[index], rtol=1e-3)
        assert "cosine with the exact one" in listed
    element(driver, ".thumb:first-child").click()
    browser.settled(driver)
    assert browser.facts(driver, "#panel-eigenfunctions")["eigenvalue λ"] == "0"
    element(driver, "#panel-eigenfunctions canvas.map").send_keys(Keys.ARROW_DOWN)
    browser.settled(driver)
    assert "row" in element(driver, "#panel-eigenfunctions canvas.map").get_attribute("aria-label")


def test_the_spectrum_is_that_of_the_run(driver, page, four_room):
    browser.open_page(driver, page, "spectrum")
    cells = driver.find_elements("css selector", "#panel-spectrum tbody tr td:nth-child(2)")
    found = [float(cell.text) for cell in cells]
    assert_allclose(found, np.maximum(four_room.eigenvalues, 0), rtol=1e-3, atol=1e-8)
    driver.find_elements("css selector", "#panel-spectrum tbody tr")[3].click()
    browser.settled(driver)
    assert driver.execute_script("return lapwing.state.k") == 3


def test_distances_to_a_clicked_goal_are_those_of_the_representation(driver, page, four_room):
    browser.open_page(driver, page, "distances")
    world = GridWorld(read_maze("FourRoom"))
    states = world.observations("position")
    canvas = element(driver, "#panel-distances canvas.map")
    click(driver, canvas, browser.cell_offset(driver, canvas, 9, 3))
    goal = world.check_cell((9, 3))
    assert driver.execute_script("return lapwing.state.goal.state") == goal
    start = driver.execute_script("return lapwing.state.start.state")
    drag(
        driver,
        canvas,
        browser.cell_offset(driver, canvas, *world.cells[start]),
        browser.cell_offset(driver, canvas, 2, 12),
    )
    start = world.check_cell((2, 12))
    assert driver.execute_script("return lapwing.state.start.state") == start
    for name in four_room.distances:
        driver.execute_script(
            "const s = document.querySelector('#panel-distances select'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('change'))",
            name,
        )
        browser.settled(driver)
        found = float(browser.facts(driver, "#panel-distances figure:nth-child(1)")["distance of the start"])
        expected = float(four_room.distance(states[start], states[goal], name))
        assert_allclose(found, expected, rtol=2e-3, atol=1e-3 * four_room.mean_distance(name), err_msg=name)
    euclid = browser.facts(driver, "#panel-distances figure:nth-child(2)")
    assert_allclose(float(euclid["distance of the start"]), np.hypot(7, 9), rtol=1e-3)
    assert euclid["shortest way"] == f"{int(world.steps_to(goal)[start])} steps"


def test_a_painted_reward_has_the_values_of_solve(driver, page, four_room):
    browser.open_page(driver, page, "reward")
    world = GridWorld(read_maze("FourRoom"))
    canvas = element(driver, "#panel-reward canvas.map")
    element(driver, "#panel-reward .controls button").click()
    element(driver, "#panel-reward .brushes label:nth-child(2)").click()
    click(driver, canvas, browser.cell_offset(driver, canvas, 4, 10))
    rewards = np.zeros(world.n_states)
    rewards[world.check_cell((4, 10))] = 5.0
    policy = lapwing.solve(four_room, rewards, gamma=0.98)
    values = policy.values(world.observations("position"))
    listed = browser.facts(driver, "#panel-reward")
    assert_allclose(float(listed["mean value"]), values.mean(), rtol=2e-3)
    start = driver.execute_script("return lapwing.state.start.state")
    assert_allclose(float(listed["value of the start"]), values[start], rtol=2e-3)
    assert "5=4,10" in element(driver, "#panel-reward pre").text


def test_the_plan_is_that_of_the_reacher(driver, reach_run, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(html(payload(reach_run)), "utf-8")
    browser.open_page(driver, path, "distances")
    planner, places = reach_run.reacher.planner, reach_run.reacher.places
    ends = driver.execute_script("return [lapwing.state.start.state, lapwing.state.goal.state]")
    here, goal = places(reach_run.scene.observations[ends])[0]
    words = element(driver, "#panel-distances figure p.dim").text
    landmarks, steps = map(int, re.findall(r"\d+", words))
    assert landmarks == len(planner.route(here, goal))
    assert abs(steps - planner.ways(here[None], goal[None]).steps[0]) <= 0.51


def wait_for_spectrum(driver):
    from selenium.webdriver.support.ui import WebDriverWait

    ready = "const s = lapwing.views.draw.spectrum(); return s.cells && !s.pending ? s : null"
    return WebDriverWait(driver, 20).until(lambda _: driver.execute_script(ready))


def test_a_drawn_maze_has_its_exact_spectrum(driver, page, capsys):
    browser.open_page(driver, page, "draw")
    editor = element(driver, "#panel-draw canvas.map")
    wait_for_spectrum(driver)
    size = editor.size
    for column in (3, 4, 5):
        offset = (round((column + 0.5 - 7.5) * size["width"] / 15), round((2.5 - 7.5) * size["height"] / 15))
        click(driver, editor, offset)
    found = wait_for_spectrum(driver)
    cells = set(map(tuple, found["cells"]))
    assert not cells & {(2, 3), (2, 4), (2, 5)}
    rows = ["".join(".#"[(row, column) not in cells] for column in range(15)) for row in range(15)]
    world = GridWorld(parse_maze("\n".join(rows), name="drawn"))
    laplacian = np.eye(world.n_states) - world.transition_matrix().toarray()
    exact = np.linalg.eigvalsh(laplacian)[:12]
    assert_allclose(found["eigenvalues"], exact, atol=1e-6)
    functions = np.reshape(found["functions"], (-1, 12))
    assert_allclose(laplacian @ functions, functions * found["eigenvalues"], atol=1e-6)
    assert_allclose(functions.T @ functions / world.n_states, np.eye(12), atol=1e-6)
    with capsys.disabled():
        print(f"\n12 eigenfunctions of a drawn 15 x 15 maze: {found['milliseconds']:.0f} ms")


@pytest.mark.parametrize("name", ENCODERS)
def test_phi_in_the_browser_is_that_of_jax(driver, name, tmp_path):
    rep = random_representation(ENCODERS[name])
    rng = np.random.default_rng(1)
    page = explore(rep, random_observations(rep.spec, 30, rng), out=tmp_path / "page.html", show=False)
    observations = random_observations(rep.spec, 1_000, rng)
    unit = 255 if observations.dtype == np.uint8 else 1
    sent = observations.tolist() if not rep.shape else (observations / unit).reshape(1_000, -1).tolist()
    browser.open_page(driver, page)
    found = driver.execute_script(
        "return arguments[0].map((x) => Array.from(lapwing.model.forward(x)))", sent
    )
    expected = rep.phi(observations)
    assert_allclose(found, expected, rtol=0, atol=1e-4 * max(1.0, float(np.abs(expected).max())))


def test_names_are_shown_as_text_and_never_run(driver, tmp_path):
    name = "<img src=x onerror='window.ran = 1'></script><script>window.ran = 2</script>"
    rep = random_representation(EncoderSpec("fourier", (2,), 6, None, (16,), 8))
    rep.config.update({"target": name, "maze": "....\n.##.\n....\n", "settings": {"observation_key": name}})
    page = explore(rep, out=tmp_path / "page.html", show=False)
    browser.open_page(driver, page)
    for tab in driver.find_elements("css selector", "[role=tab]"):
        tab.click()
        browser.settled(driver)
    assert element(driver, "h1").text == name
    assert driver.execute_script("return window.ran") is None
    assert driver.find_elements("css selector", "img[src=x]") == []
    assert browser.complaints(driver) == []


def test_a_phone_has_no_sideways_scrolling(driver, page):
    browser.resize(driver, browser.PHONE)
    try:
        browser.open_page(driver, page)
        for tab in driver.find_elements("css selector", "[role=tab]"):
            driver.execute_script("arguments[0].click()", tab)
            browser.settled(driver)
            wide = "return document.documentElement.scrollWidth - innerWidth"
            assert driver.execute_script(wide) <= 0, tab.text
    finally:
        browser.resize(driver, browser.DESK)


@pytest.mark.slow
def test_five_thousand_states_are_drawn_at_once(driver, tmp_path, capsys):
    """The times are shown, not asserted: they are those of the machine."""
    rep = random_representation(EncoderSpec("fourier", (2,), 25, None, (256, 256), 128))
    rep.config.update({"target": "large", "maze": "\n".join(["." * 72] * 70) + "\n", "settings": {}})
    page = explore(rep, out=tmp_path / "page.html", show=False)
    assert page.stat().st_size <= 1_500_000
    taken = {"first drawing": [], "eigenfunctions": [], "distances": [], "reward": [], "embedding": []}
    for view in list(taken)[1:]:
        browser.open_page(driver, page, view)
        taken["first drawing"] += durations(driver, "first")
        interact(driver, view)
        taken[view] = durations(driver, view)[1:]  # the first is that of the first drawing
        assert len(taken[view]) >= 10
    words = ", ".join(f"{name} {np.median(each):.0f}" for name, each in taken.items())
    with capsys.disabled():
        print(f"\n5,040 states, median milliseconds: {words}")


def durations(driver, name):
    """How long each drawing of a view took, in milliseconds."""
    measures = "return performance.getEntriesByName(arguments[0]).map((each) => each.duration)"
    return driver.execute_script(measures, f"lapwing:{name}")


def interact(driver, view):
    """Ten clicks on the map of a view, or ten keys where keys are what is pressed."""
    from selenium.webdriver.common.keys import Keys

    if view in ("distances", "reward"):
        canvas = element(driver, f"#panel-{view} canvas.map")
        for column in range(10, 60, 5):
            click(driver, canvas, browser.cell_offset(driver, canvas, 20, column))
        return
    pressed = element(driver, "#panel-embedding .cube" if view == "embedding" else f"#panel-{view} input")
    for key in 5 * [Keys.ARROW_RIGHT, Keys.ARROW_LEFT]:
        pressed.send_keys(key)
        browser.settled(driver)
