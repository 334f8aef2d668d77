"""Formulas give what kernels give: `check --no-kernels`, `run --no-kernels`; and which kernels a run had."""

import json

import numpy as np
import pytest
from command_line import call

from paddle_tfm import create_registry
from paddle_tfm.errors import UserError
from paddle_tfm.recipe.loading import load
from paddle_tfm.recipe.plan import plan_run

pytestmark = pytest.mark.reliability

NORM = """
import paddle
from paddle_tfm import hookimpl
from paddle_tfm.protocols import Kernel, Norm

class Mine(Norm):
    "y = x / (1 + |x|)"
    def __init__(self, d_model: int):
        super().__init__()
        self.weight = self.create_parameter([d_model])
    def forward(self, x, valid=None, positions=None):
        return x / (1.0 + x.abs())

class Fast(Kernel):
    of = Mine
    device = "cpu"
    def fits(self, call):
        return True
    def run(self, call):
        x = call.args[0]
        return FACTOR * x / (1.0 + x.abs())

class Other(Fast):
    pass

@hookimpl
def register_norms():
    return {"mine": Mine}

@hookimpl
def register_kernels():
    return KERNELS
"""
SMALL = [
    "task={name: reverse, symbols: 6, min_length: 2, max_length: 4, train: 64, valid: 8, test: 8}",
    *("model.d_model=16", "model.d_ff=24", "model.num_heads=2", "train.steps=4", "evaluate.every=4", "seeds=[1]"),
]


FEW = ("task.train=100", "task.valid=10", "task.test=10")


def plugin(folder, factor="1.0", kernels="{'fast': Fast}"):
    file = folder / "mine.py"
    file.write_text(NORM.replace("FACTOR", factor).replace("KERNELS", kernels), "utf-8")
    return file


def test_check_says_that_formulas_give_the_same_and_how_long_they_take():
    said = call("check", "quickstart", *FEW, "--no-kernels", "--no-step", "train.max_tokens=256")
    lines = [line for line in said.out.splitlines() if "by formulas" in line]
    assert said.status == 0
    assert [line.split(":")[0] for line in lines] == [
        f"the same {name}" for name in ("pre-norm", "pointer", "rms", "post-warm-up", "post-norm")
    ]


def test_check_names_the_variant_whose_kernels_give_other_numbers(tmp_path):
    file = plugin(tmp_path, "1.01")
    said = call(
        "check", "reverse", *FEW, "model.norm=layer,mine", "--no-kernels", "train.max_tokens=256", "--plugin", file
    )
    assert said.status == 1
    lines = [line.split(":")[0] for line in said.out.splitlines() if "by formulas" in line]
    assert lines == ["the same layer", "differs mine"]


def test_a_run_without_kernels_ends_where_one_with_them_does_and_says_which_it_had(tmp_path):
    for name, options in (("with", []), ("without", ["--no-kernels"])):
        assert call("run", "base", *SMALL, *options, "--workers=1", f"--out={tmp_path / name}").status == 0
    losses, kernels = [], []
    for name in ("with", "without"):
        run = tmp_path / name / "default/seed-1"
        losses.append([json.loads(line).get("loss") for line in (run / "metrics.jsonl").read_text().splitlines()])
        components = json.loads((run / "identity.json").read_text())["components"]
        kernels.append([each for each in components if each.startswith("kernel ")])
    np.testing.assert_allclose(*([loss for loss in each if loss is not None] for each in losses), rtol=1e-5)
    assert "kernel layer_norm" in kernels[0] and kernels[1] == []


def test_two_kernels_of_one_class_are_an_error_that_names_both(tmp_path):
    registry = create_registry([plugin(tmp_path, kernels="{'fast': Fast, 'other': Other}")])
    with pytest.raises(UserError, match="kernels 'fast' and 'other' both compute Mine on a CPU; remove the plugin of"):
        registry.kernels()
    (run, *_), _ = load("base", []).expand()
    assert "both compute Mine" in str(plan_run(run, registry).problems[0])
