"""Sections of the report: a plugin's stands among the engine's, one that raises costs nothing else, and tables and
figures become files for a paper."""

from __future__ import annotations

import csv
import json
import re
import textwrap

import pytest

from paddle_tfm import create_registry, latex
from paddle_tfm.comparison.report.report import Report
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.plugins import create_plugins
from paddle_tfm.protocols import section as page_of_the_kind
from paddle_tfm.registry import Registry
from paddle_tfm.tabular import Table, column
from paddle_tfm.testing.trial_comparison import HOSTILE, trials

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
TABLES = ["results", "compared", "runs"]
METHODS = ("applies", "tables", "figures", "html", "text", "data", "__init__")


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


# --------------------------------------------------------------------------------------------------------------- LaTeX

# The other way round, as LaTeX reads it: a command or a character → what it prints.
PRINTS = {
    r"\textbackslash{}": "\\", r"\textasciicircum{}": "^", r"\textasciitilde{}": "~", r"\textless{}": "<", r"\textgreater{}": ">",
    r"\textbar{}": "|", r"\textquotedbl{}": '"', r"\textquotesingle{}": "'", r"\textasciigrave{}": "`", r"\ldots{}": "…",
    r"$\pm$": "±", r"$-$": "−", r"$\times$": "×", r"$\approx$": "≈", r"$\uparrow$": "↑", r"$\downarrow$": "↓",
    r"\{": "{", r"\}": "}", r"\$": "$", r"\&": "&", r"\%": "%", r"\#": "#", r"\_": "_",
}  # fmt: skip


def printed(text):
    """What LaTeX prints for a cell; a special character that is left over is an error."""
    text = re.sub(r"\\parbox\[t\]\{\d+em\}\{\\raggedright (.*)\\strut\}", r"\1", text).replace(r"\allowbreak{}", "")
    pattern = "|".join(map(re.escape, sorted(PRINTS, key=len, reverse=True)))
    left = re.sub(pattern, "", text)
    assert not re.search(r"[\\{}$&%#_^~<>|\"]", left), left
    return re.sub(pattern, lambda match: PRINTS[match[0]], text)


@pytest.mark.parametrize(
    "text", ["a_b & 50%", r"\frac{1}{2}", "$x^2$ #1 ~", "<b>|\"'`", "55% ± 7", "−0.3 ↑ …", HOSTILE]
)
def test_latex_prints_every_character(text):
    assert printed(latex.escape(text)) == " ".join(text.split())


def test_a_table_as_latex_has_a_line_a_row_and_its_columns_aligned():
    rows = [{"variant": "a_b & 50%", "score": 0.5}, {"variant": "旋转", "score": None}]
    text = Table([column("variant"), column("score", right=True)], rows, "Scores & more").latex("scores")
    lines = text.splitlines()
    assert lines[0].startswith("% needs \\usepackage{booktabs}") and latex.OTHER_SCRIPT in text
    assert r"\caption{Scores \& more}" in lines and r"\label{tab:scores}" in lines
    assert r"\begin{tabular}{lr}" in lines
    inner = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    assert inner == [r"a\_b \& 50\% & 0.5 \\", r"旋转 &  \\"]
    assert lines.count(r"\begin{table}") == lines.count(r"\end{table}") == 1


def test_every_table_of_the_report_is_latex_and_csv(trial, tmp_path):
    report = Report(trial.facts.comparison, registry(tmp_path, "other", engine=TABLES), pytest.fail, files=True)
    files = {name: content for part in report.parts for name, content in part.files.items()}
    tables = {name.removesuffix(".tex") for name in files if name.endswith(".tex")}
    assert (
        {"scores", "seeds", "runs", "mine"} <= tables == {n.removesuffix(".csv") for n in files if n.endswith(".csv")}
    )
    for name in tables:
        inner = files[f"{name}.tex"].split("\\midrule\n")[1].split("\\bottomrule")[0]
        lines = [line.removesuffix(" \\\\") for line in inner.splitlines()]
        cells = [[printed(cell) for cell in re.split(r"(?<!\\)&", line)] for line in lines]
        records = list(csv.reader(files[f"{name}.csv"].splitlines()))
        assert len(cells) == len(records) - 1, name
        assert len({len(row) for row in cells}) == 1
