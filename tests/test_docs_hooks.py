"""What the site is made of beyond Markdown: notebooks in the repository, and how they become pages."""

import base64
import importlib.util
from pathlib import Path

import nbformat
import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def hooks():
    pytest.importorskip("mkdocs", reason="the site's hooks need mkdocs")
    spec = importlib.util.spec_from_file_location("docs_hooks", DOCS / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_notebooks_are_kept_without_outputs():
    """They are run as the site is built."""
    notebooks = sorted((DOCS / "notebooks").glob("*.ipynb"))
    assert len(notebooks) == 3
    for path in notebooks:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        assert not [cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")], (
            path
        )


def test_a_notebook_becomes_a_page_with_its_outputs(hooks):
    made = nbformat.v4
    cell = made.new_code_cell("1 + 1")
    cell.outputs = [
        made.new_output("stream", text="printed\n"),
        made.new_output("execute_result", data={"text/plain": "2"}),
        made.new_output(
            "display_data", data={"image/png": base64.b64encode(b"dots").decode(), "text/plain": "x"}
        ),
        made.new_output("display_data", data={"text/html": "<table></table>", "text/plain": "y"}),
    ]
    notebook = made.new_notebook(cells=[made.new_markdown_cell("# Title"), cell])
    pages = dict(hooks.pages_of(notebook, "example"))
    assert pages["example_1_2.png"] == b"dots"
    text = pages["example.md"].decode()
    for part in ("# Title", "1 + 1", "printed", "2", "example_1_2.png", "<table></table>", "example.ipynb"):
        assert part in text


def test_a_page_that_was_interrupted_is_made_again(hooks, monkeypatch, tmp_path):
    path = tmp_path / "example.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Title")]), path)
    monkeypatch.setattr(hooks, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(hooks, "executed", lambda notebook: nbformat.read(notebook, as_version=4))
    with monkeypatch.context() as broken:
        broken.setattr(hooks, "pages_of", lambda *_: [("1.png", b"dots"), ("example.md", None)])
        with pytest.raises(TypeError):
            hooks.rendered(path)
    assert list((tmp_path / "cache").iterdir()) == []
    assert (hooks.rendered(path) / "example.md").read_text().startswith("# Title")
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_a_notebook_is_run_without_a_warning(hooks, tmp_path, capfd):
    path = tmp_path / "example.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print(6 * 7)")]), path)
    cell = hooks.executed(path).cells[0]
    assert cell.outputs[0].text == "42\n"
    assert "WARNING" not in capfd.readouterr().err


def test_the_explorers_of_the_site_are_runs_that_can_be_learned(hooks):
    from lapwing.data.source import read_source
    from lapwing.settings.learn import LearnSettings

    for target, settings in hooks.EXPLORERS.values():
        read_source(target)
        LearnSettings.from_keywords(settings)
