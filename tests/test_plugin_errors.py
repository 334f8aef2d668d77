"""Errors in a plugin's code: a sentence with its class, line and shapes, from every verb and every process; what is
never registered; and what is said of a plugin that is not loaded. The real command line on plugin files."""

import json
import re

import pytest
from recipe_text import TINY_MODEL

from paddle_tfm.cli import main
from paddle_tfm.plugin_errors import summary

TINY = [
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 4, train: 60, valid: 10, test: 10}",
    *TINY_MODEL,
    "train.max_tokens=64", "train.steps=2", "evaluate.every=2", "seeds=[1]",
]  # fmt: skip
NORM = '''
import paddle
from paddle_tfm import hookimpl
from paddle_tfm.protocols import Norm


class Mine(Norm):
    """A norm for tests."""

    def __init__(self, d_model):
        super().__init__()
        self.g = self.create_parameter([d_model])

    def forward(self, x, valid=None, positions=None):
        {body}


@hookimpl
def register_norms():
    return {{"mine": Mine}}
'''
BACKWARD = """class Twice(paddle.autograd.PyLayer):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, gradient):
                raise KeyError("forgotten")
        return Twice.apply(x)"""


@pytest.fixture
def ask(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder: (exit status, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        texts = capsys.readouterr()
        return left.value.code, texts.out, texts.err

    return run


def plugin(tmp_path, body, name="mine.py", **changes):
    text = NORM.format(body=body)
    for old, new in changes.items():
        text = text.replace(old, new)
    (tmp_path / name).write_text(text, "utf-8")
    return name


# body of forward -> what is said of it
FAILURES = {
    "return x * paddle.ones([17])": [
        "norm Mine failed (mine.py line 15, in forward: `return x * paddle.ones([17])`)",
        "Broadcast dimension mismatch", "x float32 [2, 5, 16], valid bool [2, 5], positions int64 [1, 5]",
    ],
    "return self.gain * x": ["line 15, in forward: `return self.gain * x`", "AttributeError", "'gain'"],
    "return helper(x)\n\n\ndef helper(x):\n    raise RuntimeError('two\\n  lines')": ["line 19, in helper", "RuntimeError: two lines"],
    BACKWARD: ["mine.py line 21, in backward", "KeyError: 'forgotten'"],
}  # fmt: skip


@pytest.mark.parametrize("body", FAILURES, ids=["shapes", "attribute", "helper", "backward"])
def test_check_takes_a_step_and_names_class_line_and_shapes(body, tmp_path, ask):
    plugin(tmp_path, body)
    code, _, said = ask("check", "reverse", *TINY, "model.norm=mine", "--plugin", "mine.py")
    assert code == 2
    assert "Traceback" not in said and "paddle/phi" not in said and "[Hint" not in said
    for part in [*FAILURES[body], "a training step fails", "command line", "model.norm"]:
        assert part in said, said


def test_a_call_that_does_not_fit_is_the_plugins_too(tmp_path, ask):
    plugin(tmp_path, "return x", **{"x, valid=None, positions=None": "x"})
    code, _, said = ask("check", "reverse", *TINY, "model.norm=mine", "--plugin", "mine.py")
    assert code == 2
    assert "norm Mine failed (mine.py): TypeError: Mine.forward() takes 2 positional arguments" in said
    assert "float32 [2, 5, 16]" in said


def test_a_step_of_decoding_is_taken_too(tmp_path, ask):
    plugin(tmp_path, "if not self.training and x.shape[1] == 1: raise ValueError('one token')\n        return x")
    _, _, said = ask("check", "reverse", *TINY, "model.norm=mine", "--plugin", "mine.py")
    assert "a step of decoding fails" in said and "ValueError: one token" in said and "[2, 1, 16]" in said


def test_a_wrong_shape_that_breaks_our_code_names_the_plugins_in_it(tmp_path, ask):
    plugin(tmp_path, "return x[:, :-1] if x.shape[1] > 1 else x")
    code, _, said = ask("check", "reverse", *TINY, "model.norm=mine", "--plugin", "mine.py")
    assert code == 2
    assert "a training step with norm 'mine' fails" in said and "paddle-tfm plugin check norm:mine" in said


def test_a_constructor_that_raises_anything(tmp_path, ask):
    plugin(tmp_path, "return x", **{"self.g = ": "self.g = {}['size'] or "})
    code, _, said = ask("check", "reverse", *TINY, "model.norm=mine", "--plugin", "mine.py")
    assert code == 2 and "KeyError: 'size'" in said and "line 12, in __init__" in said


LATE = "if valid.shape[0] > 2: raise ValueError('more than two')\n        return x"  # not in the step that is checked


@pytest.mark.parametrize("workers", [1, 2])
def test_training_says_the_same_in_every_process(workers, tmp_path, ask):
    plugin(tmp_path, LATE)
    arguments = ["run", "reverse", *TINY, "seeds=[1, 2]", "model.norm=mine", "--plugin", "mine.py"]
    code, _, said = ask(*arguments, "--workers", workers)
    assert code == 2
    assert "Traceback" not in said
    assert re.search(r"norm Mine failed \(mine.py line 15, in forward: `if valid", said) and "more than two" in said
    assert "PADDLE_TFM_TRACEBACK=1 shows" in said


def test_the_whole_traceback_on_demand(tmp_path, ask, monkeypatch):
    monkeypatch.setenv("PADDLE_TFM_TRACEBACK", "1")
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, LATE)
    with pytest.raises(ValueError, match="more than two"):
        main(["run", "reverse", *TINY, "model.norm=mine", "--plugin", "mine.py", "--workers", "1"])


def test_an_error_of_ours_keeps_its_traceback(tmp_path, monkeypatch):
    from paddle_tfm.train.step import Step

    def broken(*arguments):
        raise ZeroDivisionError("ours")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Step, "backward", broken)
    with pytest.raises(ZeroDivisionError, match="ours"):
        main(["run", "reverse", *TINY, "--workers", "1"])


