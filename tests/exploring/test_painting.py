"""What is painted in a page: rewards of data that is no maze, and images."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import lapwing
from lapwing.envs.gridworld import GridWorld
from lapwing.exploring.explore import explore
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.mazes import parse_maze
from tests.support import browser
from tests.support.browser import click, element
from tests.support.pages import array_of, data_of
from tests.support.representations import random_representation


def walk_with_actions(out, *, cells: int | None, numbered: bool = True):
    """The run of a walk in a square by four actions; in so many cells each way, or anywhere."""
    rng, offsets = np.random.default_rng(0), np.array([(0.1, 0), (-0.1, 0), (0, 0.1), (0, -0.1)])
    actions = rng.integers(4, size=(40, 101))
    here, seen = rng.random((40, 2)), []
    for taken in actions.T:
        seen.append(here)
        here = np.clip(here + offsets[taken] + (0 if cells else rng.normal(0, 0.01, here.shape)), 0, 1)
    episodes = np.stack(seen, axis=1)
    if cells:
        episodes = np.clip(np.floor(cells * episodes), 0, cells - 1)
    taken = actions.ravel() if numbered else offsets[actions].reshape(-1, 2)
    experience = lapwing.Experience(episodes.reshape(-1, 2), [101] * 40, actions=taken)
    lapwing.learn(experience, out=out, dim=4, steps=300, hidden=(16,))
    return out


@pytest.mark.parametrize("cells", [6, None])
def test_a_painted_reward_is_solved_for_any_data_with_numbered_actions(driver, tmp_path, cells):
    run = walk_with_actions(tmp_path / "run", cells=cells)
    page = explore(run, show=False)
    browser.open_page(driver, page, "reward")
    canvas = element(driver, "#panel-reward canvas.map")
    element(driver, "#panel-reward .brushes label:nth-child(2)").click()
    place = driver.execute_script("return lapwing.views.reward.pixelOf(3)")
    click(driver, canvas, browser.from_middle(canvas, place))
    painted = driver.execute_script("return lapwing.views.reward.painted()")
    assert {1, 5} <= set(painted["rewards"])
    landmarks = array_of(data_of(page)["actions"]["observations"])
    policy = lapwing.action_model(run).solve((landmarks, np.array(painted["rewards"])))
    assert_allclose(painted["values"], policy.values(landmarks), rtol=2e-3, atol=2e-3)
    shown: dict = {}
    exec(element(driver, "#panel-reward pre").text, shown)  # the words that give the same policy
    again = shown["policy"].values(landmarks)
    if cells:
        assert_allclose(painted["values"], again, rtol=2e-3, atol=2e-3)
    else:  # a function is averaged over what each landmark stands for
        assert np.corrcoef(painted["values"], again)[0, 1] > 0.9


def test_where_actions_are_not_numbered_the_page_says_so(driver, tmp_path):
    run = walk_with_actions(tmp_path / "run", cells=None, numbered=False)
    browser.open_page(driver, explore(run, show=False), "reward")
    assert "not discrete" in element(driver, "#panel-reward").text
    assert driver.find_elements("css selector", "#panel-reward canvas") == []


def test_an_image_can_be_redrawn_and_becomes_the_goal(driver, tmp_path):
    """The agent is painted over in one cell and put into another, and φ is that of JAX."""
    world = GridWorld(parse_maze("....\n.##.\n....\n", name="ring"))
    images = world.observations("image")
    rep = random_representation(EncoderSpec("conv", images.shape[1:], 6))
    browser.open_page(driver, explore(rep, images, out=tmp_path / "page.html", show=False), "distances")
    canvas = element(driver, "#panel-distances .pixels")
    goal = driver.execute_script("return lapwing.state.goal.state")
    other = (goal + 3) % world.n_states
    for swatch, state in ((1, other), (3, goal)):  # the rarest colour is the agent's, the floor's comes last
        element(driver, f"#panel-distances .swatches label:nth-child({swatch})").click()
        row, column = world.cells[state]
        wide, high = canvas.size["width"] / 4, canvas.size["height"] / 3
        click(driver, canvas, (round((column - 1.5) * wide), round((row - 1) * high)))
    element(driver, "#panel-distances form button").click()
    browser.settled(driver)
    found = driver.execute_script("return Array.from(lapwing.state.goal.phi)")
    assert_allclose(found, rep.phi(images[other]), atol=1e-4 * np.abs(rep.phi(images)).max())
    assert driver.execute_script("return lapwing.state.goal.state") == other
