"""The embedding in a browser, by WebGL and without."""

import numpy as np
from numpy.testing import assert_allclose

from lapwing.envs.gridworld import GridWorld
from lapwing.mazes import read_maze
from tests.support import browser
from tests.support.browser import click, drag

# Read in the task that drew it: what WebGL drew is gone from its canvas after that.
POINTS = """
    lapwing.render();
    const by = document.querySelector(".stack").dataset.by;
    return [by, document.querySelector(by === "webgl" ? ".points" : ".cube").toDataURL()];
"""


def turn_and_point(driver, page, by):
    """The embedding by one way of drawing: it turns by mouse and keys, and the map and it are linked."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser.open_page(driver, page, "embedding")
    cube, other = driver.find_elements("css selector", "#panel-embedding canvas.map")
    drawn = [driver.execute_script(POINTS)]
    drag(driver, cube, (-40, 0), (60, 30))
    drawn.append(driver.execute_script(POINTS))
    cube.send_keys(Keys.ARROW_LEFT)
    browser.settled(driver)
    drawn.append(driver.execute_script(POINTS))
    assert {way for way, _ in drawn} == {by}
    assert len({picture for _, picture in drawn}) == 3
    state = GridWorld(read_maze("FourRoom")).check_cell((3, 3))
    click(driver, other, browser.cell_offset(driver, other, 3, 3))
    assert driver.execute_script("return lapwing.state.hover") == state
    place = driver.execute_script("return lapwing.views.embedding.pixelOf(arguments[0])", state)
    ActionChains(driver).move_to_element(other).perform()
    ActionChains(driver).move_to_element_with_offset(cube, *browser.from_middle(cube, place)).perform()
    browser.settled(driver)
    pointed = driver.execute_script("return lapwing.state.hover")
    pixels = "return arguments[0].map(lapwing.views.embedding.pixelOf)"
    where = driver.execute_script(pixels, [state, pointed])
    assert_allclose(where[0][:2], where[1][:2], atol=2)
    assert browser.complaints(driver) == []


def test_the_embedding_turns_and_points_at_the_map(driver, page):
    turn_and_point(driver, page, "webgl")


def test_the_embedding_turns_without_webgl_too(page):
    plain = browser.start(browser.NO_WEBGL)
    try:
        browser.resize(plain, browser.DESK)
        turn_and_point(plain, page, "canvas")
    finally:
        plain.quit()


def test_both_ways_of_drawing_have_the_same_colours_in_the_same_places(driver, page):
    browser.open_page(driver, page, "embedding")
    places, drawn = driver.execute_script(
        """
        const { cube, pixelOf } = lapwing.views.embedding, found = {};
        const places = Array.from({ length: lapwing.model.count }, (_, i) => pixelOf(i).slice(0, 2));
        for (const painter of [cube.painter, cube.plain]) {
          cube.painter = painter;
          lapwing.render();
          const copy = document.createElement("canvas"), by = cube.element.dataset.by;
          [copy.width, copy.height] = [cube.below.width, cube.below.height];
          const context = copy.getContext("2d");
          context.drawImage(by === "webgl" ? cube.below : cube.canvas, 0, 0);
          found[by] = places.map(([x, y]) => {
            const pixel = context.getImageData(Math.round(x), Math.round(y), 1, 1).data;
            return pixel[0] - pixel[2];
          });
        }
        return [places, found];
        """
    )
    apart = np.linalg.norm(np.array(places)[:, None] - np.array(places), axis=-1)
    alone = np.partition(apart, 1, axis=1)[:, 1] > 8  # none is drawn over another
    assert alone.sum() > 20
    webgl, canvas = (np.array(drawn[by])[alone] for by in ("webgl", "canvas"))
    assert np.ptp(webgl) > 100
    assert np.corrcoef(webgl, canvas)[0, 1] > 0.95
