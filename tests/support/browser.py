"""A headless Chromium with a phone's or a desk's window, or a sentence on why there is none."""

import shutil
from pathlib import Path
from typing import Any

import pytest

BROWSERS, DRIVERS = ("chromium", "chromium-browser", "google-chrome"), ("chromedriver",)
DESK, PHONE = (1280, 900), (390, 844)
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
WEBGL, NO_WEBGL = "--enable-unsafe-swiftshader", "--disable-3d-apis"
"""By software, on any machine; and as in a browser that has none."""
OF_THE_DRIVER = "GL Driver Message"
"""WebGL by software says in the console that reading a picture back takes time."""


def start(graphics: str = WEBGL) -> Any:
    """The browser; the test is skipped where Chromium or its driver is missing."""
    browser, driver = (next(filter(None, map(shutil.which, names)), None) for names in (BROWSERS, DRIVERS))
    if browser is None or driver is None:
        pytest.skip("pages are tested in Chromium: install chromium and chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="pages are tested with selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for option in (*OPTIONS, graphics):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.chrome.service.Service(driver)
    return webdriver.Chrome(options=options, service=service)


def resize(driver: Any, size: tuple[int, int]) -> None:
    shape = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)


def open_page(driver: Any, path: Path, view: str = "eigenfunctions") -> None:
    """Load a page afresh at one of its views."""
    driver.get("about:blank")
    driver.get_log("browser")
    driver.get(f"{path.as_uri()}#{view}")


def complaints(driver: Any) -> list[str]:
    """What the console says, errors of scripts and requests that were refused among it."""
    said = [entry["message"] for entry in driver.get_log("browser")]
    return [message for message in said if OF_THE_DRIVER not in message]


def settled(driver: Any) -> None:
    """Wait for the next drawing."""
    driver.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
    )


def facts(driver: Any, within: str) -> dict[str, str]:
    """The names and values that are listed in an element."""
    script = (
        "return Object.fromEntries(Array.from(document.querySelectorAll(arguments[0] + ' .facts div'), "
        "(row) => [row.children[0].textContent, row.children[1].textContent]))"
    )
    return driver.execute_script(script, within)


def cell_offset(driver: Any, canvas: Any, row: int, column: int) -> tuple[int, int]:
    """Where the middle of a cell of a maze is, from the middle of the canvas that it is drawn on."""
    script = """
        const [canvas, x, y] = arguments, box = canvas.getBoundingClientRect();
        const lines = lapwing.model.scene.lines, scale = Math.min(
          (box.width - 8) / (lines[0].length - 1), (box.height - 8) / (lines.length - 1));
        return [(x - lines[0].length / 2) * scale, (y - lines.length / 2) * scale];
    """
    right, down = driver.execute_script(script, canvas, column + 0.5, row + 0.5)
    return round(right), round(down)


def from_middle(canvas: Any, pixel: list[float]) -> tuple[int, int]:
    """Where a pixel is from the middle of a canvas."""
    return round(pixel[0] - canvas.size["width"] / 2), round(pixel[1] - canvas.size["height"] / 2)


def element(driver: Any, selector: str) -> Any:
    """The first that a selector of CSS finds."""
    return driver.find_element("css selector", selector)


def click(driver: Any, canvas: Any, offset: tuple[int, int]) -> None:
    """Click so far from the middle of a canvas."""
    from selenium.webdriver import ActionChains

    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    ActionChains(driver).move_to_element_with_offset(canvas, *offset).click().perform()
    settled(driver)


def drag(driver: Any, canvas: Any, begin: tuple[int, int], end: tuple[int, int]) -> None:
    """Drag from one place to another, both from the middle of a canvas."""
    from selenium.webdriver import ActionChains

    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    chain = ActionChains(driver, duration=20).move_to_element_with_offset(canvas, *begin).click_and_hold()
    chain.move_by_offset(end[0] - begin[0], end[1] - begin[1]).release().perform()
    settled(driver)
