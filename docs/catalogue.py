"""Collects what people are told, for translation: `python docs/catalogue.py` brings the catalogue in paddle_tfm/locale
up to date and compiles it. Whoever changes a text runs it, and fills in what it names as untranslated.

Collected are `_("…")` and `counted(n, "…")` of engine, plugins and docs/generate.py, headings of tables and sections,
the conformance kit's checks, help texts, what recipes, kinds and components say of themselves.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path

import click
from babel.messages import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(Path(__file__).parent))
FOLDER = ROOT / "paddle_tfm/locale/zh/LC_MESSAGES"
# Functions whose first argument is a text
FIRST = ("_", "unknown", "Column", "column", "_column", "Obstacle", "Failed", "Note", "Skip")
TEXTS = ("heading", "summary", "expected_failures")  # names of texts, or of a dictionary of texts


def collected() -> dict[str, list[str]]:
    """Text → the files that say it."""
    found: dict[str, list[str]] = {}
    sources = [each for room in ("paddle_tfm", "plugins") for each in (ROOT / room).rglob("*.py")]
    for file in sorted([*sources, ROOT / "docs/generate.py"]):
        for text in in_source(file.read_text("utf-8")):
            found.setdefault(text, []).append(file.relative_to(ROOT).as_posix())
    for place, texts in (
        ("words", in_words()),
        ("help", in_help()),
        ("recipes", in_recipes()),
        ("plugins", in_components()),
    ):
        for text in texts:
            found.setdefault(text, []).append(place)
    return {text: list(dict.fromkeys(places)) for text, places in found.items() if text.strip()}


def in_source(source: str) -> Iterator[str]:
    """What a module says: literals, and constants of the module by their names."""
    tree = ast.parse(source)
    constants = {
        each.targets[0].id: each.value
        for each in tree.body
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", "")
            if name == "counted":
                yield from (f"{{}} {text}s" for text in _literals(node.args[1], {}))
            elif name == "Setting":
                yield from _literals(node.args[2], constants)
            elif name == "check":
                said = [each.value for each in node.keywords if each.arg in ("invariant", "consequence", "hint")]
                yield from (text for each in said for text in _literals(each, {}))
            elif name in FIRST and node.args:
                has_heading = name == "column" and len(node.args) > 1 and getattr(node.args[1], "value", "") is not None
                yield from _literals(node.args[has_heading], constants)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if getattr(target, "id", "") in TEXTS:
                yield from _literals(node.value, {})


def _literals(node: ast.expr, constants: dict[str, ast.expr]) -> Iterator[str]:
    """The texts that an argument may be."""
    if isinstance(node, ast.IfExp):
        yield from (text for each in (node.body, node.orelse) for text in _literals(each, constants))
    elif isinstance(node, ast.Name) and node.id in constants:
        yield from _literals(constants[node.id], {})
    elif isinstance(node, ast.Subscript):
        yield from _literals(node.value, constants)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):  # `TEXTS.get(key)`
        yield from _literals(node.func.value, constants)
    elif isinstance(node, (ast.Dict, ast.Tuple)):
        parts = node.values if isinstance(node, ast.Dict) else node.elts
        yield from (text for each in parts for text in _literals(each, {}))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def in_help() -> Iterator[str]:
    """Help texts of all commands and options, pieces of them as they are translated."""
    from paddle_tfm.cli import VERBS, group
    from paddle_tfm.cli.run import recipe_command
    from paddle_tfm.cli.translated import texts

    yield from VERBS.values()
    for command in (group, *map(_command, VERBS), recipe_command("base")):
        for each in _with_subcommands(command):
            yield from (text for _, text in texts(each.help or "") if text)
            parameters = each.get_params(click.Context(each))
            yield from (" ".join(option.help.split()) for option in parameters if getattr(option, "help", None))


def _command(verb: str) -> click.Command:
    import importlib

    return importlib.import_module(f"paddle_tfm.cli.{verb}").command


def _with_subcommands(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        yield from command.commands.values()


YAML_REASONS = (  # what PyYAML says is wrong; "…" is what it found
    "mapping values are not allowed here",
    "mapping keys are not allowed here",
    "sequence entries are not allowed here",
    "could not find expected ':'",
    "found unexpected end of stream",
    "found character … that cannot start any token",
    "found unknown escape character …",
    "found undefined alias …",
    "expected <block end>, but found …",
    "expected the node content, but found …",
    "expected ',' or ']', but got …",
    "expected ',' or '}', but got …",
    "could not determine a constructor for the tag …",
)


def in_words() -> Iterator[str]:
    """Words that stand in variables where they are said."""
    from paddle_tfm.caveats import CUT, REPEATED
    from paddle_tfm.cli.plugin.new import NO_RECIPE
    from paddle_tfm.cli.plugin.report import COLOURS, PARTS
    from paddle_tfm.comparison.claims.judge import VERDICTS
    from paddle_tfm.comparison.gaps import LAST_BITS
    from paddle_tfm.comparison.report.section_input import NUMBERS
    from paddle_tfm.comparison.runs.curves import AXES
    from paddle_tfm.errors import CutShort
    from paddle_tfm.options import TYPES
    from paddle_tfm.recipe.yaml_lines import COMMAND_LINE
    from paddle_tfm.sweep.standing import STATES
    from paddle_tfm.testing.causes import CAUSES, ERRORS
    from paddle_tfm.testing.other_options import OPTIONS
    from paddle_tfm.testing.reference.compared import CONSEQUENCE
    from paddle_tfm.train.ranks.group import RankLost

    yield from (*(number.capitalize() for number in NUMBERS), *AXES, *AXES.values(), *VERDICTS, *STATES)
    yield from (*(words for _share, words in REPEATED.values()), *(remedy for *_cut, remedy in CUT.values()))
    yield from (text for section in LAST_BITS.values() for text in section.values())
    yield from (*COLOURS, *PARTS, *(cause.sentence for cause in CAUSES), *ERRORS.values())
    yield from (*YAML_REASONS, *TYPES.values(), *(OPTIONS[part] for part in PARTS), CONSEQUENCE)
    yield from ("is it better?", "does it train them?", *(question for _verb, question in NO_RECIPE.values()))
    yield from ("train", "training", "valid", "validation", "test", CutShort.how, RankLost.how, COMMAND_LINE)


def in_recipes() -> Iterator[str]:
    """What each is for, and how long it takes."""
    from paddle_tfm import load_recipe
    from paddle_tfm.recipe.reading import shipped

    for name in sorted(shipped()):
        recipe = load_recipe(name).data
        yield from (recipe["summary"], recipe["duration"])


def in_components() -> Iterator[str]:
    """What kinds and components are."""
    import generate

    from paddle_tfm.hookspecs import KINDS

    for kind in KINDS:
        yield from (generate.title_of(kind), generate.kind_sentence(kind))
    yield from (entry.summary() for entry in generate.shipped_components())
    yield from (caption for _, caption in generate.PICTURES.values())


def updated(texts: dict[str, list[str]]) -> tuple[Catalog, list[str]]:
    """The catalogue with these texts alone, and what it says of texts that are no longer there."""
    old = read_catalogue("paddle_tfm")
    new = Catalog("zh", creation_date=_NEVER, revision_date=_NEVER, header_comment="", fuzzy=False)
    for text, places in texts.items():
        known = old.get(text)
        new.add(text, known.string if known else "", locations=[(place, None) for place in places])
    return new, [each.id for each in old if each.id and each.id not in texts]


_NEVER = datetime(2026, 1, 1, tzinfo=timezone.utc)  # catalogues of the same texts are the same


def read_catalogue(name: str) -> Catalog:
    """One of the catalogues, empty where there is none."""
    file = FOLDER / f"{name}.po"
    if not file.exists():
        return Catalog("zh")
    with file.open("rb") as stream:
        catalogue = read_po(stream, "zh")
    catalogue.creation_date = catalogue.revision_date = _NEVER
    return catalogue


def untranslated(catalogue: Iterable) -> list[str]:
    """The texts that nobody has translated."""
    return [each.id for each in catalogue if each.id and not each.string]


def main() -> None:
    new, gone = updated(collected())
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "paddle_tfm.po").open("wb") as stream:
        write_po(stream, new, width=0, include_lineno=False)
    for name in ("paddle_tfm", "click"):
        with (FOLDER / f"{name}.mo").open("wb") as stream:
            write_mo(stream, read_catalogue(name))
    for text in gone:
        print(f"gone: {text}")
    for text in (missing := untranslated(new)):
        print(f"untranslated: {text}")
    sys.exit(bool(missing))


if __name__ == "__main__":
    main()
