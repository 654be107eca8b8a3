"""What the pages say of the tests is true."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_security_page_names_tests_that_exist():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "security.md").read_text())
    assert len(named) > 20
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(), f"{file}::{test}"
