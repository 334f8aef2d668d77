"""The figures of README, trained for real: `pytest -m slow`, a few minutes. Times are for `python -m benchmarks` and the
clock; here it is what was learned that counts."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent.parent


def results(folder, *arguments):
    command = [sys.executable, "-m", "paddle_tfm", "run", *arguments, "--out", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return [json.loads(file.read_text("utf-8")) for file in sorted(folder.rglob("results.json"))]


def test_quickstart_ends_in_the_verdicts_that_the_readme_shows(tmp_path):
    """Whatever the machine, and the last bits of its products."""
    assert len(results(tmp_path / "out", "quickstart")) == 15
    rows = json.loads((tmp_path / "out/comparison.json").read_text("utf-8"))["rows"]
    verdicts = {row["variant"]: (row["difference"] or {"verdict": "baseline"})["verdict"] for row in rows}
    for page in ("README.md", "README.zh-CN.md"):
        text = (ROOT / page).read_text("utf-8").replace("within ±1 point", "equivalent")
        assert verdicts == dict(re.findall(r"^([\w-]+) +[\d.]+% ± [\d.]+ +(\w+)", text, re.MULTILINE))
    assert set(verdicts.values()) == {"baseline", "better", "worse", "equivalent", "undetermined"}


def test_reverse_is_learned(tmp_path):
    (run,) = results(tmp_path / "out", "reverse")
    assert run["test"]["exact_match"] >= 0.99


def test_four_sentences_are_learned_and_translated_back(tmp_path):
    (run,) = results(tmp_path / "out", "four-sentences")
    assert run["test"]["exact_match"] == 1.0


def test_scaling_the_embedding_is_what_happy_llm_lacks(tmp_path):
    runs = {run["variant"]: run["test"]["exact_match"] for run in results(tmp_path / "out", "happy-llm")}
    assert runs["scaled"] > 0.95 and runs["as-written"] < 0.05
