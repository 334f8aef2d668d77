"""Every component of the zoo beside its paper's formula, as `plugin check … --reference KIND_numpy.py` compares them: values and
gradients in float64, at every site, at the defaults, at other values of the options that a formula asks for, and at those
below. What has no forward pass is held to its paper in a table of `test_optimizer_papers.py`."""

from pathlib import Path

import pytest
import test_optimizer_papers

from paddle_tfm import create_registry
from paddle_tfm.testing import PASS
from paddle_tfm.testing.reference.cases import CASES
from paddle_tfm.testing.reference.compared import Reference

HERE = Path(__file__).parent
REQUIRED = {
    ("position", "chain"): {"parts": ["sinusoidal", "learned"]},
    ("position", "randomized"): {"encoding": "sinusoidal"},
    ("feed_forward", "canon"): {"inner": "relu"},
}
TABLES = {"optimizer": test_optimizer_papers.OPTIMIZERS, "initializer": test_optimizer_papers.INITIALIZERS}


def ours(kind):
    """Names of those that come with the project and are right."""
    entries = [entry for entry in create_registry() if entry.kind == kind and entry.provider.source == "paddle-tfm"]
    return [entry.name for entry in entries if not entry.wrong_on_purpose]


def outcome_of(kind, name, options):
    return Reference(str(HERE / f"{kind}_numpy.py"), kind, name, options, create_registry()).outcome()


@pytest.mark.parametrize("kind, name", [(kind, name) for kind in CASES for name in ours(kind)])
def test_every_component_agrees_with_its_reference(kind, name):
    """By the name of its file alone: it holds a function of the component's name, and none of another use."""
    outcome = outcome_of(kind, name, REQUIRED.get((kind, name), {}))
    assert outcome.status == PASS and "gradients agree" in outcome.detail, outcome.detail


@pytest.mark.parametrize(
    "kind, name, options",
    [
        ("norm", "layer", {"bias": False}),
        ("attention", "multihead", {"head_dim": 6}),
        ("attention", "single_head", {"head_size": 5}),
        ("feed_forward", "swish", {"beta": 1.702}),
        ("feed_forward", "canon", {"inner": "relu", "kernel": 2}),
        ("attention", "canon", {"kernel": 7, "head_dim": 6}),
        ("placement", "steps", {"before": "nd", "after": "nda"}),
        ("placement", "steps", {"before": "n", "after": "adn"}),
        ("placement", "attention_residuals", {"block": 2}),
        ("position", "sinusoidal", {"halves": True}),
        ("attention", "local", {"window": 3}),
        ("attention", "grouped_query", {"kv_heads": 2}),
        ("attention", "sinks", {"learned": False}),
        ("attention", "gated", {"per_head": True}),
        ("attention", "synthesizer", {"mode": "random"}),
        ("attention", "synthesizer", {"mode": "random", "rank": 5}),
        ("attention", "recurrent", {"hidden": 8}),
        ("attention", "convolution", {"kernel": 5, "dynamic": True}),
        ("attention", "mla", {"head_dim": 8, "query_latent": 5}),  # matrices are multiplied in the other order
        ("attention", "forgetting", {"head_dim": 6, "bias": True}),
        ("attention", "gated_deltanet", {"expand": 3, "kernel": 2}),
        ("attention", "kimi_delta", {"expand": 2, "head_dim": 5}),
        ("position", "randomized", {"encoding": "sinusoidal", "stride": 3}),
        ("position", "rotary", {"fraction": 0.5}),
        ("position", "pope", {"spread": 6.0}),
        ("position", "cope", {"positions": 3}),  # so that most counts are cut off
        ("position", "shaw", {"with_values": False}),
        ("position", "t5", {"buckets": 8, "max_distance": 5}),
        ("head", "pointer_network", {"output": "position"}),
        ("head", "tied", {"bias": True, "cap": 0.5}),
        ("head", "fix", {"tied": True}),
    ],
    ids=str,
)
def test_a_component_agrees_at_other_options(kind, name, options):
    outcome = outcome_of(kind, name, options)
    assert outcome.status == PASS, outcome.detail


@pytest.mark.parametrize("kind", TABLES)
def test_what_has_no_forward_pass_is_in_a_table(kind):
    assert set(ours(kind)) == set(TABLES[kind])
