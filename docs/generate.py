"""Writes the pages that are lists of what there is: docs/gallery.md from docstrings, docs/recipes.md from recipes,
docs/cli.md from the command line's own help, docs/findings.md from committed results: `python docs/generate.py`. A test
compares."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from paddle_tfm.language import _, translate_click

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

# Headings, where the kind's own name is none.
TITLES = {
    "norm": "Norms",
    "placement": "Placements of the norm",
    "position": "Positional encodings",
    "feed_forward": "Feed-forward",
    "head": "Output heads",
    "search": "Searches",
    "schedule": "Learning-rate schedules",
}
PICTURES = {
    "attention": ("masks.svg", "Which keys (columns) a query (row) attends to"),
    "position": ("positions.svg", "What three encodings do, by position or distance (`alibi`: a line a head)"),
    "schedule": ("schedules.svg", "The learning rate over 1,000 steps, warm-up 200, as a share of the peak"),
}

# -------------------------------------------------------------------------------------------------------------- gallery


def gallery() -> str:
    """Every component that a recipe may name: name, one line, paper."""
    from paddle_tfm.hookspecs import KINDS
    from paddle_tfm.recipe.sites import place

    titles = {kind: _(title_of(kind)) for kind in KINDS if kind != "kernel"}  # which no recipe names
    shipped = [entry for entry in shipped_components() if entry.kind in titles and not entry.wrong_on_purpose]
    lines = [
        "<!-- written by `python docs/generate.py`: change a docstring, not this page -->",
        f"# {_('Gallery')}",
        "",
        _(
            "The {number} components that ship, by kind. A recipe names them (`model.norm: rms`), `paddle-tfm ls "
            "components` lists them with those of your\nown plugins, and each name below leads to its file: one class, "
            "with its formula, shapes and options."
        ).format(number=len(shipped)),
        "",
        " · ".join(f"[{title}](#{_anchor(title)})" for title in titles.values()),
    ]
    for kind, title in titles.items():
        lines += ["", f"## {title}", "", f"`{place(kind)}`: {_(kind_sentence(kind))}", ""]
        lines += _table([entry for entry in shipped if entry.kind == kind])
        if kind in PICTURES:
            file, caption = PICTURES[kind]
            lines += ["", f"![{_(caption)}](pictures/{file})", "", _(caption)]
    return "\n".join(lines) + "\n"


def shipped_components() -> list:
    """The entries of all components that ship."""
    from paddle_tfm import create_registry

    return [entry for entry in create_registry() if entry.provider.source == "paddle-tfm"]


def title_of(kind: str) -> str:
    """The heading of a kind."""
    return TITLES.get(kind, f"{kind.capitalize()}s")


def kind_sentence(kind: str) -> str:
    """The kind's own sentence, from the hook that registers it."""
    from paddle_tfm import hookspecs

    text = " ".join(getattr(hookspecs, hookspecs.KINDS[kind]).__doc__.split("\n\n")[0].split())
    sentence = re.sub(r" Subclass `.*`\.$", "", text).removesuffix(".").removeprefix(f"{kind.capitalize()}: ")
    return sentence[0].lower() + sentence[1:] + "."


def _table(entries: list) -> list[str]:
    head = [_("name"), _("what it is"), _("paper")]
    cited = any(_citation(entry.summary())[1] for entry in entries)
    head = head if cited else head[:-1]
    rows = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for entry in entries:
        what, paper = _citation(_(entry.summary()))
        module = entry.target.partition(":")[0]
        link = f"[`{entry.name}`](../{module.replace('paddle_tfm_plugins', 'plugins').replace('.', '/')}.py)"
        cells = [link, what, *([paper] if cited else [])]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def _citation(summary: str) -> tuple[str, str]:
    """(what it is, its paper as a link) of a docstring's first paragraph."""
    number = r"arXiv:(\d{4}\.\d{4,5})"
    paper = ""
    if match := re.search(rf" ?\(([^()]*{number}[^()]*)\)", summary) or re.search(rf",? ({number})(?=\.?$)", summary):
        paper = re.sub(number, r"[arXiv:\1](https://arxiv.org/abs/\1)", match[1])
        summary = summary[: match.start()] + summary[match.end() :]
    summary = re.sub(number, r"[arXiv:\1](https://arxiv.org/abs/\1)", summary)
    for plain, escaped in (("|", "\\|"), ("<", "&lt;"), ("*", "\\*")):
        summary = summary.replace(plain, escaped)
    return summary[0].upper() + summary[1:], paper