# what a file lacks -> what is said
NOTHING = {
    "no mark": ("def register_norms():\n    return {}\n", "is `@hookimpl` missing above `def register_norms` (line 1)?"),
    "a name that is near": ("x = 1\ndef register_norm():\n    return {}\n", "missing above `def register_norm` (line 2)?"),
    "a class alone": ("from paddle_tfm.protocols import Norm\nclass Mine(Norm):\n    pass\n", 'def register_norms(): return {"mine": Mine}'),
    "nothing": ("x = 1\n", "`paddle-tfm plugin new` writes an example"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOTHING)
def test_a_file_that_registers_nothing(case, tmp_path, ask):
    text, expected = NOTHING[case]
    (tmp_path / "mine.py").write_text(text, "utf-8")
    code, _, said = ask("ls", "components", "--plugin", "mine.py")
    assert code == 2
    assert "--plugin mine.py" in said and "registers nothing" in said and expected in said


def test_a_component_that_is_right_but_not_registered(tmp_path, ask):
    body = "return x / ((x * x).mean(-1, keepdim=True) + 1e-5).sqrt() * self.g"
    plugin(tmp_path, body, **{"@hookimpl\ndef": "def"})
    _, printed, _ = ask("plugin", "check", "mine.py", "--only", "gradients")
    assert "Mine is not registered, so no recipe can name it: add a function `register_norms`" in printed
    plugin(tmp_path, body)
    assert "not registered" not in ask("plugin", "check", "mine.py", "--only", "gradients")[1]


def test_a_run_names_the_file_that_it_was_trained_with(tmp_path, ask):
    plugin(tmp_path, "return x * self.g")
    assert ask("run", "reverse", *TINY, "model.norm=mine", "--plugin", "mine.py", "--out", "runs")[0] == 0
    code, _, said = ask("evaluate", "runs/default/seed-1")
    assert code == 2
    assert f"was trained with a plugin that is not loaded now; add --plugin {tmp_path / 'mine.py'}" in said
    assert ask("evaluate", "runs/default/seed-1", "--plugin", "mine.py")[0] == 0
    identity = json.loads((tmp_path / "runs/default/seed-1/identity.json").read_text("utf-8"))
    assert identity["plugin_files"] == {"mine": str(tmp_path / "mine.py")}


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("(InvalidArgument) a = [2].\n  [Hint: Expected x[i] == y[i], but received 1 != 2.] (at /paddle/a/b.h:72)\n", "(InvalidArgument) a = [2]."),
        ("  two\n words ", "two words"),
        ("of mine (at home)", "of mine (at home)"),
    ],
)  # fmt: skip
def test_paddles_own_details_are_left_out(text, short):
    assert summary(ValueError(text)) == f"ValueError: {short}"
