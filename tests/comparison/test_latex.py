"""Tables for a paper: LaTeX takes them as they are, they fit its page, and what they cite has authors and a title."""

from __future__ import annotations

import re
import shutil
import subprocess
import unicodedata
from pathlib import Path

import pytest
from test_report import series, table

from paddle_tfm import create_registry, latex
from paddle_tfm.comparison.columns import method
from paddle_tfm.comparison.report import paper
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.component_source import papers
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Table, column
from paddle_tfm.testing.trials.comparison import trials

needs_latex = pytest.mark.skipif(
    shutil.which("pdflatex") is None,
    reason="pdflatex is not installed (Debian, Ubuntu: apt install texlive-latex-base texlive-latex-recommended "
    "texlive-fonts-recommended); what LaTeX would say of characters and widths is checked without it too",
)
DOCUMENT = r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{booktabs}\begin{document}%s\end{document}"


@pytest.fixture(scope="module")
def registry():
    return create_registry()


def tables_of(facts, registry):
    """Name → what the report writes for a paper."""
    plans = (registry.resolve("section", name, name) for name in registry.names("section"))
    sections = [plan.cls() for plan in plans if not plan.cls.slow and plan.cls().applies(facts)]
    tables = {name: table for section in sections for name, table in section.tables(facts).items()}
    return {name: table.latex(name, paper.caption(facts, table)) for name, table in tables.items()}


def without_chinese(text):
    return text.replace("旋", "x").replace("转", "x").replace(latex.OTHER_SCRIPT + "\n", "")


def compiled(folder: Path, texts) -> str:
    """What pdflatex says of a paper with these tables."""
    texts = list(texts)
    for number, text in enumerate(texts):
        (folder / f"table{number}.tex").write_text(text, "utf-8")
    body = "".join(rf"\input{{table{number}}}\clearpage" for number in range(len(texts)))
    (folder / "paper.tex").write_text(DOCUMENT % body, "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-draftmode", "paper.tex"]
    subprocess.run(command, cwd=folder, capture_output=True, timeout=120)
    return (folder / "paper.log").read_text("utf-8", errors="replace")


def complaints(log: str) -> list[str]:
    return re.findall(r"^(?:!|Overfull|.*too large for page|.*Undefined control).*", log, re.MULTILINE)


@needs_latex
def test_pdflatex_takes_the_tables_of_a_report_and_each_fits_a_page(registry, tmp_path):
    with trials(registry) as comparisons:
        texts = [text for trial in comparisons for text in tables_of(trial.facts, registry).values()]
    assert len(texts) > 20
    assert complaints(compiled(tmp_path, map(without_chinese, texts))) == []


@needs_latex
def test_pdflatex_takes_any_signs_and_long_names(tmp_path):
    texts = [
        *"²₂½±≈≤·‖",
        "\\ $x_1^{ & 50% #1 ~\"'`<|>",
        "W" * 60,
        "WMQ" * 9,
        "a_long/path=with,many.words@and:so-on " * 3,
    ]
    texts += ["naïve Çağlar Łukasz Jürgen", "α μ Ω", "10⁻⁸"]
    columns = [column("name"), *(column(f"c{i}", f"a heading of {i}", right=True) for i in range(20))]
    rows = [
        {"name": texts[i % len(texts)], **{f"c{j}": f"{i}.{j}% ± 0.25" for j in range(20)}} for i in range(len(texts))
    ]
    one, other = Table(columns, rows, "α & β"), Table(columns[:2], rows, "two columns")
    assert (
        complaints(compiled(tmp_path, [one.latex("one"), other.latex("other"), Table(columns, []).latex("none")])) == []
    )


@needs_latex
def test_letters_that_pdflatex_does_not_know_are_said_in_a_sentence(tmp_path):
    rows = [{"variant": "旋转位置"}]
    log = compiled(tmp_path, [Table([column("variant")], rows, "t").latex("t")])
    assert "! This table has letters that pdfLaTeX does not know, as of Chinese" in log
    assert "xelatex or lualatex" in re.sub(r"\s+", " ", log)


def test_every_character_of_a_report_is_a_latex_command(registry):
    with trials(registry) as comparisons:
        for trial in comparisons:
            for name, text in tables_of(trial.facts, registry).items():
                plain = without_chinese(text)  # of the hostile name
                assert plain.isascii(), (trial.what, name, sorted(set(re.findall(r"[^\x00-\x7f]", plain))))
                assert ("letters that pdfLaTeX does not know" in text) == ("旋" in text), (trial.what, name)


def test_characters_are_what_unicode_calls_them():
    accents = {
        "GRAVE": "`",
        "ACUTE": "'",
        "CIRCUMFLEX": "^",
        "TILDE": "~",
        "DIAERESIS": '"',
        "CARON": "v",
        "CEDILLA": "c",
    }
    for code in range(0xC0, 0x17F):
        name = unicodedata.name(chr(code))
        if match := re.fullmatch(r"LATIN (SMALL|CAPITAL) LETTER ([A-Z]) WITH (\w+)", name):
            letter = match[2] if match[1] == "CAPITAL" else match[2].lower()
            if match[3] in accents:
                assert latex.escape(chr(code)) == rf"{{\{accents[match[3]]}{{{letter}}}}}"
    assert (
        latex.escape("x² → 10⁻⁸, λ₂ ≈ Σ\x1b")
        == r"x$^{2}$ $\rightarrow$ 10$^{-}$$^{8}$, $\lambda$$_{2}$ $\approx$ $\Sigma$?"
    )
    assert latex.escape("旋") == "旋" and latex.is_other_script("旋") and not latex.is_other_script("é Ł μ")


