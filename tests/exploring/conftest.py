"""A browser for all tests of pages, and the page of a small run."""

import pytest

from lapwing.exploring.explore import explore
from tests.support import browser


@pytest.fixture(scope="session")
def driver():
    started = browser.start()
    browser.resize(started, browser.DESK)
    yield started
    started.quit()


@pytest.fixture(scope="session")
def page(four_room_run, tmp_path_factory):
    return explore(four_room_run, out=tmp_path_factory.mktemp("page") / "four_room.html", show=False)
