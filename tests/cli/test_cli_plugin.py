"""`paddle-tfm plugin check`: what it prints and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import call

from paddle_tfm.registry import AS_KINDS
from paddle_tfm.testing.lookup import everything

TWINS = Path(__file__).parents[1] / "conformance" / "catalogue" / "right"


def twin(name: str, *changes: tuple[str, str]) -> Path:
    text = (TWINS / f"{name}.py").read_text("utf-8")
    for was, becomes in changes:
        assert was in text
        text = text.replace(was, becomes)
    file = Path(f"{name}.py")
    file.write_text(text, "utf-8")
    return file


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_component_that_is_right_ends_with_0():
    done = call("plugin", "check", "norm:rms", "--only", "invariances", "--only", "causal")
    assert done.status == 0
    assert "pass" in done.out and "invariant to scale" in done.out and "norm rms: 2 pass" in done.out


def test_a_component_that_is_wrong_ends_with_1_and_says_where_to_look(monkeypatch):
    file = twin("alibi", ("return -distance", "return distance"))
    done = call("plugin", "check", f"{file}:Twin", "--only", "nearness")
    assert done.status == 1
    for text in ("fail", "2,000 positions away", "consequence", "the sign of the slope", "1 check failed"):
        assert text in done.out
    assert done.out.startswith("position Twin: most likely: the sign of the slope")
    done = call("plugin", "check", f"{file}:Twin", "--only", "nearness", "--only", "pure", "--json")
    assert json.loads(done.out)[0]["most_likely"].startswith("the sign of the slope")
    monkeypatch.setenv("LANGUAGE", "zh")
    chinese = call("plugin", "check", f"{file}:Twin", "--only", "nearness", "--only", "pure").out
    assert chinese.startswith("position Twin：最可能的原因：斜率的正负号") and "最远的词得到全部注意力" in chinese
    in_chinese = call("plugin", "check", f"{file}:Twin", "--only", "nearness", "--only", "pure", "--json").out
    assert in_chinese == done.out


ORDINARY = """
from paddle import nn
from paddle_tfm import hookimpl

class Mine(nn.Layer):
    def __init__(self, d_model):
        super().__init__()

    def forward(self, x):
        return x - x.mean(-1, keepdim=True)

@hookimpl
def register_norms():
    return {"mine": Mine}
