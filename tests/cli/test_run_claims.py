"""`paddle-tfm run` of a recipe with claims: judged at the end, wherever the comparison is shown."""

import json
import math
from pathlib import Path

import pytest
from command_line import call, write_recipe

from paddle_tfm.runs.logs import read_rows

pytestmark = pytest.mark.reliability

RECIPE = """
base: tiny.yaml
name: mine
fast: {seeds: [1, 2], train.steps: 1}
variants: {pre: {}, post: {model.placement: post}}
seeds: [1, 2]
claims:
  learns-nothing:
    says: Four steps teach nothing.
    source: of our own
    metric: exact_match
    variant: pre
    at_most: 60
  gradients-are-equal:
    says: At first the last layer's gradients are those of post-norm.
    source: arXiv:2002.04745
    metric: gradient_norm
    at: decoder.layers.-1
    variant: pre
    over: post
    measure: ratio
    at_least: 100
"""


def test_claims_are_judged_after_the_comparison_and_again_by_compare(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_recipe(tmp_path, RECIPE)

    done = call("run", "mine.yaml", "--workers=1")
    assert done.status == 0, done.err
    text = " ".join(done.out.split())
    assert "reproduced learns-nothing (of our own) Four steps teach nothing. exact match of pre: 0.0%" in text
    assert "not reproduced gradients-are-equal (arXiv:2002.04745)" in text
    assert "gradient norm at decoder.layers.-1 of pre against post:" in text and "at least 100 times" in text
    verdicts = {each["name"]: each["verdict"] for each in _read("runs/mine")["claims"]}
    assert verdicts == {"learns-nothing": "reproduced", "gradients-are-equal": "not reproduced"}
    assert call("compare", "runs/mine").out.count("reproduced") == done.out.count("reproduced") == 2

    done = call("run", "mine.yaml", "train.clip_norm=null", "--fast", "--workers=1")
    assert done.status == 0
    assert "Trained with train.clip_norm=null --fast, and not as the recipe says" in " ".join(done.out.split())
    assert {each["verdict"] for each in _read("runs/mine-fast")["claims"]} == {"no verdict"}
    assert {run["steps"] for run in _read("runs/mine-fast")["runs"]} == {1}

    # The gradients at first are those before clipping.
    clipped, unclipped = (read_rows(Path(out) / "post/seed-2/metrics.jsonl") for out in ("runs/mine", "runs/mine-fast"))
    first = clipped[0]
    assert first["step"] == 1 and first["gradient_norm"] > 1.0
    assert first["gradient_norms"] == pytest.approx(unclipped[0]["gradient_norms"], rel=1e-4, abs=1e-6)
    assert math.hypot(*first["gradient_norms"].values()) == pytest.approx(first["gradient_norm"], rel=1e-4)


def _read(folder):
    return json.loads(Path(folder, "comparison.json").read_text("utf-8"))
