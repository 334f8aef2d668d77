"""A component beside a reference: what no check can see is seen, and what `plugin new` writes agrees with its twin. That shipped
components agree with theirs: tests/references."""

from pathlib import Path

import numpy as np
import pytest
from catalogue import build, source, wrong
from paddle import nn

from paddle_tfm import create_registry
from paddle_tfm.cli.plugin.new import REFERENCED, write
from paddle_tfm.errors import UserError
from paddle_tfm.testing import FAIL, PASS, Report, with_class
from paddle_tfm.testing.lookup import examine_class, find
from paddle_tfm.testing.reference.compared import Reference, explained

REFERENCES = Path(__file__).parents[1] / "references"
LAYER = """def forward(x, w, eps):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + eps) * w["weight"] + w["bias"]
"""


def held_to(text, kind, name, options, registry):
    return Reference(text, kind, name, options, registry).outcome()


@pytest.mark.parametrize(
    "kind, name, function, options, sentence",
    [
        ("norm", "layer", "layer_std", {}, "lengths 5, 3, 1: "),
        ("feed_forward", "relu", "relu_squared", {}, "lengths 5, 3, 1: "),
        ("attention", "interleaved", "local", {"every": 1}, "lengths 70"),
        ("position", "randomized", "sinusoidal", {"encoding": "sinusoidal", "stride": 3}, "positions 0 … 4, embed"),
        ("placement", "hyper_connections", "pre", {}, "encoder, layer 0: "),
        ("placement", "residual_dual", "post", {}, "encoder, layer 2: "),
        ("placement", "mix_ln", "post", {}, "encoder, layer 1: "),
        ("head", "pointer_coverage", "pointer", {}, "log_probs: "),
    ],
)
def test_another_formula_is_told_apart(kind, name, function, options, sentence):
    """The difference shows where it first is: beyond a window, in an upper layer, in what is copied."""
    outcome = held_to(str(REFERENCES / f"{kind}_numpy.py:{function}"), kind, name, options, create_registry())
    assert outcome.status == FAIL and sentence in outcome.detail, outcome.detail


class Scaled(nn.Layer):
    def __init__(self, dim):
        super().__init__()
        self.gain = self.create_parameter([dim])

    def forward(self, x):
        return x * self.gain


@pytest.mark.parametrize("power, status", [(1, PASS), (2, FAIL)])
def test_an_ordinary_layer_is_held_to_a_reference_by_its_own_names(power, status, tmp_path):
    (tmp_path / "theirs.py").write_text(f"def forward(x, w):\n    return x * w['gain'] ** {power}\n")

    def beside(kind, name, registry):
        return Reference(str(tmp_path / "theirs.py"), kind, name, {}, registry).outcome

    report = examine_class("norm", Scaled, {}, only=frozenset({"shape"}), beside=beside)
    assert report["reference"].status == status


@pytest.mark.parametrize(
    "valid, sentence",
    [("valid", ""), ("valid | True", "lengths 5, 3, 1, in training: ")],
    ids=["right", "of-padding-too"],
)
def test_a_norm_is_compared_in_training_where_its_reference_asks(valid, sentence, tmp_path):
    (tmp_path / "theirs.py").write_text(
        "def batch(x, w, valid, eps, training):\n"
        "    mean, variance = w['running_mean'], w['running_variance']\n"
        f"    tokens = x[{valid}]\n"
        "    if training and len(tokens) > 1:\n"
        "        mean, variance = tokens.mean(0), tokens.var(0)\n"
        "    return (x - mean) / (variance + eps) ** 0.5 * w['weight'] + w['bias']\n"
    )
    outcome = held_to(str(tmp_path / "theirs.py"), "norm", "batch", {}, create_registry())
    assert outcome.status == (FAIL if sentence else PASS) and sentence in outcome.detail, outcome.detail


def test_a_gradient_that_is_cut_off_is_seen(tmp_path):
    cut = source("layer_norm").replace("variance = (centred * centred)", "variance = (centred * centred).detach()")
    registry, cls = create_registry(), build(cut, "layer_norm")
    outcome = held_to(str(REFERENCES / "norm_numpy.py:layer"), *with_class(registry, cls), {}, registry)
    assert outcome.status == FAIL and "along x its gradient says" in outcome.detail, outcome.detail


