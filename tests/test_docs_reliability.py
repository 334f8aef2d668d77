"""Every promise of docs/reliability.md names a test that is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/reliability.md").read_text("utf-8")
TESTS = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)


def test_each_is_there():
    assert [(file, name) for file, name in TESTS if f"\ndef {name}(" not in (ROOT / file).read_text("utf-8")] == []


def test_every_promise_names_one():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "`tests/" in line]
    promises = PAGE.split("| promise |")[1:]
    assert len(rows) == len(TESTS) >= 7
    for table in promises:
        for line in table.split("\n\n")[0].splitlines()[2:]:
            assert "::test_" in line, line
