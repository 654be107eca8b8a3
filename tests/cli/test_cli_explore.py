"""`lapwing explore`: a page beside the run, and what it refuses."""

import json
import webbrowser

from tests.support.command_line import called, refused


def test_a_page_is_written_and_nothing_is_opened(four_room_run, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open_new_tab", lambda address: opened.append(address) or True)
    out = tmp_path / "pages" / "four.html"
    code, printed, err = called("explore", four_room_run, "--no-open", "--out", out, "--json")
    assert code == 0, err
    assert json.loads(printed) == {"page": str(out), "bytes": out.stat().st_size}
    assert not opened
    assert called("explore", four_room_run, "--out", out)[0] == 0
    assert opened == [out.as_uri()]


def test_without_a_browser_it_says_where_the_page_is(four_room_run, tmp_path, monkeypatch):
    def fails(address):
        raise webbrowser.Error("no browser")

    monkeypatch.setattr(webbrowser, "open_new_tab", fails)
    code, _, err = called("explore", four_room_run, "--out", tmp_path / "page.html")
    assert code == 0
    assert str(tmp_path / "page.html") in err
    assert "browser" in err


def test_what_is_no_run_is_refused_by_its_path(elsewhere, data_file):
    assert "nowhere" in refused("explore", "nowhere")
    assert str(data_file) in refused("explore", data_file)