GAPS = [
    ("twice as large", lambda x: 2.0 * x, "it is 2 times the reference"),
    ("negative", lambda x: -x, "the opposite sign"),
    ("a constant more", lambda x: x + 0.25, "it is the reference and 0.25"),
    ("heads turned around", lambda x: x[:, ::-1], "along axis 1 of [2, 3, 4, 5] it has what the reference has in the "
     "order [2, 1, 0]"),
    ("a position behind", lambda x: np.roll(x, 1, 2) * (np.arange(4) > 0)[:, None], "at i what the reference has at i - 1"),
    ("a position ahead", lambda x: np.roll(x, -1, 2) * (np.arange(4) < 3)[:, None], "at i what the reference has at i + 1"),
    ("another formula", np.tanh, "another formula: no factor"),
    ("not finite", lambda x: x / 0.0, ""),
]  # fmt: skip


@pytest.mark.parametrize("change, sentence", [each[1:] for each in GAPS], ids=[each[0] for each in GAPS])
@np.errstate(divide="ignore")
def test_what_makes_one_of_the_other_is_said(change, sentence):
    expected = np.random.default_rng(0).normal(size=[2, 3, 4, 5])
    seen = explained(change(expected), expected, np.ones(expected.shape, bool))
    assert sentence in seen and bool(seen) == bool(sentence)


def test_the_first_line_says_what_makes_one_of_the_other(tmp_path):
    registry, cls, file = create_registry(), build(source("layer_norm"), "layer_norm"), tmp_path / "third.py"
    file.write_text(f"import numpy as np\n\n\n{LAYER.replace('return ', 'return 1 / 3 * (').rstrip()})\n")
    kind, name = with_class(registry, cls)
    outcome = held_to(str(file), kind, name, {}, registry)
    assert outcome.status == FAIL and "numbers differ" in outcome.detail, outcome.detail
    assert "it is 3 times the reference" in Report(kind, name, [outcome]).most_likely


def test_a_rate_may_be_a_number_or_a_list_of_it(tmp_path):
    for rate in ("1e-3", "[1e-3]"):
        file = tmp_path / f"rate{len(rate)}.py"
        file.write_text(f"def forward(step):\n    return {rate}\n")
        outcome = held_to(str(file), "schedule", "constant", {"learning_rate": 1e-3}, create_registry())
        assert outcome.status == PASS, outcome.detail


@pytest.mark.parametrize("kind", REFERENCED)
def test_what_plugin_new_writes_agrees_with_its_twin(kind, tmp_path):
    new = write("my-part", kind, single_file=True, out=tmp_path / "mine.py")
    assert [file.name for file in new.files] == ["mine.py", "mine_numpy.py"]
    registry = create_registry()
    ((kind, name),) = find(f"{new.files[0]}:MyPart", registry)
    outcome = held_to(str(new.files[1]), kind, name, {}, registry)
    assert outcome.status == PASS, outcome.detail


TORCH = """
import torch


class Twin(torch.nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.inner, self.output = torch.nn.Linear(d_model, d_ff), torch.nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.output(torch.relu(self.inner(x)))
"""


NORM = """
import torch


class Twin(torch.nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(torch.ones(dim)), torch.nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, hidden):
        return torch.nn.functional.layer_norm(hidden, hidden.shape[-1:], self.weight, self.bias, self.eps)
"""


@pytest.mark.peers
@pytest.mark.parametrize(
    "was, becomes, sentence",
    [
        ("", "", ""),
        ("self.weight", "self.gain", "has a parameter gain, ours are bias, weight: use one name"),
        (
            "dim, eps",
            "dim, other, eps",
            "needs the argument 'other', which the kit does not know; it must have a default",
        ),
        ("hidden.shape[-1:], ", "[3], ", "Twin raises RuntimeError: "),
    ],
)
def test_a_torch_module_whose_names_differ(was, becomes, sentence, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "theirs.py").write_text(NORM.replace(was, becomes) if was else NORM, "utf-8")
    text = f"{tmp_path / 'theirs.py'}:Twin"
    if sentence:
        with pytest.raises(UserError, match=sentence):
            Reference(text, "norm", "layer", {}, create_registry())
    else:
        assert held_to(text, "norm", "layer", {"eps": 1e-4}, create_registry()).status == PASS