def _anchor(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


# -------------------------------------------------------------------------------------------------------------- recipes


def recipes() -> str:
    """Every recipe that ships: what it does, how long it takes, what it compares."""
    from paddle_tfm import load_recipe
    from paddle_tfm.recipe.reading import shipped

    lines = [
        "<!-- written by `python docs/generate.py`: change a recipe, not this page -->",
        f"# {_('Recipes')}",
        "",
        _(
            "What ships ready to run: `paddle-tfm run NAME`. `paddle-tfm show NAME` prints one whole, `paddle-tfm cp "
            "NAME mine.yaml` makes it yours.\n[What they reach](results.md)."
        ),
        "",
        f"| {_('recipe')} | {_('what it does')} | {_('variants')} | {_('takes')} |",
        "|---|---|---|---|",
    ]
    for name, file in sorted(shipped().items()):
        recipe = load_recipe(name)
        variants = [variant for variant in recipe.written_variants() if variant != "default"]
        link = f"[`{name}`](../recipes/{file.relative_to(HERE.parent / 'recipes').as_posix()})"
        named = _(", ").join(f"`{variant}`" for variant in variants) or _("one")
        lines.append(f"| {link} | {_(recipe.data['summary'])} | {named} | {_(recipe.data['duration'])} |")
    return "\n".join(lines) + "\n"


# -------------------------------------------------------------------------------------------------------- command line


def cli() -> str:
    """Every verb with its help."""
    from paddle_tfm.cli import VERBS, group

    lines = [
        "<!-- written by `python docs/generate.py`: change the command's docstring, not this page -->",
        f"# {_('The command line')}",
        "",
        _(
            "`paddle-tfm VERB --help` says the same. `[a.b=value]…` are overrides: hyper-parameters of a recipe, such "
            "as `model.norm=rms`."
        ),
        "",
        f"| {_('verb')} | |",
        "|---|---|",
        *(f"| [`{verb}`](#{verb}) | {_(line)} |" for verb, line in VERBS.items()),
    ]
    for verb in VERBS:
        for path, command in _commands((verb,), group.get_command(None, verb)):
            lines += ["", f"{'#' * (len(path) + 1)} {' '.join(path)}", "", *_help(path, command)]
    return "\n".join(lines) + "\n"


def _commands(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group) and path != ("run",):  # whose subcommands are the recipes
        for name in command.list_commands(None):
            yield from _commands((*path, name), command.get_command(None, name))


def _help(path: tuple[str, ...], command: click.Command) -> Iterator[str]:
    from paddle_tfm.cli.run import recipe_command
    from paddle_tfm.cli.translated import translated

    context = click.Context(command, info_name=" ".join(path))
    yield "```"
    yield " ".join(["paddle-tfm", *path, *(piece for piece in command.collect_usage_pieces(context) if piece)])
    yield "```"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield ""
        if not paragraph.startswith("\b"):
            yield " ".join(paragraph.split()).replace("<", "&lt;")
            continue
        heading, *rows = paragraph.removeprefix("\b\n").splitlines()
        yield from (heading, "", "```", *(row.removeprefix("  ") for row in rows), "```")
    options = translated(recipe_command("base")) if path == ("run",) else command
    context = click.Context(options, info_name="run")
    records = [each.get_help_record(context) for each in options.params if isinstance(each, click.Option)]
    records = [record for record in records if record and "--help" not in record[0]]
    if records:
        yield from ("", f"| {_('option')} | |", "|---|---|")
        for left, right in records:
            yield f"| `{_cell(left)}` | {_cell(re.sub('(?<=[。）”])  ', '', right)).replace('<', '&lt;')} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# ---------------------------------------------------------------------------------------------------------------- files


def pages() -> dict[Path, str]:
    """File → text, of all that is generated."""
    import findings_pages

    translate_click()
    before, written = os.environ.get("LANGUAGE"), {}
    try:
        for language, ending in (("en", ".md"), ("zh", ".zh-CN.md")):
            os.environ["LANGUAGE"] = language
            for make in (gallery, recipes, cli):
                written[HERE / f"{make.__name__}{ending}"] = make()
    finally:
        os.environ["LANGUAGE"] = before or ""
    return {**written, **findings_pages.pages()}


if __name__ == "__main__":
    for file, text in pages().items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        click.echo(f"wrote {file.relative_to(HERE.parent)}")