"""


@pytest.mark.parametrize("command", ["plugin check mine.py", "check base model.norm=mine --plugin mine.py --no-step"])
def test_an_ordinary_layer_that_a_hook_returns_is_named_with_what_checks_it(command):
    Path("mine.py").write_text(ORDINARY, "utf-8")
    done = call(*command.split())
    assert done.status == 2 and "'mine' is no norm: Mine must subclass paddle_tfm.protocols.Norm; `" in done.err
    advice = done.err.split("`")[1].split()
    assert advice[0] == "paddle-tfm" and call(*advice[1:], "--only", "invariances").status == 0


def test_a_class_that_a_hook_returns_is_told_its_protocol_by_its_own_name_too():
    Path("mine.py").write_text(ORDINARY, "utf-8")
    done = call("plugin", "check", "mine.py:Mine")
    assert done.status == 2 and "Mine must subclass paddle_tfm.protocols.Norm; `" in done.err


MINE = ORDINARY.replace("nn.Layer", "Norm").replace("from paddle import nn", "from paddle_tfm.protocols import Norm")


@pytest.mark.parametrize(
    "was, becomes, status, sentence",
    [
        ('"mine"', '"layer"', 0, "the name 'layer' is taken: plugin 'norm' registers a norm of that name, so no recipe"),
        ("forward(self, x)", "forward(self, x, valid=None, positions=None, *, more=1)", 0, "1 pass\n"),
        ("", "", 1, "`Mine.forward(self, x)` must take what it is called with: `def forward(self, x, valid=None, "),
        ("super().__init__()", "self.eps = self.create_parameter([1])", 2,
         "the constructor of Mine must call `super().__init__()` first"),
    ],
)  # fmt: skip
def test_what_is_written_wrongly_before_any_formula_is_said(was, becomes, status, sentence):
    right = MINE if was == "" else MINE.replace("forward(self, x)", "forward(self, x, valid=None, positions=None)")
    was = was if was in right else "forward(self, x, valid=None, positions=None)"
    Path("mine.py").write_text(right.replace(was, becomes) if was else right, "utf-8")
    done = call("plugin", "check", "mine.py", "--only", "runs")
    assert done.status == status and sentence in done.out + done.err


def test_a_hook_that_returns_no_names_is_told_what_it_must_return():
    Path("mine.py").write_text(ORDINARY.replace('{"mine": Mine}', "[Mine]"), "utf-8")
    done = call("plugin", "check", "mine.py")
    assert done.status == 2 and "`register_norms` must return {name: class}, but returns [<class" in done.err


@pytest.mark.parametrize(
    "target, reference, sentence",
    [
        ("norm:rms", "mine", "--reference mine: it must be FILE.py, FILE.py:NAME or what is installed"),
        ("norm:rms", "nowhere.py:forward", "nowhere.py: no such file"),
        ("norm:rms", "empty.py", "empty.py holds no function forward"),
        ("norm", "empty.py", "; name one, as in norm:batch"),
        ("cosine", "empty.py", "--reference is of one component, but cosine is 2; name one, as in attention:cosine"),
    ],
)
def test_a_wrong_reference_is_one_sentence_before_any_check(target, reference, sentence):
    Path("empty.py").write_text("", "utf-8")
    done = call("plugin", "check", target, "--reference", reference)
    assert (done.status, done.out, "Traceback" in done.err) == (2, "", False)
    assert sentence in done.err


LAYER_NORM = """def forward(x, w, eps):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + eps) * w["weight"] + w["bias"]
"""


@pytest.mark.parametrize("factor, status", [("", 0), ("2.0 * ", 1)])
def test_a_reference_is_a_check_that_may_be_the_only_one(factor, status):
    Path("formula.py").write_text(
        f"import numpy as np\n\n\n{LAYER_NORM.replace('return ', f'return {factor}')}", "utf-8"
    )
    words = ["plugin", "check", "norm:layer", "--reference", "formula.py", "--only", "reference"]
    done = call(*words, "--json")
    assert done.status == status, done.err
    assert [each["name"] for each in json.loads(done.out)[0]["checks"]] == ["reference"]
    both = call(*words, "--only", "invariances", "--json")
    assert [each["name"] for each in json.loads(both.out)[0]["checks"]] == ["invariances", "reference"]
    done = call(*words[:3], "--only", "reference")
    assert (done.status, done.out) == (2, "")
    assert "--only reference: it needs --reference FILE.py" in done.err


def test_a_name_is_all_components_of_it_and_a_kind_all_of_that_kind():
    both = call("plugin", "check", "cosine", "--only", "rates", "--only", "both_signs", "--json")
    assert [report["kind"] for report in json.loads(both.out)] == ["attention", "schedule"]
    every = call("plugin", "check", "schedule", "--only", "peak", "--json")
    assert {("schedule", "cosine"), ("schedule", "noam")} < {
        (report["kind"], report["name"]) for report in json.loads(every.out)
    }


def test_an_expected_failure_is_shown_with_its_reason():
    done = call("plugin", "check", "norm:batch", "--only", "causal_in_training")
    assert done.status == 0
    assert "expected failure" in done.out and "mix all tokens of the batch" in done.out


def test_what_is_wrong_on_purpose_is_checked_when_it_is_named_only(registry):
    names = {f"{kind}:{name}" for kind, name in everything(registry)}
    assert {"norm:layer", "listener:listener"} < names and not any("clinic" in name for name in names)
    done = call("plugin", "check", "clinic_no_scale", "--only", "temperature")
    assert done.status == 0 and "expected failure" in done.out


def test_an_ordinary_layer_is_checked_as_it_is():
    file = twin("ordinary_attention", ("self.heads = nn.LayerList(heads)", "self.heads = heads"))
    done = call("plugin", "check", "--as", "attention", f"{file}:Twin", "--only", "registered")
    assert done.status == 1
    assert "is used, and not among the model's parameters" in done.out
    assert "mask `mask` [B, Tq, Tk]: True where it may look; all places of a text are alike to it" in done.out


def test_a_whole_model_is_checked_from_outside():
    file = twin("transformer", ("paddle.tril(", "paddle.ones_like("))
    done = call("plugin", "check", "--as", "encoder-decoder", f"{file}:Twin", "--only", "causal", "--only", "shapes")
    assert done.status == 1
    assert "changing the target from position 1 on changes earlier outputs" in done.out
    assert "1 pass, 1 fail" in done.out


def test_the_report_as_json():
    done = call("plugin", "check", "schedule:noam", "--json")
    (report,) = json.loads(done.out)
    assert (report["kind"], report["name"]) == ("schedule", "noam")
    assert [outcome["name"] for outcome in report["checks"]] == [
        *("rates", "step_alone", "peak", "continuous", "options", "known_formula")
    ]
    assert {outcome["name"]: outcome["status"] for outcome in report["checks"] if outcome["status"] != "pass"} == {
        "peak": "skip",
        "options": "information",
        "known_formula": "skip",
    }
    rates, step_alone, *_ = report["checks"]
    assert step_alone["invariant"].startswith("a function of the step alone") and "at step 1" in rates["detail"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["rotaryy"], "unknown component 'rotaryy'; did you mean 'rotary'?"),
        (["nothing.py"], "nothing.py: no such file"),
        (["norm:layerr"], "unknown norm 'layerr'; did you mean 'layer'?"),
        (["rotary", "--only", "relativ"], "--only: unknown check 'relativ'; did you mean 'relative'?"),
        (["rotary", "--option", "bas=3"], "'rotary' has no option 'bas'; did you mean 'base'?"),
        (["rotary", "--option", "base"], "'base' must be NAME=VALUE"),
        (["--as", "norm"], "--as norm: name a class"),
        (["--as", "head", "paddle.nn:ReLU"], f"'head' is not one of {', '.join(map(repr, AS_KINDS))}"),
        (["--as", "norm", "paddle.nn:LayerNormm"], "unknown class 'LayerNormm'"),
        (
            ["--as", "norm", "paddle.nn:GroupNorm"],
            "GroupNorm needs the argument 'num_groups', which the kit does not know; give it, --option num_groups=…, or "
            "say which number of the model it is, --option num_groups=d_model (d_model)",
        ),
        (["--as", "attention", "paddle.nn:ReLU", "--option", "inplace=1"], "unknown option of ReLU 'inplace'"),
        (["paddle.nn:Linear"], "Linear is no component"),
        (["paddle.nn:Linear"], "is checked with --as attention, norm, position, feed_forward or encoder-decoder"),
        (["no_such_package:Thing"], "no_such_package cannot be imported"),
        (["multihead", "--mask", "hidden"], "--mask belongs to --as attention, and has no effect without --as"),
        (["--as", "norm", "paddle.nn:LayerNorm", "--mask", "hidden"], "and has no effect beside --as norm"),
        (["multihead", "--pad-id", "0"], "--pad-id belongs to --as encoder-decoder, and has no effect without --as"),
        (["--as", "norm", "paddle.nn:LayerNorm", "--only", "reference"], "it needs --reference FILE.py"),
        (["--as", "encoder-decoder", "a.py:B", "--reference", "a.py"], "--reference is for single layers"),
    ],
)
def test_what_cannot_be_checked_is_one_sentence(arguments, message):
    done = call("plugin", "check", *arguments)
    assert done.status == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_a_file_of_export_rules_says_what_proves_them(tmp_path):
    (tmp_path / "rules.py").write_text(
        "from paddle_tfm import hookimpl\n@hookimpl\ndef register_ctranslate2_rules():\n    return {}\n"
    )
    done = call("plugin", "check", tmp_path / "rules.py")
    assert done.status == 2
    assert "has export rules alone, which are proved by `paddle-tfm export RUN --plugin" in done.err


def test_a_layer_of_many_must_be_named():
    done = call("plugin", "check", "--as", "encoder-decoder", twin("transformer"))
    assert done.status == 2
    assert "holds 3 layers (MultiHead, Layer, Twin); say which" in done.err


def test_a_component_that_does_not_run_fails_once():
    file = twin("feed_forward", ("return self.layers[1](hidden)", "return self.layers[1](hidden[:, :, 1:])"))
    done = call("plugin", "check", f"{file}:Twin")
    assert done.status == 1
    assert "runs" in done.out and "feed_forward.py line" in done.out and "1 fail" in done.out
    assert "causal" not in done.out


def test_a_constructor_that_raises_anything_is_one_sentence_with_its_line():
    file = twin(
        "feed_forward", ("        self.dropout = Dropout(dropout)", "        self.register_buffer('train', None)")
    )
    done = call("plugin", "check", f"{file}:Twin")
    assert done.status == 2 and "Traceback" not in done.err
    assert "feed_forward Twin failed (feed_forward.py line 1" in done.err
    assert "in __init__: `self.register_buffer('train', None)`): KeyError: " in done.err


SHARED = """
from paddle_tfm import hookimpl
from paddle_tfm.protocols import Schedule

