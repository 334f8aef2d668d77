"""Every hook is explained, and does what it says."""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import textwrap
from pathlib import Path

from recipe_text import TINY_MODEL

from paddle_tfm import hookspecs
from paddle_tfm.cli.run.request import Request
from paddle_tfm.cli.run.training import train
from paddle_tfm.hookspecs import EXPORT_RULES, KINDS
from paddle_tfm.protocols import BASES, Prediction

HOOKS = [name for name in vars(hookspecs) if name.startswith(("register_", "on_"))]
EVENTS = [name for name in HOOKS if name.startswith("on_")]
ROOT = Path(__file__).parents[1]
TINY = [
    *("task.train=60", "task.valid=6", "task.test=6", "task.max_length=4", "train.max_tokens=128"),
    *TINY_MODEL,
]


def test_there_are_register_hooks_for_every_kind_one_for_export_rules_and_six_events():
    assert sorted([*KINDS.values(), EXPORT_RULES]) == sorted(set(HOOKS) - set(EVENTS))
    assert list(KINDS) == list(BASES)
    assert len(EVENTS) == 6


def test_docstrings_say_what_a_hook_is_and_show_how_to_listen():
    for hook in HOOKS:
        text = inspect.getdoc(getattr(hookspecs, hook))
        purpose, _, example = text.partition("Example::")
        assert len(purpose.split()) >= 5, hook
        ast.parse(textwrap.dedent(example))
        assert hook not in EVENTS or f"def {hook}{_arguments(hook)}" in example, hook


def _arguments(hook: str) -> str:
    return f"({', '.join(inspect.signature(getattr(hookspecs, hook)).parameters)})"


def test_architecture_names_each_but_the_kinds():
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    assert [hook for hook in [*EVENTS, EXPORT_RULES] if f"`{hook}`" not in text] == []


def test_a_training_tells_all_six_events(tmp_path):
    listeners = [
        f"@hookimpl\ndef {event}{_arguments(event)}:\n    heard.append(('{event}', locals(), "
        "getattr(locals().get('run'), 'step', None)))\n"
        for event in EVENTS
    ]
    file = tmp_path / "six_ears.py"
    file.write_text("\n".join(["from paddle_tfm import hookimpl", "heard = []", *listeners]))

    overrides = [*TINY, "train.steps=3", "evaluate.every=2"]
    train(Request("reverse", overrides, out=tmp_path / "out", plugins=[file], device="cpu", strict=True))

    heard = sys.modules["paddle_tfm_file_six_ears"].heard
    assert [(event, step) for event, _, step in heard] == [
        ("on_run_start", 0),
        ("on_step_end", 1),
        ("on_step_end", 2),
        ("on_checkpoint", 2),  # the best so far
        ("on_checkpoint", 2),  # the last
        ("on_evaluation_end", 2),
        ("on_step_end", 3),
        *[("on_checkpoint", 3)] * _count(heard, "on_checkpoint", 3),  # two if it became the best
        ("on_evaluation_end", 3),
        ("on_run_end", 3),
        ("on_comparison_end", None),
    ]
    assert _count(heard, "on_checkpoint", 3) in (1, 2)
    arguments_of = {event: arguments for event, arguments, _ in heard}
    for event, arguments in arguments_of.items():
        assert f"({', '.join(arguments)})" == _arguments(event)
    _check_run(arguments_of["on_run_start"]["run"], tmp_path / "out")
    _check_events(arguments_of, tmp_path / "out" / "default" / "seed-1")


def _count(heard, event: str, step: int) -> int:
    return sum((name, at) == (event, step) for name, _, at in heard)


def _check_run(run, out: Path):
    """What `on_run_start` documents of `run`."""
    assert run.folder == out / "default" / "seed-1"
    assert run.name == "default/seed-1"
    assert run.recipe["model"]["d_model"] == 16
    assert sum(int(parameter.size) for parameter in run.model.parameters()) == run.parameters()


def _check_events(arguments_of: dict, folder: Path):
    """What the other events document."""
    step = arguments_of["on_step_end"]
    documented = re.search(r"`metrics`: ([\w, ]+)\.", inspect.getdoc(hookspecs.on_step_end)).group(1)
    assert set(step["metrics"]) == set(documented.split(", "))
    assert all(isinstance(value, (int, float)) for value in step["metrics"].values())

    evaluation = arguments_of["on_evaluation_end"]
    assert {"loss", "exact_match"} <= set(evaluation["metrics"])
    assert evaluation["samples"]
    assert all(isinstance(sample, Prediction) for sample in evaluation["samples"])

    assert arguments_of["on_checkpoint"]["path"] == folder / "checkpoints" / "last"
    assert (arguments_of["on_checkpoint"]["path"] / "model.safetensors").is_file()
    assert arguments_of["on_run_end"]["results"] == json.loads((folder / "results.json").read_text("utf-8"))

    comparison = arguments_of["on_comparison_end"]["comparison"]
    assert comparison.folder == folder.parents[1]
    assert [row.variant for row in comparison.rows] == ["default"]
    assert [run.folder for run in comparison.runs] == [folder]
