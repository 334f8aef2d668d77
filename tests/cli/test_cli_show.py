"""`paddle-tfm show KIND:NAME`: all about one component."""

import json
import re
import shlex

import pytest
from command_line import call

from paddle_tfm.recipe import loading, yaml_lines
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.recipe.sites import component_specs


def test_a_page_says_all_that_a_recipe_needs():
    text = " ".join(call("show", "norm:batch").out.split())
    for part in (
        "Batch normalization of each channel",
        "Formula y = (x − mean) / sqrt(variance + eps) · weight + bias",
        "The engine fills in d_model: the width C of what is normalized",
        "eps number 1e-05 momentum number, or cumulative 0.1",
        "causal_in_training: in training the statistics mix all tokens of the batch",
        "arXiv:1502.03167 https://arxiv.org/abs/1502.03167",
        "compare-norms: batch",
        "in a recipe model: {norm: {name: batch, eps: 1e-05}}",
        'paddle-tfm run reverse "model.norm={name: batch, eps: 1e-05}"',
        "paddle-tfm plugin check norm:batch",
    ):
        assert part in text, part


def test_a_name_of_one_kind_needs_no_kind_and_the_menu_of_beam_is_there():
    done = call("show", "beam")
    assert done.out == call("show", "search:beam").out
    assert re.search(r"^size +whole number +5$", done.out, re.M)
    about = json.loads(call("show", "beam", "--json").out)
    assert {option["name"] for option in about["options"]} >= {"size", "alpha", "max_ratio", "min_length"}
    assert about["papers"][0].startswith("arXiv:1609.08144")
    assert "multi30k" in about["recipes"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["norm:bacht"], "unknown norm 'bacht'; did you mean 'batch'?"),
        (["nrom:batch"], "unknown kind 'nrom'; did you mean 'norm'?"),
        (["beem"], "unknown recipe or component 'beem'; did you mean 'beam'?"),
        (["norm"], "'norm' is a kind; `paddle-tfm ls components norm` lists its components"),
        (["none"], "'none' is of several kinds; choose norm:none or position:none"),
        (["norm:batch", "a.b=1"], "a.b=1: overrides go with a recipe, but norm:batch is a component"),
        (["reverse", "--json"], "--json goes with a component: paddle-tfm show KIND:NAME"),
    ],
)
def test_a_misspelled_name_gets_the_nearest(arguments, sentence):
    done = call("show", *arguments)
    assert done.status == 2 and sentence in done.err and "Traceback" not in done.err


def test_a_component_of_a_file_is_shown_with_its_options(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from paddle_tfm import hookimpl\nfrom paddle_tfm.protocols import Norm\n"
        "class Mine(Norm):\n    'Divides by [b]the norm[/b].'\n"
        "    def __init__(self, d_model: int, share: float = 0.5):\n        super().__init__()\n"
        "@hookimpl\ndef register_norms():\n    return {'mine': Mine}\n"
    )
    done = call("show", "norm:mine", "--plugin", tmp_path / "mine.py")
    assert done.status == 0, done.err
    assert "Divides by [b]the norm[/b]." in done.out
    assert f"paddle-tfm plugin check norm:mine --plugin {tmp_path / 'mine.py'}" in done.out
    assert re.search(r"^share +number +0\.5$", done.out, re.M)
    assert "d_model: the width C of what is normalized" in done.out


@pytest.mark.reliability
def test_every_example_is_a_recipe_without_problems(registry):
    """The command that a page proposes names the component with options that it has and takes."""
    from paddle_tfm.cli.show.component import facts

    kinds = [entry.kind for entry in registry]
    for number, entry in enumerate(registry):
        if number % 3 and kinds.index(entry.kind) != number:  # a third, and the first of each kind
            continue
        about = facts(entry, registry)
        if entry.kind == "section":  # of the report of every recipe
            assert about["example"] == {"recipe": "", "command": "paddle-tfm report runs/quickstart"}
            continue
        if entry.kind == "kernel":  # of every recipe
            assert about["example"] == {"recipe": "", "command": "paddle-tfm check quickstart --no-kernels"}
            continue
        _, verb, recipe, override = shlex.split(about["example"]["command"])
        assert verb == "run"
        if entry.kind == "executor":  # an option of `run`, and no override
            option, _, spec = override.partition("=")
            assert option == "--executor" and about["example"]["recipe"] == ""
            registry.build("executor", yaml_lines.value(spec))
            continue
        (run, *_), _ = loading.load(recipe, [override]).expand()
        named = [path for kind, path, spec in component_specs(run.data) if kind == entry.kind]
        problems = [problem.message for problem in plan_run(run, registry).problems if "…" not in override]
        about_it = [message for message in problems if f"'{entry.name}'" in message or "option" in message]
        # Some belong at one place only, or need another neighbour: that is said by name, and is not the page's to know.
        assert not [message for message in about_it if re.search("no option|must be|needs the option", message)], about
        assert named or entry.kind == "dataset"
