"""Tables that benchmarks write into the docs."""

import pytest

from benchmarks.run_table import RunTable, markdown, put_into, share_interval


def test_lines_are_added_after_those_that_are_there(tmp_path):
    table = RunTable(tmp_path / "runs.csv", ("task", "score"))
    assert table.read() == []
    for score in (0.5, 0.25):
        table.append({"task": "a, b", "score": score})
    assert table.read() == [{"task": "a, b", "score": "0.5"}, {"task": "a, b", "score": "0.25"}]


def test_a_table_replaces_the_one_between_its_comments(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n\n<!-- x -->\nold\n<!-- end of x -->\n\nafter\n")
    for cell in ("1", "2"):
        put_into(page, "x", markdown(["head"], [[cell]]))
    assert page.read_text() == (
        "before\n\n<!-- x -->\n\n| head |\n| --- |\n| 2 |\n\n<!-- end of x -->\n\nafter\n"
    )
    with pytest.raises(ValueError, match="end of y"):
        put_into(page, "y", "")


@pytest.mark.parametrize(
    ("values", "shown"), [([0.5, 0.6, 0.7], ".60 ± .25"), ([1.0, 1.0], "1.00 ± .00"), ([0.0], ".00")]
)
def test_shares_with_their_interval(values, shown):
    """Half a t-interval of three: 4.303 times .1 over √3."""
    assert share_interval(values) == shown
