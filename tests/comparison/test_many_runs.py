"""A thousand finished runs are listed, compared and reported in seconds."""

import json
import resource
import subprocess
import sys

import pytest
from many_runs import copies
from recipe_text import TINY_MODEL

RUN = [
    *(sys.executable, "-m", "paddle_tfm", "run", "base", *TINY_MODEL, "model.max_length=10", "train.max_tokens=128"),
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 5, train: 120, valid: 20, test: 20}",
    *("train.steps=40", "evaluate.every=10", "evaluate.examples=5", "evaluate.metrics=[exact_match]"),
]  # fmt: skip


@pytest.mark.slow
def test_a_thousand_runs_are_listed_and_compared_in_seconds(tmp_path):
    """By the processor's time, which other programs change little."""
    subprocess.run([*RUN, f"--out={tmp_path / 'one'}"], check=True, capture_output=True)
    copies(tmp_path / "one/default/seed-1", tmp_path / "many", variants=10, seeds=100)
    many = str(tmp_path / "many")
    for command, seconds in (
        (["ls", "runs", many], 10),
        (["compare", many, "--json"], 20),
        (["report", many], 20),
    ):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        out = subprocess.run([*RUN[:3], *command], check=True, capture_output=True, text=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{command[0]}: {took:.1f} s of processor time")
        assert took < seconds
        if command[0] == "ls":
            assert sum("seed-" in line for line in out.splitlines()) >= 1000
        if command[0] == "compare":
            assert sum(len(row["seeds"]) for row in json.loads(out)["rows"]) == 1000
