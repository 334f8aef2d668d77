"""The figures of README, trained for real: `pytest -m slow`, a few minutes. Times are for `paddle-tfm bench` and the
clock; here it is what was learned that counts."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def results(folder, *arguments):
    command = [sys.executable, "-m", "paddle_tfm", "run", *arguments, "--out", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return [json.loads(file.read_text("utf-8")) for file in sorted(folder.rglob("results.json"))]


def test_quickstart_learns_dates(tmp_path):
    runs = results(tmp_path / "out", "quickstart")
    assert len(runs) == 8
    exact = {}
    for run in runs:
        exact.setdefault(run["variant"], []).append(run["test"]["exact_match"])
    assert set(exact) == {"pre-layer", "post-layer", "pre-batch", "post-batch"}
    assert max(min(values) for values in exact.values()) >= 0.99
    assert (tmp_path / "out/comparison.html").is_file() and (tmp_path / "out/comparison.png").is_file()


def test_reverse_is_learned(tmp_path):
    (run,) = results(tmp_path / "out", "reverse")
    assert run["test"]["exact_match"] >= 0.99


def test_four_sentences_are_learned_and_translated_back(tmp_path):
    (run,) = results(tmp_path / "out", "four-sentences")
    assert run["test"]["exact_match"] == 1.0


def test_scaling_the_embedding_is_what_happy_llm_lacks(tmp_path):
    runs = {run["variant"]: run["test"]["exact_match"] for run in results(tmp_path / "out", "happy-llm")}
    assert runs["scaled"] > 0.95 and runs["as-written"] < 0.05
