"""A component beside a reference: shipped ones agree with the papers' equations of tests/references, what no check can see is
seen, and what `plugin new` writes agrees with its twin."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "mutants"))
from mutants_catalogue import Mutant, build

from paddle_tfm import create_registry
from paddle_tfm.errors import UserError
from paddle_tfm.plugin_template import REFERENCED, write
from paddle_tfm.testing import FAIL, PASS, with_class
from paddle_tfm.testing.reference import held_to
from paddle_tfm.testing.target import find

REFERENCES = Path(__file__).parents[1] / "references"


@pytest.mark.parametrize(
    "kind, name, file, options",
    [
        ("norm", "layer", "test_norm_papers.py:REFERENCES", {}),
        ("norm", "group", "test_norm_papers.py:group", {"groups": 4}),
        ("feed_forward", "swiglu", "test_feed_forward_papers.py:REFERENCES", {}),
        ("attention", "multihead", "paper_equations.py:multi_head_attention", {}),
        ("attention", "local", "test_attention_papers.py:REFERENCES", {"window": 3}),
        ("attention", "qk_norm", "test_attention_papers.py:REFERENCES", {}),
        ("position", "rotary", "test_position_papers.py:rotary", {}),
        ("position", "learned", "test_position_papers.py:learned", {}),
    ],
    ids=str,
)
def test_a_shipped_component_agrees_with_the_papers_equations(kind, name, file, options):
    outcome = held_to(str(REFERENCES / file), kind, name, options, create_registry())
    assert outcome.status == PASS and "gradients agree" in outcome.detail, outcome.detail


UNSEEN = [  # what breaks no invariant
    ("attention/local", "a window of one more", "(q - k).abs() <= self.window", "(q - k).abs() <= self.window + 1",
     "test_attention_papers.py:REFERENCES"),
    ("norm/layer", "epsilon beside the deviation", None, None, "test_norm_papers.py:layer_std"),
    ("feed_forward/relu", "ReLU squared", None, None, "test_feed_forward_papers.py:feed_forward_relu_squared"),
]  # fmt: skip


@pytest.mark.parametrize("twin, name, was, becomes, file", UNSEEN, ids=[name for _, name, *_ in UNSEEN])
def test_what_no_check_can_see_a_reference_does(twin, name, was, becomes, file):
    registry, (kind, component) = create_registry(), twin.split("/")
    if was is not None:
        cls = build(Mutant(twin, name, was, becomes, "reference").source(), twin)
        kind, component = with_class(registry, cls, component + "_mutant")
        table = REFERENCES / file
        outcome = held_to(f"{table.with_name('test_attention_papers.py')}:sliding_window_attention", kind, component,
                          {"window": 2}, registry)  # fmt: skip
    else:
        outcome = held_to(str(REFERENCES / file), kind, component, {}, registry)
    assert outcome.status == FAIL and "the reference" in outcome.detail, outcome.detail


def test_a_gradient_that_is_cut_off_is_seen(tmp_path):
    source = (Path(__file__).parent / "mutants/twins/layer_norm.py").read_text("utf-8")
    cls = build(
        source.replace("variance = (centred * centred)", "variance = (centred * centred).detach()"), "layer_norm"
    )
    registry = create_registry()
    outcome = held_to(str(REFERENCES / "test_norm_papers.py:layer"), *with_class(registry, cls), {}, registry)
    assert outcome.status == FAIL and "along x its gradient says" in outcome.detail, outcome.detail


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


@pytest.mark.peers
@pytest.mark.parametrize("activation, status", [("relu", PASS), ("tanh", FAIL)])
def test_a_torch_module_is_a_reference(activation, status, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "theirs.py").write_text(TORCH.replace("relu", activation), "utf-8")
    outcome = held_to(f"{tmp_path / 'theirs.py'}:Twin", "feed_forward", "relu", {}, create_registry())
    assert outcome.status == status, outcome.detail


@pytest.mark.parametrize(
    "text, name, sentence",
    [
        ("def forward(x, wight):\n    return x\n", "", "asks for `wight`, which the kit does not have; it has "),
        ("def other(x):\n    return x\n", "", "holds none of the functions forward, "),
        ("def other(x):\n    return x\n", ":mine", "there is no such function"),
    ],
)
def test_a_reference_that_cannot_be_used_is_one_sentence(text, name, sentence, tmp_path):
    (tmp_path / "theirs.py").write_text(text, "utf-8")
    with pytest.raises(UserError, match=sentence):
        held_to(f"{tmp_path / 'theirs.py'}{name}", "norm", "layer", {}, create_registry())
