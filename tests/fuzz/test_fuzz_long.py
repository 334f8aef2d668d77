"""A million inputs of every target, or as many as FUZZ_SECONDS allow; `pytest -n 0 -m fuzz -s` prints the table. FUZZ_INPUTS
sets another number. Each target has a process of its own (`fuzz_run.py`)."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz_targets import TARGETS

HERE = Path(__file__).parent
INPUTS, SECONDS = os.environ.get("FUZZ_INPUTS", "1000000"), os.environ.get("FUZZ_SECONDS", "100000")
# the code of each target, whose branches are counted
CODE = {
    "recipe": "paddle_tfm/recipe/{yaml_*,limits,merging,expansion,coherence,validation,settings,seeds,space,tuning,ladder,equal,claims}.py",
    "recipe_file": "paddle_tfm/recipe/{reading,loading,fast}.py",
    "overrides": "paddle_tfm/recipe/{loading,value_lists,merging}.py",
    "tokenizers": "plugins/tokenizer/{_segmentation,_words,char,mixed,space,word,sentencepiece}.py",
    "batches": "paddle_tfm/data/batches.py",
    "checkpoint": "paddle_tfm/train/{checkpoint,manifest}.py",
    "search": "{plugins/search/{_bounded,_one_by_one,beam,greedy},paddle_tfm/search/constraints}.py",
}


def braces(pattern):
    """The patterns that {a,b} stands for."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if not match:
        return [pattern]
    parts = match[1].split(",")
    return [each for part in parts for each in braces(pattern[: match.start()] + part + pattern[match.end() :])]


@pytest.mark.fuzz
@pytest.mark.parametrize("name", TARGETS)
def test_a_million_inputs(name, tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    run = [str(HERE / "fuzz_run.py"), name, str(corpus)]
    fuzzed = subprocess.run([sys.executable, *run, INPUTS, SECONDS], capture_output=True, text=True, errors="replace")
    done = re.search(r"Done (\d+) runs in (\d+) second", fuzzed.stderr)
    assert fuzzed.returncode == 0 and done, fuzzed.stderr[-4_000:]
    include = ",".join(f"{HERE.parents[1]}/{each}" for each in braces(CODE[name]))
    environment = {**os.environ, "COVERAGE_FILE": str(tmp_path / "coverage")}
    for arguments in (
        ["run", "--branch", f"--include={include}", *run],
        ["json", "-o", str(tmp_path / "coverage.json")],
    ):
        subprocess.run([sys.executable, "-m", "coverage", *arguments], check=True, env=environment, cwd=tmp_path)
    totals = json.loads((tmp_path / "coverage.json").read_text())["totals"]
    print(
        f"\n{name}: {int(done[1]):,} inputs in {done[2]} s; {totals['covered_branches']} of {totals['num_branches']} branches"
    )