@pytest.mark.peers
@pytest.mark.parametrize("activation, status", [("relu", PASS), ("tanh", FAIL)])
def test_a_torch_module_is_a_reference(activation, status, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "theirs.py").write_text(TORCH.replace("relu", activation), "utf-8")
    outcome = held_to(f"{tmp_path / 'theirs.py'}:Twin", "feed_forward", "relu", {}, create_registry())
    assert outcome.status == status, outcome.detail


def test_a_function_of_any_name_is_the_forward_of_a_kind_that_has_one(tmp_path):
    text = LAYER.replace("forward", "attend")  # the name of a function of positions
    (tmp_path / "theirs.py").write_text(f"import numpy as np\n\n\n{text}", "utf-8")
    reference = Reference(f"{tmp_path / 'theirs.py'}:attend", "norm", "layer", {}, create_registry())
    assert reference.compared == {"forward"}
    assert reference.outcome().status == PASS


def test_how_many_cases_were_compared_is_said_and_which_functions_were_not(tmp_path):
    text = "def embed(x, w):\n    return x + w['weight'][: x.shape[1]]\n\n\ndef bias():\n    raise RuntimeError\n"
    (tmp_path / "theirs.py").write_text(text, "utf-8")
    outcome = held_to(str(tmp_path / "theirs.py"), "position", "learned", {}, create_registry())
    assert outcome.status == PASS, outcome.detail
    assert outcome.detail.endswith("in 8 cases; position learned uses no `bias`")


@pytest.mark.parametrize(
    "text, name, sentence",
    [
        ("def forward(x, wight):\n    return x\n", "", "asks for `wight`, which the kit does not have. It has "),
        (
            "def forward(site_, x):\n    return x\n",
            "",
            "`site_`, which the kit does not have; did you mean 'site'\\? It has ",
        ),
        ("def other(x):\n    return x\n", "", "holds no function forward or layer; or say which: "),
        ("def other(x):\n    return x\n", ":othr", "there is no such function or class; did you mean 'other'?"),
        ("def forward(x, w):\n    return x * w['wight']\n", "", r"no parameter w\['wight'\]; did you mean 'weight'"),
        ("def forward(x):\n    return x @ x\n", "", "forward raises ValueError: matmul: .*theirs.py line 2"),
        ("class Mine:\n    pass\n", ":Mine", "is a class; it must be a function in NumPy, or a torch.nn.Module"),
        ("import numpy\nother = numpy.tanh\n", ":other", "does not say by name what it asks for: write `def forward"),
        ("import nothing_here\n", "", "cannot be imported: ModuleNotFoundError"),
    ],
)
def test_a_reference_that_cannot_be_used_is_one_sentence_before_any_check(text, name, sentence, tmp_path):
    (tmp_path / "theirs.py").write_text(text, "utf-8")
    with pytest.raises(UserError, match=sentence) as raised:
        Reference(f"{tmp_path / 'theirs.py'}{name}", "norm", "layer", {}, create_registry())
    assert "\n" not in str(raised.value)


def test_a_reference_that_nothing_uses_is_no_agreement(tmp_path):
    (tmp_path / "theirs.py").write_text("def bias(positions):\n    return positions\n", "utf-8")
    with pytest.raises(UserError, match=r"theirs\.py holds bias, and position sinusoidal uses none of these"):
        Reference(str(tmp_path / "theirs.py"), "position", "sinusoidal", {}, create_registry())


@pytest.mark.parametrize("kind, name", [("listener", "listener"), ("optimizer", "adam"), ("metric", "bleu")])
def test_a_kind_without_formula_is_one_sentence(kind, name):
    sentence = f"--reference compares norm, .* schedule; {kind} '{name}' is none of them"
    with pytest.raises(UserError, match=sentence):
        Reference("nowhere.py", kind, name, {}, create_registry())


# --------------------------------- at which widths, depths and options: where formulas differ that are one elsewhere


ROTARY = """import numpy as np


def attend(q, k, v, allowed, fraction=1.0):
    at, width = np.arange(len(q)), int(q.shape[1] * fraction)
    angle = at[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)

    def turn(x):
        turned = (x[:, 0:width:2] + 1j * x[:, 1:width:2]) * np.exp(1j * angle)
        return np.concatenate([np.stack([turned.real, turned.imag], -1).reshape(len(x), width), x[:, width:]], 1)

    scores = np.where(allowed, turn(q) @ turn(k).T / q.shape[1] ** 0.5, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True) @ v
"""
EXPONENTS = [  # of 4 channels, each is i / 2
    'paddle.arange(0, head_dim, 2).astype("float64") / 4',
    'paddle.arange(0, head_dim, 2).astype("float64") / (2 * head_dim - 4)',
    'paddle.arange(0, head_dim, 2).astype("float64") ** 2 / (2 * head_dim)',
]
USUAL = 'paddle.arange(0, head_dim, 2).astype("float64") / head_dim'
SCALED = """import numpy as np


def forward(x, sublayers, norm, layers):
    for f in sublayers:
        x = x + f(norm(x)) / layers
    return x
"""


