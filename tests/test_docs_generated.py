"""What `python docs/generate.py` writes is what stands in docs/: the gallery, the command line; the
glossary's places and the decisions' index are true."""

import importlib.util
import re
from pathlib import Path

import pytest

from paddle_tfm import create_registry, protocols
from paddle_tfm.cli import VERBS, group

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def pages():
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs/generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    return {file.name: (file, text) for file, text in generate.pages().items()}


def test_the_generated_pages_are_up_to_date(pages):
    stale = [name for name, (file, text) in pages.items() if file.read_text("utf-8") != text]
    assert stale == [], "run `python docs/generate.py`"


def test_the_gallery_shows_once_every_component_that_a_recipe_may_name(pages):
    text = pages["gallery.md"][1]
    sections = {section.splitlines()[2].split("`")[1]: section for section in text.split("\n## ")[1:]}
    shipped = [entry for entry in create_registry() if entry.provider.source == "paddle-tfm" and entry.kind != "kernel"]
    assert len(shipped) > 100
    for entry in shipped:
        place = next(text for key, text in sections.items() if key.endswith(_key(entry.kind)))
        assert place.count(f"[`{entry.name}`](") == (not entry.wrong_on_purpose), entry.name
    for file in re.findall(r"\]\(\.\./(plugins/[^)]+)\)", text):
        assert (ROOT / file).is_file(), file


def _key(kind):
    return {"metric": "metrics", "section": "report"}.get(kind, kind)


def test_every_verb_and_every_option_of_it_stands_in_the_page(pages):
    text = pages["cli.md"][1]
    for verb in VERBS:
        section = text.split(f"\n## {verb}\n")[1].split("\n## ")[0]
        command = group.get_command(None, verb)
        commands = [command, *(getattr(command, "commands", {}).values())]
        shown = [one for each in commands for one in each.params if not getattr(one, "hidden", False)]
        for option in {name for one in shown for name in one.opts}:
            assert not option.startswith("--") or option in section, (verb, option)


def test_the_glossary_says_in_both_languages_what_is_where_it_says():
    rows = re.findall(
        r"^\| (.+?) \| (.+?) \| (.+?) \| `(.+?)` \|$", (ROOT / "docs/glossary.md").read_text("utf-8"), re.M
    )
    assert 50 < len(rows) <= 70
    for term, chinese, meaning, where in rows:
        assert re.search("[\u4e00-\u9fff]", chinese), term
        assert meaning, term
        exists = (
            where.removeprefix("protocols.") in protocols.__all__ if "protocols." in where else (ROOT / where).exists()
        )
        assert exists, f"{term}: {where} does not exist"


def test_the_index_of_the_decisions_lists_each_by_its_title():
    folder = ROOT / "docs/decisions"
    index = dict(re.findall(r"^- \[(.+?)\]\(([\w.-]+)\)", (folder / "README.md").read_text("utf-8"), re.M))
    assert {file: title for title, file in index.items()} == {
        file.name: file.read_text("utf-8").splitlines()[0].removeprefix("# ")
        for file in folder.glob("*.md")
        if file.name != "README.md"
    }
