"""Sections of the report: a plugin's stands among the engine's, one that raises costs nothing else, and tables and
figures become files for a paper."""

from __future__ import annotations

import csv
import json
import re
import textwrap

import pytest

from paddle_tfm import create_registry
from paddle_tfm.comparison.report.report import Report
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.plugins import create_plugins
from paddle_tfm.protocols import section as page_of_the_kind
from paddle_tfm.registry import Registry
from paddle_tfm.testing.trials.comparison import trials

PLUGIN = """
from paddle_tfm import hookimpl, plotting
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Table, column

class Mine(Section):
    heading = "Mine & yours"
    place = 250

    def tables(self, facts):
        rows = [{"variant": row.variant, "size": row.parameters} for row in facts.comparison.rows]
        return {"mine": Table([column("variant"), column("size", right=True)], rows, "Sizes")}

    def figures(self, facts):
        figure = plotting.new_figure((3, 2))
        figure.subplots().plot([1, 2], color=plotting.INK)
        return {"mine-too": figure}

    def text(self, facts):
        return ["mine says so"]

    def data(self, facts):
        return {"sizes": [row.parameters for row in facts.comparison.rows]}

class Broken(Section):
    heading = "Broken"

    def METHOD(self, facts):
        raise KeyError("no such thing")

class Slow(Section):
    heading = "Slow"
    slow = True

    def html(self, facts):
        return "<p>slow</p>"

@hookimpl
def register_sections():
    return {"mine": Mine, "broken": Broken, "slow": Slow}
"""
METHODS = ("applies", "figures", "data", "__init__")


def registry(folder, broken="html", engine=()):
    """With the plugin's sections, of which the method `broken` raises, and those of the engine that are named."""
    file = folder / "sections_of_mine.py"
    file.write_text(textwrap.dedent(PLUGIN).replace("METHOD", broken), "utf-8")
    text = file.read_text("utf-8")
    if broken == "__init__":
        file.write_text(text.replace("def __init__(self, facts)", "def __init__(self)"), "utf-8")
    registry = Registry(create_plugins([file]))
    for name in {*registry.names("section")} - {"mine", "broken", "slow", *engine}:
        del registry.tables["section"][name]
    return registry


@pytest.fixture(scope="module")
def trial():
    with trials(create_registry()) as all_trials:
        yield all_trials[0]


def headings(html):
    return re.findall("<h2>(.*?)</h2>", html)


def test_a_plugins_section_stands_where_it_says_in_the_page_the_terminal_and_the_json(trial, tmp_path):
    said = []
    report = Report(trial.facts.comparison, registry(tmp_path, engine=["compared", "curves"]), said.append, files=True)
    paths = report.write()
    html = paths["page"].read_text("utf-8")
    names = headings(html)
    assert names.index("What was compared") + 1 == names.index("Mine &amp; yours") == names.index("Learning curves") - 1
    assert "Slow" not in names and 'href="comparison/mine-too.pdf"' in html
    assert report.lines() == ["“<b>&”", "mine says so"], "what the recipe says of itself, and the plugin"
    sizes = [row.parameters for row in trial.facts.comparison.rows]
    assert json.loads(paths["json"].read_text("utf-8"))["sections"]["mine"] == {"sizes": sizes}
    folder = paths["page"].parent / "comparison"
    rows = list(csv.reader((folder / "mine.csv").read_text("utf-8").splitlines()))
    assert rows == [["variant", "size"], *([row.variant, str(row.parameters)] for row in trial.facts.comparison.rows)]
    assert (folder / "mine-too.pdf").read_bytes().startswith(b"%PDF")
    assert b"<svg" in (folder / "mine-too.svg").read_bytes()
    assert "#24292f" not in html, "a matplotlib figure on the page has the page's ink"


@pytest.mark.parametrize("method", METHODS)
def test_one_that_raises_is_reported_once_and_nothing_else_is_lost(method, trial, tmp_path):
    said = []
    report = Report(
        trial.facts.comparison, registry(tmp_path, method), said.append, files=method in ("tables", "figures")
    )
    names = [part.heading for part in report.parts]
    assert len(said) == 1 and "broken" in said[0] and "no such thing" in said[0]
    assert names == ["Mine & yours"]


def test_what_takes_long_is_written_on_request_only(trial, tmp_path):
    parts = Report(trial.facts.comparison, registry(tmp_path, "other"), pytest.fail, slow=True).parts
    assert "Slow" in [part.heading for part in parts]


@pytest.mark.reliability
def test_two_sections_do_not_write_one_file(trial, tmp_path):
    mine = registry(tmp_path, "other")
    mine.tables["section"]["again_mine"] = mine.entry("section", "mine")
    said = []
    parts = Report(trial.facts.comparison, mine, said.append, files=True).parts
    assert len(said) == 1 and "another section writes mine" in said[0]
    assert [part.name for part in parts if "mine.csv" in part.files] == ["again_mine"]


def test_what_a_section_asks_for_again_is_computed_once_for_each_comparison(trial):
    asked = []

    def variants(facts):
        asked.append(facts)
        return list(facts.groups)

    again = Facts(trial.facts.comparison, trial.facts.registry)
    for facts in (trial.facts, again, trial.facts, again):
        assert facts.once(variants) == list(facts.groups)
    assert asked == [trial.facts, again]


def test_the_engines_facts_have_what_the_contract_says():
    with trials(create_registry()) as (trial, *_):
        assert set(page_of_the_kind.Facts.__annotations__) <= set(vars(trial.facts))
    assert Facts.__doc__