class Halves(Schedule):  # what others are derived from
    def __call__(self, step):
        return self.peak() / 2

class Flat(Halves):
    def peak(self):
        return 1e-3

class Forgotten(Schedule):
    def __call__(self, step):
        return 1e-3

@hookimpl
def register_schedules():
    return {"flat": Flat}
"""


def test_a_base_class_beside_what_a_file_registers_is_not_checked():
    Path("flat.py").write_text(SHARED, "utf-8")
    done = call("plugin", "check", "flat.py", "--only", "rates")
    assert done.status == 0, done.out
    assert "schedule Flat: 1 pass" in done.out and "Halves" not in done.out
    assert "Forgotten is not registered" in done.out


@pytest.mark.reliability
def test_a_crash_below_python_names_the_line(tmp_path):
    """As of Paddle's `addmm` with a bias of one axis, whose gradient may end the process."""
    (tmp_path / "crashes.py").write_text(
        "import ctypes\nfrom paddle import nn\n\n\nclass Crashes(nn.Layer):\n    def __init__(self, d_model):\n"
        "        super().__init__()\n\n    def forward(self, x):\n        return ctypes.string_at(0)\n"
    )
    command = [sys.executable, "-m", "paddle_tfm", "plugin", "check", "--as", "norm", "crashes.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode < 0
    assert "Segmentation fault" in done.stderr and 'crashes.py", line 10 in forward' in done.stderr