def test_no_row_of_a_table_is_wider_than_the_page():
    columns = [column("name"), *(column(f"c{i}", f"{'word ' * i}heading") for i in range(15))]
    rows = [{"name": "x" * 30, **{f"c{i}": "0.25 ± 0.125" for i in range(15)}}]
    text = Table(columns, rows, "t").latex("t")
    panels = re.findall(r"\\begin\{tabular\}\{l+\}\n\\toprule\n(.*)\n\\midrule", text)
    assert [panel.count("&") for panel in panels] == [3, 3, 3, 3, 3]  # 28 + 3 · 14 letters, and not 84
    assert [panel.startswith("name &") for panel in panels] == [True] * 5
    assert text.count(r"\caption") == 1 and text.count(r"\begin{table}") == text.count(r"\end{table}") == 1


def test_a_caption_says_what_was_compared_and_what_signs_mean(tmp_path, registry):
    for name, values in (("base", (0.5, 0.6, 0.55)), ("rms", (0.6, 0.7, 0.65))):
        series(tmp_path, name, values)
    facts = Facts(table(tmp_path, baseline="base"), registry)
    text = tables_of(facts, registry)["scores"]
    (caption,) = re.findall(r"\\caption\{(.*)\}", text)
    for wanted in (
        "Two variants of dates",
        "3 seeds",
        "1,500 steps",
        "exact match",
        r"standard deviation over seeds",
        r"95\% interval",
    ):
        assert wanted in caption, wanted


class Noted(Section):
    """the price."""

    heading = "Sizes"

    def notes(self, facts):
        return ["Bars are ranges."]


def test_a_caption_explains_the_signs_that_its_table_has_and_its_title_does_not(tmp_path, registry):
    for folder, names in (("two", ("base", "rms")), ("one", ("base",))):
        for name in names:
            series(tmp_path / folder, name, (0.5, 0.6, 0.55))
    two, one = (Facts(table(tmp_path / folder, baseline="base"), registry) for folder in ("two", "one"))
    of_scores, of_intervals = "Mean ± standard deviation over seeds.", method(two.comparison).replace("'", "’")

    def caption(facts, title, **cells):
        return paper.caption(facts, Table([*map(column, cells)], [cells], title))

    signs = {"score": "0.5 ± 0.1", "95% interval": "−1 to +1"}
    assert caption(two, "It's all.", **signs) == f"It’s all. {two.sentence()} {of_scores} {of_intervals}"
    assert (
        caption(two, "Mean ± half of its 95% interval", **signs) == f"Mean ± half of its 95% interval. {two.sentence()}"
    )
    assert caption(two, "", score="0.5") == two.sentence()
    assert caption(one, "All", **signs) == f"All. {one.sentence()} {of_scores}"
    assert paper.figure_caption(two, Noted()) == f"Sizes. {two.sentence()} Bars are ranges."


def test_every_paper_that_a_component_cites_has_authors_and_a_title(registry):
    cited = {number for entry in registry for number in papers(entry.docstring())}
    known = paper.known_papers()
    assert len(cited) > 90 and cited <= known.keys(), sorted(cited - known.keys())
    assert known.keys() <= cited, sorted(known.keys() - cited)  # what nobody cites is no longer needed
    assert all(title.strip() and authors.strip() for title, authors in known.values())
    assert known["1706.03762"][0] == "Attention Is All You Need"


@needs_latex
def test_bibtex_and_latex_take_every_entry(tmp_path):
    entries = [paper._arxiv(number, ["norm rms"]) for number in [*paper.known_papers(), "9901.00001"]]
    (tmp_path / "all.bib").write_text("\n".join([*entries, paper.PADDLE, paper.SACREBLEU]), "utf-8")
    body = r"\nocite{*}\bibliographystyle{plain}\bibliography{all}"
    (tmp_path / "paper.tex").write_text(DOCUMENT % body, "utf-8")
    latex_once = ["pdflatex", "-interaction=nonstopmode", "paper.tex"]
    for command in (latex_once, ["bibtex", "paper"], latex_once):
        subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120)
    said = (tmp_path / "paper.blg").read_text("utf-8")
    warnings = [line for line in said.splitlines() if line.startswith("Warning") and "9901.00001" not in line]
    assert "error message" not in said and warnings == []
    assert re.findall("^!.*", (tmp_path / "paper.log").read_text("utf-8", errors="replace"), re.MULTILINE) == []
    bibliography = (tmp_path / "paper.bbl").read_text("utf-8")
    assert bibliography.count(r"\bibitem") == len(entries) + 2 and r"Jo{\~{a}}o Loula, Marco Baroni" in bibliography
    assert "arXiv:1807.07545, 2018" in bibliography


def test_an_entry_has_authors_title_and_year():
    entry = paper._arxiv("1706.03762", ["attention multihead"])
    assert "title = {{Attention Is All You Need}}" in entry and "year = {2017}" in entry
    assert r"author = {Ashish Vaswani and Noam Shazeer and" in entry and r"\L{}ukasz Kaiser" in entry
    assert "author = {{DeepSeek-AI}}" in paper._arxiv("2412.19437", [])
    assert paper._arxiv("2105.13290", []).count(" and others}") == 1
    unknown = paper._arxiv("9901.00001", ["norm mine"])
    assert "author" not in unknown and "title" not in unknown and "9901.00001" in unknown
    for number in paper.known_papers():
        assert paper._arxiv(number, ["norm rms"]).isascii(), number
