"""The tables of docs/performance.md are those that `paddle-tfm bench --size all` writes."""

import re
from pathlib import Path

import pytest

from paddle_tfm.bench import page
from paddle_tfm.bench.sides import JOBS, KINDS, TRAINING
from paddle_tfm.bench.sizes import SIZES
from paddle_tfm.errors import UserError

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
FIGURES = {
    "median_ms": 1234.4,
    "low_ms": 1000,
    "high_ms": 2000,
    "peak_mib": 1500,
    "median": 1.5,
    "low": 1,
    "high": 2,
    "threads": 2,
    "processes": 1,
    "precision": "float32",
    "variables": {},
    "settings": "",
    "sentences_per_second": 20.25,
}
RATIO = {"median": 2.25, "low": 1.0, "high": 3.0, "undisturbed": 2.5}
COMMON = {
    "machine": {"processor": "A processor", "cores": 2, "load_before": 0.5},
    "versions": {"paddle": "3.3.1", "torch": "2.14"},
    "rounds": 7,
}


def steps(sides=TRAINING):
    common = {**COMMON, "task": {"name": "parallel"}, "sizes": {"max_tokens": 1024}}
    ratio = {side: RATIO for side in sides if side != "ours"}
    return [{**common, "size": size, "sides": dict.fromkeys(sides, FIGURES), "ratio": ratio} for size in SIZES]


def search():
    jobs = {}
    for job, sides in JOBS.items():
        others = [side for side in sides if side != "ours"]
        jobs[job] = {
            "sentences": 1000,
            "sides": dict.fromkeys(sides, FIGURES),
            "ratio": dict.fromkeys(others, RATIO),
            "same": dict.fromkeys(others, 0.993),
        }
    return {**COMMON, "beam": 5, "jobs": jobs}


def rows(text):
    """The cells of each row of all tables."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_a_row_has_time_ratio_memory_and_how_the_side_computes():
    text = page.markdown(steps(["ours", "torch"]))
    headings, ours, torch, *_ = rows(text)
    assert tuple(headings) == page.STEP_HEADINGS
    assert ours == ["tiny", "paddle_tfm", "1,234", "", "", "1,500", "2 threads, float32"]
    assert torch[2:5] == ["1,234", "2.25 × (1.00 – 3.00)", "2.50 ×"]
    assert "A processor, 2 cores, load 0.5 before; paddle 3.3.1, torch 2.14. 7 rounds in turn" in text


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"processes": 2, "threads": 2}, "2 processes, float32"),
        (
            {"threads": 1, "precision": "bfloat16 autocast", "settings": "fused Adam"},
            "1 thread, bfloat16 autocast, fused Adam",
        ),
        ({"variables": {"MKL_DEBUG_CPU_TYPE": "7"}}, "2 threads, float32, MKL_DEBUG_CPU_TYPE=7"),
    ],
)
def test_a_side_says_how_it_computes(figures, words):
    assert page.how({**FIGURES, **figures}) == words


def test_the_page_has_the_rows_that_the_command_writes():
    """Figures are another matter: they are of the day when somebody ran it, with the sides that were installed there."""
    _, begin, rest = PAGE.read_text("utf-8").partition(page.BEGIN)
    block, end, _ = rest.partition(page.END)
    assert begin and end, f"{PAGE.name} has no place for the tables"
    written = rows(block)
    titles = {row[1] for row in written}
    chosen = [side for side in TRAINING if KINDS[side].title in titles]
    assert {"ours", "paddle", "torch", "torch-tuned"} <= set(chosen)
    sizes = {row[0] for row in written}
    measured = [result for result in steps(chosen) if result["size"] in sizes]
    assert "small" in sizes
    expected = rows(page.markdown(measured, search()))

    def names(table):
        return [[re.sub(r"[\d,]+ sentences", "sentences", cell) for cell in row[:2]] for row in table]

    assert names(written) == names(expected)
    assert [len(row) for row in written] == [len(row) for row in expected]


def test_tables_are_written_into_the_place_of_a_page_and_nothing_else_changes(tmp_path):
    file = tmp_path / "page.md"
    page.write(file, "new\n")
    assert file.read_text() == "new\n"
    with pytest.raises(UserError, match=r"page\.md exists, and has no lines '<!-- paddle-tfm bench"):
        page.write(file, "more\n")
    file.write_text(f"before\n\n{page.BEGIN}\nold\n{page.END}\n\nafter\n")
    page.write(file, "new\n")
    page.write(file, "newer\n")
    assert file.read_text() == f"before\n\n{page.BEGIN}\n\nnewer\n\n{page.END}\n\nafter\n"
