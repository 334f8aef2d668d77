"""A million inputs of every target, or as many as FUZZ_SECONDS allow; `pytest -n 0 -m fuzz -s` prints the table. FUZZ_INPUTS
sets another number. Where FUZZ_FOLDER names a folder, what reached new branches is kept there with the number of inputs, and
the next run continues from both. Each target has processes of its own (`fuzz_run.py`)."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fuzz_targets import TARGETS

HERE = Path(__file__).parent
INPUTS, SECONDS = int(os.environ.get("FUZZ_INPUTS", 1_000_000)), int(os.environ.get("FUZZ_SECONDS", 100_000))
ROUND = 50_000  # inputs of one process: Paddle keeps some bytes of each tensor made from an array, and so does the instrumentation
# the code of each target, whose branches are counted: in a checkout or installed, where the plugins are `paddle_tfm_plugins`
CODE = {
    "recipe": "paddle_tfm/recipe/{yaml_*,limits,merging,expansion,validation,settings,sections/*}.py",
    "recipe_file": "paddle_tfm/recipe/{reading,loading,sections/fast}.py",
    "overrides": "paddle_tfm/recipe/{loading,merging}.py",
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


def fuzz(name, folder, inputs, seconds):
    """(all inputs, all seconds) of a target in `folder`, with those of earlier runs, after at most `inputs` or `seconds`."""
    corpus, tally = folder / "corpus", folder / "tally.json"
    corpus.mkdir(parents=True, exist_ok=True)
    done, spent = json.loads(tally.read_text()) if tally.exists() else (0, 0)
    end = time.monotonic() + seconds
    while done < inputs and (left := int(end - time.monotonic())) > 0:
        kept = len(list(corpus.iterdir()))  # they are run first, and were counted
        some = str(min(ROUND, inputs - done) + kept)
        arguments = [sys.executable, str(HERE / "fuzz_run.py"), name, str(corpus), some, str(left), str(1 + done)]
        fuzzed = subprocess.run(arguments, capture_output=True, text=True, errors="replace")
        ended = re.search(r"Done (\d+) runs in (\d+) second", fuzzed.stderr)
        assert fuzzed.returncode == 0 and ended, fuzzed.stderr[-4_000:]
        done, spent = done + max(0, int(ended[1]) - kept), spent + int(ended[2])
        tally.write_text(json.dumps([done, spent]))
    return done, spent


@pytest.mark.fuzz
@pytest.mark.parametrize("name", TARGETS)
def test_a_million_inputs(name, tmp_path):
    folder = Path(os.environ.get("FUZZ_FOLDER", tmp_path)).absolute() / name
    done, spent = fuzz(name, folder, INPUTS, SECONDS)
    files = braces(CODE[name])
    include = ",".join([f"*/{each}" for each in files] + [f"*/paddle_tfm_{each}" for each in files])
    environment = {**os.environ, "COVERAGE_FILE": str(tmp_path / "coverage")}
    for arguments in (
        ["run", "--branch", f"--include={include}", str(HERE / "fuzz_run.py"), name, str(folder / "corpus")],
        ["json", "-o", str(tmp_path / "coverage.json")],
    ):
        subprocess.run([sys.executable, "-m", "coverage", *arguments], check=True, env=environment, cwd=tmp_path)
    totals = json.loads((tmp_path / "coverage.json").read_text())["totals"]
    print(f"\n{name}: {done:,} inputs in {spent} s; {totals['covered_branches']} of {totals['num_branches']} branches")