def outcome_of(cls, tmp_path, text):
    registry, file = create_registry(), tmp_path / "formula.py"
    file.write_text(text, encoding="utf-8")
    return held_to(str(file), *with_class(registry, cls), {}, registry)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_exponents_that_four_channels_do_not_tell_apart_are_seen(exponent, tmp_path):
    assert outcome_of(build(source("rotary"), "rotary"), tmp_path, ROTARY).status == PASS
    cls = build(wrong("rotary", "an exponent", USUAL, exponent, "reference").source(), "rotary")
    outcome = outcome_of(cls, tmp_path, ROTARY)
    assert outcome.status == FAIL and "positions 0 … 4, attention: at" in outcome.detail, outcome.detail


def test_an_option_that_the_reference_asks_for_is_tried_at_other_values(tmp_path):
    """While all channels turn, both are the same."""
    was, becomes = "frequencies(self.width, base)", "frequencies(head_dim, base)[: self.width // 2]"
    right, broken = (
        outcome_of(build(text, "position/rotary"), tmp_path, ROTARY)
        for text in (source("position/rotary"), source("position/rotary").replace(was, becomes))
    )
    assert right.status == PASS
    assert broken.status == FAIL and broken.detail.startswith("with fraction 0.5, encoder.self"), broken.detail
    not_asked = ROTARY.replace(", fraction=1.0", "").replace(" * fraction", "")
    edited = build(source("position/rotary").replace(was, becomes), "position/rotary")
    assert outcome_of(edited, tmp_path, not_asked).status == PASS


@pytest.mark.parametrize(("scale", "status"), [("self.depth", PASS), ("(2 * self.depth) ** 0.5", FAIL)])
def test_a_depth_at_which_powers_of_it_differ_is_tried(scale, status, tmp_path):
    """Where there are two layers, N and sqrt(2 N) are one number."""
    text = source("pre").replace(
        "    final_norm = True\n",
        "    final_norm = True\n\n    def __init__(self, *, sites, **parent):\n"
        "        super().__init__(sites=sites, **parent)\n        self.depth = sites[0].depth\n",
    )
    text = text.replace("self.drops[i](sublayer(normed))", f"self.drops[i](sublayer(normed)) / {scale}")
    outcome = outcome_of(build(text, "pre"), tmp_path, SCALED)
    assert outcome.status == status, outcome.detail


ALIBI = """import numpy as np


def bias(q_positions, k_positions, num_heads):
    slopes = 2.0 ** (-8.0 * np.arange(1, num_heads + 1) / num_heads)
    return -slopes[:, None, None] * np.abs(q_positions[:, None] - k_positions)
"""
RISING = """
def forward(step, warmup):
    return 1e-3 * min(step / warmup, (warmup / step) ** 0.5)
"""


def test_positions_that_lie_far_apart_are_tried_where_the_reference_asks_for_them(tmp_path):
    was = "(q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs()"
    edit = wrong("alibi", "a distance that ends at 100", was, f"{was}.clip(max=100)", "reference")
    assert outcome_of(build(source("alibi"), "alibi"), tmp_path, ALIBI).status == PASS
    outcome = outcome_of(build(edit.source(), "alibi"), tmp_path, ALIBI)
    assert outcome.status == FAIL and "positions 0 … 1500, bias" in outcome.detail, outcome.detail


def test_a_long_run_is_tried(tmp_path):
    was, becomes = "(self.warmup / step)", "(self.warmup / min(step, 1000))"
    edit = wrong("schedule", "a rate that stays from step 1,000 on", was, becomes, "reference")
    assert outcome_of(build(source("schedule"), "schedule"), tmp_path, RISING).status == PASS
    outcome = outcome_of(build(edit.source(), "schedule"), tmp_path, RISING)
    assert outcome.status == FAIL and "of 20000" in outcome.detail, outcome.detail
