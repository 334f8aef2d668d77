"""`paddle-tfm plugin new`: a new plugin, from the files in `templates/`: an installable package, or one file."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

import click

from paddle_tfm.cli.common import create_registry, echo
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.units import in_shell

TEMPLATES = Path(__file__).parents[2] / "templates"
REFERENCED = ("attention", "norm", "placement", "position", "feed_forward", "head", "schedule")  # with a NumPy twin
WHAT = {
    "attention": "attention",
    "norm": "norm",
    "placement": "placement",
    "position": "positional encoding",
    "feed_forward": "feed-forward sublayer",
    "head": "head",
    "initializer": "initializer",
    "task": "task",
    "dataset": "dataset",
    "tokenizer": "tokenizer",
    "metric": "metric",
    "search": "search",
    "schedule": "learning-rate schedule",
    "optimizer": "optimizer",
    "executor": "executor",
    "section": "section of the report",
    "kernel": "kernel",
    "listener": "listener",
}
# kind -> what a recipe says for a component that is no part of a model: a dotted path, and its value; of an executor,
# which no recipe names, the option of `run`
SETTINGS = {
    "task": ("task", "$module"),
    "dataset": ("task", "{name: parallel, dataset: $module}"),
    "tokenizer": ("tokenizer", "$module"),
    "metric": ("evaluate.metrics", "[exact_match, $module]"),
    "search": ("search", "$module"),
    "schedule": ("train.schedule", "$module"),
    "optimizer": ("train.optimizer", "$module"),
    "executor": ("--executor", "$module"),
}
# kind, which no recipe names -> what shows it, and the question that this answers
NO_RECIPE = {
    "listener": ("run reverse", "what does it write?"),
    "section": ("report runs/quickstart", "how does it look?"),
    "kernel": ("check reverse model.norm=${module}_norm --no-kernels", "what does it gain?"),
}
ALONE = {  # kind -> the lines of a recipe that tries it: there is nothing to compare it with on the same data
    "task": "task: {name: $module}\nevaluate: {every: 200}",
    "dataset": "task: {name: parallel, dataset: $module}\nevaluate: {every: 200}",
    "metric": "task: {name: reverse}\nevaluate: {every: 200, metrics: [exact_match, $module]}",
    "executor": "task: {name: reverse}\nevaluate: {every: 200}\nvariants: {pre: {}, post: {model.placement: post}}",
}


@dataclass(frozen=True)
class NewPlugin:
    """The files, and what to do next."""

    files: tuple[Path, ...]
    advice: str


def write(
    name: str, kind: str, single_file: bool = False, out: Path | None = None, taken: Mapping[str, str] | None = None
) -> NewPlugin:
    """Write a plugin called `name` (letters, digits, - and _).

    Args:
        kind: one of `WHAT`; a listener, a section or a kernel, which no recipe names, is always one file. out: the
            folder, or the file with `single_file`; default: by the name, here. taken: names of components that are
            there already, with what they are.
    Raises:
        UserError: the name cannot be a package's, belongs to another, or something is there already.
    """
    words = {"project": name, "module": name.replace("-", "_"), "kind": kind, "what": WHAT[kind]}
    words["hook"] = "register_searches" if kind == "search" else f"register_{kind}s"
    path, value = SETTINGS.get(kind, (f"model.{kind}", "$module"))
    words |= {"path": path, "value": Template(value).substitute(words)}
    words["options"] = f" --executor={words['module']}" if kind == "executor" else ""
    words["question"] = "does it train them?" if kind == "executor" else "is it better?"  # it changes no number
    words["lines"] = Template(ALONE.get(kind, "")).substitute(words)
    words["Class"] = "".join(part.capitalize() for part in words["module"].split("_"))
    words["a_what"] = f"{'an' if WHAT[kind][0] in 'aeiou' else 'a'} {WHAT[kind]}"
    words["A_what"] = words["a_what"].capitalize()
    _refuse_name(name, words["module"], taken or {})
    component = _filled(f"component/{kind}.py", words)
    file = out or Path(f"{words['module']}.py")
    shown = in_shell(file)
    if kind in NO_RECIPE:
        command, question = (Template(each).substitute(words) for each in NO_RECIPE[kind])
        _write({file: component if kind == "listener" else _single(component, words)})
        return NewPlugin((file,), _advice(f"plugin check {shown}", f"{command} --plugin {shown}", question))
    if single_file:
        beside = file.with_name(f"{file.stem}_numpy.py")
        twin = {beside: _filled(f"reference/{kind}.py", words)} if kind in REFERENCED else {}
        _write({file: _single(component, words), **twin})
        setting = f"{path}={words['value']}"
        setting = f'"{setting}"' if " " in setting else setting
        check = f"plugin check {shown}{f' --reference {in_shell(beside)}' if twin else ''}"
        return NewPlugin((file, *twin), _advice(check, f"run reverse {setting} --plugin {shown}", words["question"]))
    folder = out or Path(name)
    files = {
        folder / "pyproject.toml": _filled("package/pyproject.toml", words),
        folder / words["module"] / "__init__.py": _filled("package/__init__.py", words),
        folder / words["module"] / f"{words['module']}.py": component,
        folder / "tests" / f"test_{words['module']}.py": _filled("package/test.py", words),
        folder / "recipe.yaml": _filled("package/alone.yaml" if kind in ALONE else "package/recipe.yaml", words),
        folder / "README.md": _filled("package/README.md", words),
    }
    if kind in REFERENCED:
        files[folder / "tests" / f"{words['module']}_numpy.py"] = _filled(f"reference/{kind}.py", words)
    _write(files)
    run = f"run {in_shell(folder / 'recipe.yaml')}{words['options']}"
    advice = _advice(f"plugin check {words['module']}", run, words["question"])
    return NewPlugin(tuple(files), f'pip install -e "{folder}[test]"\n{advice}')


def _refuse_name(name: str, module: str, taken: Mapping[str, str]) -> None:
    """Raises UserError for a name that no package can have, or that something else has."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
        text = _("'{name}' cannot be a plugin's name: small letters, digits, - and _, a letter first")
        raise UserError(text.format(name=name))
    another = _("choose another name, such as my-{name}").format(name=name)
    if keyword.iskeyword(module):
        text = _("'{name}' is a word of Python, and cannot be a module's name; {another}")
        raise UserError(text.format(name=name, another=another))
    if module in taken:
        text = _("'{module}' is there already, {taken}: the two would clash; {another}")
        raise UserError(text.format(module=module, taken=taken[module], another=another))
    if importlib.util.find_spec(module) is not None:
        text = _("'{module}' is a package of this Python, which yours would hide; {another}")
        raise UserError(text.format(module=module, another=another))


