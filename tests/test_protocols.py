"""Every contract page: short, true about its givens, and with an example that works in a real model or run."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from recipe_text import TINY_MODEL

from paddle_tfm import create_registry, protocols
from paddle_tfm.hookspecs import KINDS
from paddle_tfm.protocols import BASES, base_class
from paddle_tfm.testing import examine

PAGES = Path(protocols.__file__).parent
LAYERS = ("attention", "norm", "placement", "position", "feed_forward", "head")
WITHOUT_PADDLE = (
    "task",
    "dataset",
    "tokenizer",
    "metric",
    "search",
    "schedule",
    "optimizer",
    "initializer",
    "executor",
    "section",
)


def example(kind: str) -> str:
    """The code of the base class' example."""
    text = inspect.getdoc(base_class(kind))
    assert text.count("Example::\n") == 1, f"{kind}: the docstring must have one example"
    return textwrap.dedent(text.partition("Example::\n")[2]).strip() + "\n"


def example_class(kind: str) -> type:
    space: dict[str, object] = {"__name__": f"example_{kind}"}
    exec(compile(example(kind), f"example of {kind}", "exec"), space)
    (cls,) = (value for value in space.values() if isinstance(value, type) and value.__module__ == f"example_{kind}")
    return cls


@pytest.fixture(scope="module")
def plugin(tmp_path_factory) -> Path:
    """A file that registers all examples, as a user's plugin does."""
    lines = []
    for kind, hook in KINDS.items():
        lines += [
            example(kind),
            f"@hookimpl\ndef {hook}():\n    return {{'example': {example_class(kind).__name__}}}\n",
        ]
    file = tmp_path_factory.mktemp("plugin") / "examples.py"
    file.write_text("from paddle_tfm import hookimpl\n" + "\n".join(lines), encoding="utf-8")
    return file


def section(cls: type, name: str) -> str:
    """The text of a section of a class' docstring: `Name:` to the next empty line or section."""
    match = re.search(rf"^{name}:(.*?)(?=\n\n|\n[A-Z][a-z ]+:|\Z)", inspect.getdoc(cls), re.MULTILINE | re.DOTALL)
    assert match, f"{cls.__name__}: the docstring must have a section '{name}:'"
    return match[1].strip()


def test_every_kind_has_a_page_of_its_name():
    assert set(BASES) == set(KINDS)
    for kind in KINDS:
        assert inspect.getfile(base_class(kind)) == str(PAGES / f"{kind}.py")
        assert base_class(kind).kind == kind


def test_a_page_has_at_most_100_lines():
    assert [kind for kind in KINDS if len((PAGES / f"{kind}.py").read_text("utf-8").splitlines()) > 100] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_says_all_that_a_variant_needs(kind):
    assert section(base_class(kind), "Invariances").endswith((".", ";"))
    for name in ("Givens", "Expected failures", "Raises"):  # of all kinds, where the kind says nothing else
        assert section(protocols.Component, name).endswith(".")
    assert len(example(kind).splitlines()) <= 20
    for name, member in vars(base_class(kind)).items():
        if inspect.isfunction(member) and not name.startswith("_"):
            assert member.__doc__, f"{kind}: `{name}` must have a docstring"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if base_class(kind).givens])
def test_the_docstring_names_the_givens_and_which_are_settable(kind):
    base, text = base_class(kind), section(base_class(kind), "Givens")
    # "d_model: C. dropout: of the branches (settable). pad_id, unknown_id: ids."
    entries = re.findall(r"(?:^|\. +|\.\n +)((?:[a-z_]+, )*[a-z_]+): ", text)
    assert {name for entry in entries for name in entry.split(", ")} == base.givens
    settable = re.findall(r"([a-z_]+): [^:]*?\(settable\)", text)
    assert set(settable) == base.settable and len(settable) == text.count("(settable)")


TRAINING = """
import json, sys
from pathlib import Path
import pluggy
from paddle_tfm import hookspecs, runtime
from paddle_tfm.plugins import Plugins
from paddle_tfm.recipe.loading import load
from paddle_tfm.registry import Registry
runtime.load_paddle()
sys.path.insert(0, sys.argv[1])
import examples
from paddle_tfm.protocols import PositionalEncoding
# One that does nothing: the example is a bias of the scores, which the example of an attention does not support.
examples.register_positions = hookspecs.hookimpl(lambda: {"example": PositionalEncoding})
from paddle_tfm.sweep.sweep import Sweep
from paddle_tfm.train.run import load_run
manager = pluggy.PluginManager(hookspecs.PROJECT)
manager.add_hookspecs(hookspecs)
manager.register(examples, name="examples")
registry = Registry(Plugins(manager))
(folder,) = Sweep(load("base", sys.argv[2:]), registry, Path("out")).run()
losses = [json.loads(line).get("loss") for line in (folder / "metrics.jsonl").read_text().splitlines()]
translated = load_run(folder, registry).translate(["1 2", "3"])
variants = [name for name in sys.modules if name.startswith("paddle_tfm_plugins")]
print(json.dumps([losses[0], losses[-2], translated, variants]))
"""


@pytest.mark.reliability
def test_the_engine_trains_with_examples_of_all_kinds_and_imports_no_variant(plugin, tmp_path):
    overrides = [
        "task=example", "tokenizer=example", "train.optimizer=example", "train.schedule={name: example, peak: 0.05}",
        "search=example", "evaluate.search=example", "evaluate.metrics=[example]", "evaluate.best=example",
        *(f"model.{kind}=example" for kind in (*LAYERS, "initializer")),
        *TINY_MODEL,
        "model.max_length=32", "train.max_tokens=256", "train.steps=20", "evaluate.every=20", "seeds=[1]",
    ]  # fmt: skip
    command = [sys.executable, "-c", TRAINING, str(plugin.parent), *overrides]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, last, translated, variants = json.loads(done.stdout.splitlines()[-1])
    assert last < 0.8 * first and len(translated) == 2 and variants == []


@pytest.mark.conformance
@pytest.mark.parametrize("kind", KINDS)
def test_an_example_passes_the_conformance_kit(kind, plugin):
    report = examine(kind, "example", registry=create_registry([plugin]))
    assert [str(outcome) for outcome in report.failures] == []


def test_a_page_that_needs_no_paddle_imports_none():
    imports = "\n".join(f"from paddle_tfm.protocols import {BASES[kind]}" for kind in WITHOUT_PADDLE)
    script = f"import sys\n{imports}\nprint('paddle' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["False"]


def test_every_public_name_comes_from_its_page():
    for name, page in protocols._PAGE_OF.items():
        assert getattr(protocols, name) is getattr(importlib.import_module(f"paddle_tfm.protocols.{page}"), name)
    with pytest.raises(AttributeError, match="has no attribute 'Attentions'"):
        protocols.Attentions  # noqa: B018