def _advice(check: str, run: str, question: str) -> str:
    width = max(len(check), len(run)) + 13
    asked = {check: _("is it right?"), run: _(question)}
    return "\n".join(f"{f'paddle-tfm {command}':<{width}}# {each}" for command, each in asked.items())


def _filled(template: str, words: dict[str, str]) -> str:
    return Template((TEMPLATES / f"{template}.in").read_text(encoding="utf-8")).substitute(words)


def _single(component: str, words: dict[str, str]) -> str:
    """The component and its hook in one file; the import of the marker stands with the others."""
    whole = _filled("package/single.py", {**words, "component": component})
    return whole.replace("from paddle_tfm.", "from paddle_tfm import hookimpl\nfrom paddle_tfm.", 1)


def _write(files: dict[Path, str]) -> None:
    for path in files:
        if path.exists():
            raise UserError(_("{path} is there already; choose another name, or --out").format(path=path))
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@click.command(name="new")
@click.argument("name")
@click.option("--kind", type=click.Choice(list(WHAT)), default="norm", show_default=True, help="What it is.")
@click.option("--single-file", is_flag=True, help="One file for `--plugin` instead of a package.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Where. Default: NAME in this directory.")
def new(name: str, kind: str, single_file: bool, out: Path | None) -> None:
    """Write a plugin that works as it is, for you to change: an installable package with the class, a test that runs
    the conformance kit, a recipe that compares it with the reference, and a README; or, with --single-file, one file.
    Listeners, sections and kernels are always one file.

    \b
    Examples:
      paddle-tfm plugin new my-norm --kind norm
      paddle-tfm plugin new my-encoding --kind position --single-file
      paddle-tfm plugin new my-log --kind listener
    """
    registry = create_registry()
    taken = dict.fromkeys(registry.plugins.providers, _("a plugin"))
    text = _("{kind} of plugin '{plugin}'")
    taken |= {each.name: text.format(kind=kind, plugin=each.provider.plugin) for each in registry if each.kind == kind}
    new_plugin = write(name, kind, single_file, out, taken)
    for path in new_plugin.files:
        echo(_("wrote {path}").format(path=path))
    echo("\n" + new_plugin.advice)
