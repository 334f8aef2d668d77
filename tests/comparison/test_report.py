"""The report of a comparison: what it says, that it is sound HTML and JSON, and what the figure shows."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from finished_runs import finished, predicted

from paddle_tfm import create_registry
from paddle_tfm.comparison import columns
from paddle_tfm.comparison.report.outputs import samples, side_by_side, similarity
from paddle_tfm.comparison.report.report import Report
from paddle_tfm.comparison.runs.curves import mean_points, read_curves
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.table import compare
from paddle_tfm.comparison.verdict import verdict
from paddle_tfm.pages.document import notes

EVIL = "<script>alert('&')</script> | \"x\" $\\frac$ _旋转位置*"
LOST = "the loss was no number at step 151 (nan)"
DIRECTIONS = {"exact_match": True, "bleu": True, "perplexity": False}
UNITS = {"exact_match": "%", "bleu": "points", "perplexity": ""}
VOID = {"meta", "img", "br", "link", "hr", "input"}


def finish(root, variant, seed, value, metric="exact_match", diverged=None, curve=(0.25, 0.5), predictions=(), **more):
    """A finished run's folder, written as `Trainer` writes it; `curve` at steps 100, 200, …"""
    folder = root / hashlib.sha256(variant.encode()).hexdigest()[:12] / f"seed-{seed}"
    own = {
        "recipe": "dates", "steps": 1500, "parameters": 1234567, "seconds": 124.6, "tokens_per_second": 20408.9,
        "best_step": 1200, "diverged": diverged, "directions": DIRECTIONS, "units": UNITS,
    }  # fmt: skip
    finished(folder, variant, seed, {metric: value}, **(own | more))
    rows = [{"step": 100 * place, "evaluation": {metric: item}} for place, item in enumerate(curve, 1)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    if predictions:
        predicted(folder, predictions)
    return folder


def series(root, variant, values, **more):
    for seed, value in enumerate(values, 1):
        finish(root, variant, seed, value, **more)


def table(root, metric="exact_match", baseline=None, name="dates"):
    # Folders sort by a hash of the name, so a test names its baseline where it matters.
    return compare(collect([root]), name, root, metric, baseline)


def right(source="1 2", text="2 1"):
    return ("yes", source, text, text, "-0.5000")


def wrong(source, reference, hypothesis):
    return ("no", source, reference, hypothesis, "-1.2500")


def whole(comparison, files=False):
    """The report with all sections; one that fails ends the test."""
    return Report(comparison, create_registry(), pytest.fail, files=files)


def write(comparison):
    return whole(comparison).write()


def render(comparison):
    return whole(comparison).page()


class Page(HTMLParser):
    """Reads a page: complains of tags that do not balance; collects elements, attributes and texts."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.open, self.wrong, self.elements, self.texts = [], [], [], []
        self.feed(html)
        self.close()
        self.wrong += self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"/{tag}")

    def handle_data(self, data):
        if "style" not in self.open[-1:]:
            self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)

    def count(self, tag):
        return sum(element == tag for element, _ in self.elements)


@pytest.fixture
def evil(tmp_path):
    """Every text that a user gives is hostile."""
    rows = [right("<b>&amp;", "</dl>\u2028|"), wrong("<img src=x onerror=1>", "<i>ab</i>", "<i>ac</i>")]
    series(tmp_path, EVIL, [0.75, 0.5], predictions=rows, recipe="<recipe>")
    series(tmp_path, "plain", [0.25, 0.25], recipe="<recipe>")
    finish(tmp_path, "dead", 1, math.nan, diverged="<u>lost</u>", curve=(), recipe="<recipe>", test={})
    comparison = table(tmp_path, baseline="plain", name="<title>&")
    return SimpleNamespace(comparison=comparison, paths=write(comparison))


# --------------------------------------------------------------------------------------------------------------- files


def test_write_makes_the_folder_and_its_files(tmp_path):
    series(tmp_path / "runs", "a", [0.5])
    comparison = table(tmp_path / "runs")
    comparison.folder = tmp_path / "new" / "place"
    paths = write(comparison)
    names = {"json": "json", "page": "html", "figure": "png"}
    assert paths == {what: tmp_path / "new" / "place" / f"comparison.{end}" for what, end in names.items()}
    assert all(path.stat().st_size > 200 for path in paths.values())
    assert {path.name for path in (tmp_path / "new" / "place").iterdir()} == {path.name for path in paths.values()}


def test_an_exported_figure_has_the_words_around_it(tmp_path):
    series(tmp_path, "plain", [0.5, 0.75, 0.5])
    series(tmp_path, "mine", [0.75, 1.0, 0.75])
    whole(table(tmp_path, baseline="plain"), files=True).write()
    svg, pdf = (next(tmp_path.rglob(f"overview.{kind}")).read_bytes() for kind in ("svg", "pdf"))
    words = " ".join(re.findall(r"<text[^>]*>(.*?)</text>", svg.decode("utf-8"), re.DOTALL))
    assert "Two variants of dates, each trained with 3 seeds" in " ".join(words.split())
    size = [float(number) for number in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg.decode("utf-8")).groups()]
    box = [float(number) for number in re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", pdf).groups()]
    assert box == pytest.approx(size, abs=1.0)  # the same picture, its words among it


def test_the_same_runs_give_the_same_bytes(tmp_path):
    series(tmp_path, "a", [0.5, 0.75])

    def contents():
        whole(table(tmp_path), files=True).write()
        return {path.name: path.read_bytes() for path in tmp_path.rglob("*.*") if path.parent.name != "seed-1"}

    first = contents()
    assert contents() == first and {"overview.pdf", "overview.svg", "scores.tex", "scores.csv"} < set(first)


def test_json_is_strict_and_has_null_for_what_is_no_number(evil):
    def refuse(name):
        raise ValueError(name)

    data = json.loads(evil.paths["json"].read_text("utf-8"), parse_constant=refuse)
    assert (data["name"], data["metric"], data["baseline"]) == ("<title>&", "exact_match", "plain")
    assert data["higher_is_better"] and verdict(evil.comparison) in Page(evil.paths["page"].read_text("utf-8")).texts
    dead = next(row for row in data["rows"] if row["variant"] == "dead")
    best = data["rows"][0]
    assert dead["mean"] == {"exact_match": None}
    assert (best["variant"], best["mean"]["exact_match"]) == (EVIL, 0.625)
    assert best["difference"]["pairs"] == 2
    assert len(data["runs"]) == 5


# ------------------------------------------------------------------------------------------------------------- verdict


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"base": [0.5, 0.6], "other": [0.6, 0.9]},
            "“other” has the best mean (exact match 75%) but 2 seeds cannot tell these apart: "
            "+20 points (95%: −100 to +100) against the baseline “base” (likely 10 more seeds).",
        ),
        (
            {"base": [0.5, 0.6], "other": [0.75, 0.86]},
            "“other” has the best mean (exact match 80%) and is better than the baseline “base”: "
            "+26 points (95%: +18 to +33), 2 seeds.",
        ),
        (
            {"base": [0.5], "other": [0.75]},
            "“other” has the best mean (exact match 75.0%) but 1 seed cannot tell these apart: "
            "+25.0 points, no interval from 1 seed against the baseline “base”.",
        ),
        (
            {"base": [0.6, 0.9], "other": [0.5, 0.6]},
            "The baseline “base” has the best mean (exact match 75%), but 2 seeds cannot tell these apart (likely 10 "
            "more seeds).",
        ),
        (
            {"base": [0.75, 0.86], "other": [0.5, 0.6]},
            "The baseline “base” has the best mean (exact match 80%); the other is worse, paired over 2 seeds.",
        ),
        (
            {"base": [0.75, 0.86], "b": [0.5, 0.6], "c": [0.1, 0.84]},
            "The baseline “base” has the best mean (exact match 80%); of 2 others, 1 is worse, 1 is "
            "undetermined with 2 seeds.",
        ),
        (
            {"other": [0.75], "base": [0.75]},
            "The baseline “base” shares the best mean with “other” (exact match 75.0%), but 1 seed cannot tell these apart. "
            "Every run has the same exact match, so it decides nothing (--metric loss may).",
        ),
        (
            {"base": [0.0, 0.0], "b": [0.0, 0.0], "c": [0.0, 0.0]},
            "The baseline “base” shares the best mean with “c” and “b” (exact match 0.0%); of 2 others, 2 are equal. Every "
            "run has the same exact match, so it decides nothing (--metric loss may).",
        ),
        (
            {"base": [0.25, 0.75], "b": [0.25, 0.75]},
            "The baseline “base” shares the best mean with “b” (exact match 50%); the other is equal, paired over 2 seeds.",
        ),
        ({"base": [0.5, 0.7]}, "“base” is the only variant here: exact match 60% over 2 seeds."),
    ],
)
def test_the_verdict_says_what_the_seeds_can_tell(tmp_path, values, sentence):
    for variant, items in values.items():
        series(tmp_path, variant, items)
    assert verdict(table(tmp_path, baseline="base")) == sentence


def test_the_verdict_says_that_a_score_is_of_the_validation_split(tmp_path):
    series(tmp_path, "a", [0.5, 0.7], valid={"exact_match": 0.5}, test={})
    assert verdict(table(tmp_path)) == (
        "“a” is the only variant here: exact match 50.0% on the validation split over 2 seeds."
    )


def test_the_verdict_owns_up_to_diverged_runs(tmp_path):
    series(tmp_path, "base", [0.5, 0.5])
    finish(tmp_path, "other", 1, 0.75)
    finish(tmp_path, "other", 2, 0.75, diverged=LOST)
    text = verdict(table(tmp_path, baseline="base"))  # 75%, but 37.5% with the run that diverged
    assert text.startswith("The baseline “base” leads, as a run that diverged counts as the worst (exact match 50.0%)")
    assert text.endswith(" Diverged: “other” in 1 of 2 runs.")
    series(tmp_path / "low", "base", [0.25, 0.25])
    series(tmp_path / "low", "other", [0.75, 0.75, 0.75])
    finish(tmp_path / "low", "other", 4, 0.75, diverged=LOST)
    text = verdict(table(tmp_path / "low", baseline="base"))
    assert text.startswith("“other” has the best mean")
    assert text.endswith("; 1 of its 4 runs diverged and are not in that mean.")


def test_there_is_no_best_variant_where_every_run_diverged(tmp_path):
    series(tmp_path, "a", [0.5], diverged=LOST)
    series(tmp_path, "b", [0.5], diverged=LOST)
    comparison = table(tmp_path)
    assert verdict(comparison) == "No variant is best: every run diverged."
    page = Page(write(comparison)["page"].read_text("utf-8"))
    assert f"diverged: {LOST}" in page.text


def test_small_differences_of_a_lower_is_better_metric_keep_their_digits(tmp_path):
    series(tmp_path, "base", [0.0037, 0.0039], metric="perplexity")
    series(tmp_path, "other", [0.0017, 0.00188], metric="perplexity")
    # Pairs −0.0020 and −0.00202: mean −0.00201; half-width t · s / √2 = 15.895 · 0.00001 = 0.000159.
    assert verdict(table(tmp_path, "perplexity", "base")) == (
        "“other” has the best mean (perplexity 0.00179) and is better than the baseline “base”: "
        "−0.00201 (95%: −0.00217 to −0.00185), 2 seeds."
    )


def test_an_interval_that_excludes_zero_is_seen_to(tmp_path):
    # Mean 0.214 points, s = 0.1225, half-width 3.482 · 0.1225 / 2 = 0.2132: the lower end is 0.0008 points.
    series(tmp_path, "base", [0.5, 0.5, 0.5, 0.5])
    series(tmp_path, "other", [0.50064, 0.50214, 0.50364, 0.50214])
    comparison = table(tmp_path, baseline="base")
    (difference,) = [row.difference for row in comparison.rows if row.difference]
    assert difference.verdict == "better"
    assert "+0.2140 points (95%: +0.0008 to +0.4272)" in verdict(comparison)


SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"


def test_the_signature_is_in_every_form_of_the_report(tmp_path):
    for variant in ("post", "pre"):
        series(tmp_path, variant, [30.0, 31.0], metric="bleu", signatures={"bleu": SIGNATURE})
    comparison = table(tmp_path, "bleu", "post")
    paths = write(comparison)
    assert json.loads(paths["json"].read_text("utf-8"))["signatures"] == {"bleu": SIGNATURE}
    assert f'<p class="note">bleu: {SIGNATURE}</p>' in paths["page"].read_text("utf-8")
    series(tmp_path, "other", [31.0], metric="bleu", signatures={"bleu": "tok:zh"})
    sentence = table(tmp_path, "bleu").signatures["bleu"]
    assert sentence.startswith("not comparable between these runs: ") and "tok:zh" in sentence and SIGNATURE in sentence


# --------------------------------------------------------------------------------------------------------------- table


def test_a_row_reads_as_people_write_it(tmp_path):
    series(tmp_path, "base", [0.5, 0.6])
    finish(tmp_path, "other", 1, 0.6)
    finish(tmp_path, "other", 2, 0.9)
    finish(tmp_path, "other", 3, 0.1, diverged=LOST)
    shown = columns.table(table(tmp_path, baseline="base"))
    rows = {row.variant: [column.cell(row) for column in shown.columns[1:]] for row in shown.rows}
    tail = ["1,234,567", "20,409", "2:05"]
    assert [column.heading for column in shown.columns[5:]] == [
        "more seeds",
        "parameters",
        "tokens/s",
        "time",
        "seeds",
        "diverged",
    ]
    assert rows["base"] == ["55% ± 7", "baseline", "", "", "", *tail, "1, 2", "0"]
    assert rows["other"] == [
        "75% ± 21",
        "undetermined",
        "+20 points",
        "−100 to +100",
        "≈10",
        *tail,
        "1, 2, 3",
        "1 of 3",
    ]


# ---------------------------------------------------------------------------------------------------------------- page


def test_the_page_is_well_formed_and_needs_no_other_file(evil):
    html = evil.paths["page"].read_text("utf-8")
    page = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    assert page.wrong == []
    assert [attributes.get("lang") for tag, attributes in page.elements if tag == "html"] == ["en"]
    assert not page.count("script") and not page.count("link") and not page.count("iframe")
    for tag, attributes in page.elements:
        for name in ("src", "href", "xlink:href", "srcset", "poster", "data", "action"):
            assert attributes.get(name, "#").startswith(("#", "data:image/")), (tag, attributes)
    assert "@import" not in html and not re.search(r"url\((?!#)", html)
    assert "prefers-color-scheme: dark" in html and 'name="viewport"' in html


def test_what_users_wrote_is_text_and_nothing_else(evil):
    page = Page(evil.paths["page"].read_text("utf-8"))
    assert [page.count(tag) for tag in ("u", "img", "recipe", "script", "b")] == [0, 0, 0, 0, 2]  # b: verdicts
    assert all("swatch" in attributes["class"] for tag, attributes in page.elements if tag == "i")
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    for text in (EVIL, "<title>&", "<recipe>", "<b>&amp;", "</dl>\u2028|", "<img src=x onerror=1>", "<u>lost</u>"):
        assert text in page.text, text


def rows_of(page):
    """The tables of the page: the texts of their rows, by caption."""
    return {
        re.sub("<.*?>", "", caption): [
            [re.sub("<.*?>", "", cell) for cell in re.findall(r"<t[hd] .*?>(.*?)</t[hd]>", row)]
            for row in re.findall("<tr.*?</tr>", body, re.DOTALL)
        ]
        for caption, body in re.findall("<caption>(.*?)</caption>(.*?)</table>", page, re.DOTALL)
    }


def test_what_stands_between_backticks_is_code():
    assert notes(["take `few-pairs` & <b>"]) == '<p class="note">take <code>few-pairs</code> &amp; &lt;b&gt;</p>'


def test_the_page_has_every_seed_every_metric_and_every_run_and_says_how_to_see_the_curves(tmp_path):
    series(tmp_path, "base", [0.5, 0.6], test={"exact_match": 0.5, "perplexity": 3.5})
    finish(tmp_path, "other", 1, 0.7)
    finish(tmp_path, "other", 2, 0.75, diverged=LOST)
    html = write(table(tmp_path, baseline="base"))["page"].read_text("utf-8")
    tables = rows_of(html)
    assert tables["test exact match"] == [
        ["variant", "seed 1", "seed 2"],
        ["base", "50.0%", "50.0%"],
        ["other", "70.0%", "diverged"],
    ]
    others = tables["mean ± standard deviation over seeds"]
    assert others[0] == ["variant", "perplexity\xa0↓", "tokens/s", "diverged"]
    assert others[1] == ["base", "3.500 ± 0.000", "20,409", "0"]
    costs = tables["What each variant costs, a mean over seeds; time of training steps"]
    assert costs[1][2:] == ["1,234,567", "2:05"]
    runs = tables[f"Folders are in {tmp_path}"]
    assert len(runs) == 1 + 4
    assert runs[-1][:5] == ["other", "2", "1,500", "1,200", f"diverged: {LOST}"]
    page = Page(html)
    assert f"paddle-tfm board {shlex.quote(str(tmp_path))}" in page.texts
    assert "standard deviation" in page.text and "Student's t" in page.text


RECIPE = """
name: dates
summary: English dates to Chinese
task: {name: dates, train: 4000}
model: {d_model: 64, num_heads: 4, d_ff: 256, encoder_layers: 2, decoder_layers: 3, dropout: 0.1, norm: NORM}
train: {steps: 1500, max_tokens: 1024, schedule: {name: cosine, peak: 0.002}, accumulate: 1, clip_norm: 1.0}
"""
ABOUT = {
    "examples": {"train": 4000, "valid": 1000, "test": 500},
    "samples": [["<5 May>", "5月5日"]],
    "mean_length": {"source": 5.4, "target": 7.3},
    "vocabulary": {"source": 462, "target": 158},
    "trainings": [
        {
            "started": "2026-03-05T10:00:00+00:00",
            "device": "cpu",
            "processor": "A Processor",
            "cores": 4,
            "threads": 2,
            "memory_gib": 15.5,
            "system": "Linux x86_64",
            "versions": {"paddle": "3.3.1", "paddle_tfm": "0.1.0"},
        }
    ],
}


def test_the_page_says_what_was_compared_and_how_to_do_it_again(tmp_path):
    for variant, norm in (("base", "layer"), ("other", "{encoder: batch, decoder: layer}")):
        for seed in (1, 2):
            folder = finish(tmp_path, variant, seed, 0.5 + seed / 10)
            (folder / "recipe.yaml").write_text(RECIPE.replace("NORM", norm), "utf-8")
            (folder / "about.json").write_text(json.dumps(ABOUT), "utf-8")
            (folder.parent.parent / "command.json").write_text(
                '{"command": ["paddle-tfm", "run", "my recipe.yaml"]}', "utf-8"
            )
    html = write(table(tmp_path, baseline="base"))["page"].read_text("utf-8")
    page = Page(html)
    for wanted in (
        "Two variants of dates, each trained with 2 seeds for 1,500 steps on dates, and scored by exact match on 500 test examples.",
        "“English dates to Chinese”",
        "dates (train 4000)",
        "4,000 training, 1,000 validation, 500 test examples",
        "5.4 pieces to 7.3 on average",
        "vocabulary of 462 and 158 pieces",
        "<5 May>",
        "2 encoder and 3 decoder layers, d_model 64, 4 heads, d_ff 256 · dropout 0.1 · norm layer",
        "1,234,567 parameters",
        "1500 steps of at most 1,024 target tokens · schedule cosine (peak 0.002) · clip norm 1".replace(
            "1500", "1,500"
        ),
        "paddle-tfm run 'my recipe.yaml'",
        "2026-03-05 (UTC)",
        "A Processor, 4 cores (2 in use by a run), 15.5 GiB, Linux x86_64, on cpu",
        "paddle 3.3.1, paddle_tfm 0.1.0",
    ):
        assert wanted in page.text, wanted
    (variants,) = [rows for caption, rows in rows_of(html).items() if "differ from the baseline" in caption]
    assert variants[0][:5] == ["variant", "section", "what", "baseline", "here"]
    (norm,) = (row for row in variants[1:] if row[2] == "model.norm")
    assert norm[:2] == ["other", "settings"] and norm[3].startswith("layer (eps ")
    assert norm[4].startswith("encoder: batch (eps ") and ", decoder: layer (eps " in norm[4]


def test_of_a_run_that_was_copied_in_part_the_page_says_what_it_can(tmp_path):
    """No recipe, no about.json, no command."""
    folder = finish(tmp_path, "a", 1, 0.5, predictions=[right("5 May", "5月5日")])
    text = Page(write(table(tmp_path))["page"].read_text("utf-8")).text
    assert (
        "One variant of dates, trained with 1 seed for 1,500 steps, and scored by exact match on the test split."
        in text
    )
    assert "5 May" in text and "not recorded" in text
    assert f"paddle-tfm run {folder / 'recipe.yaml'} --out runs/again" in text


def test_runs_elsewhere_are_shown_from_the_folder_that_holds_them_all(tmp_path):
    series(tmp_path / "one", "a", [0.5])
    series(tmp_path / "two", "b", [0.5])
    comparison = compare(collect([tmp_path / "one", tmp_path / "two"]), "both", tmp_path / "one", "exact_match")
    page = Page(render(comparison))
    assert f"paddle-tfm board {tmp_path}" in page.texts
    assert all(str(run.folder.relative_to(tmp_path)) in page.texts for run in comparison.runs)


def drawings(html):
    return re.findall(r"<svg.*?</svg>", html, re.DOTALL)


def test_figures_on_the_page_take_the_colours_of_the_page(evil):
    html = evil.paths["page"].read_text("utf-8")
    assert len(drawings(html)) >= 3
    assert not any(re.search(r"#[0-9a-f]{3}|rgb|style=", drawing) for drawing in drawings(html))


def intervals(html):
    """variant → the drawn ends of its interval, as values."""
    ends = {}
    for drawing in drawings(html):
        if bar := re.search(r'class="interval" d="M([\d.]+) 700H([\d.]+)', drawing):
            low, high = (float(re.search(f'data-{end}="(.*?)"', drawing)[1]) for end in ("from", "to"))
            name = re.search('aria-label="(.*?):', drawing)[1]
            ends[name] = [low + (high - low) * float(place) / 1000 for place in bar.groups()]
    return ends


def test_an_interval_bar_is_the_verdicts_interval_and_ends_where_scores_end(tmp_path):
    series(tmp_path, "base", [0.9, 0.96])  # mean 0.93
    series(tmp_path, "near", [0.905, 0.966])  # +0.55 points, half-width 31.821 · 0.05 = 1.59: t at 4% / 2
    series(tmp_path, "far", [0.93, 0.945])  # +0.75 points, half-width 31.821 · 2.25: beyond what a score can be
    comparison = table(tmp_path, baseline="base")
    drawn = intervals(write(comparison)["page"].read_text("utf-8"))
    assert drawn["near"] == pytest.approx([0.93 + 0.0055 - 0.01591, 0.93 + 0.0055 + 0.01591], abs=1e-3)
    assert drawn["far"] == pytest.approx([0.93 + 0.0075 - 31.8205 * 0.0225, 1.0], abs=1e-3)
    assert (
        "+1 points (95%: −71 to +72)" in Page(render(comparison)).text or "−71 to +72" in Page(render(comparison)).text
    )


def test_curves_are_drawn_on_steps_tokens_and_seconds_with_the_range_of_the_seeds(tmp_path):
    for seed, (first, last) in enumerate([(0.25, 0.5), (0.75, 1.0)], 1):
        folder = finish(tmp_path, "a", seed, last, curve=())
        rows = [{"step": step, "loss": 4.0 / step, "tokens": 100 * seed} for step in (1, 2, 3, 4)]
        rows += [{"step": 2, "evaluation": {"exact_match": first}}, {"step": 4, "evaluation": {"exact_match": last}}]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        times = "".join(json.dumps({"step": step, "seconds": 0.5 * seed}) + "\n" for step in (1, 2, 3, 4))
        (folder / "timings.jsonl").write_text(times, "utf-8")
    comparison = table(tmp_path)
    curves = [read_curves(run.folder) for run in comparison.runs]
    for axis, passed in (("steps", [2, 4]), ("tokens", [300, 600]), ("seconds", [1.5, 3.0])):
        points = mean_points(comparison.runs, curves, "exact_match", axis)
        assert points == [(passed[0], 0.5, 0.25, 0.75), (passed[1], 0.75, 0.5, 1.0)]
    assert [point.y for point in mean_points(comparison.runs, curves, None, "steps")] == [4, 2, pytest.approx(4 / 3), 1]
    html = render(comparison)
    assert [f'id="x-{axis}"' in html for axis in ("steps", "tokens", "seconds")] == [True] * 3
    assert html.count('class="band"') == 3  # of the metric; both seeds have the same loss


# ------------------------------------------------------------------------------------------------- outputs side by side


def test_outputs_stand_side_by_side_where_variants_differ_most(tmp_path):
    texts = [("1", "aaaa"), ("2", "bbbb"), ("3", "cccc"), ("4", "dddd"), ("5", "eeee")]
    ours = ["aaaa", "bbbb", "cccc", "xxxx", "eeex"]
    theirs = ["aaaa", "bbbx", "zzzz", "yyyy", "eeex"]
    for variant, outputs in (("ours", ours), ("theirs", theirs)):
        rows = [("no", source, text, output, "-1.0") for (source, text), output in zip(texts, outputs)]
        finish(tmp_path, variant, 1, 0.5 + (variant == "ours") / 10, predictions=rows)
    chosen = side_by_side(table(tmp_path))
    assert [(item.why, item.source) for item in chosen] == [
        ("the variants differ most here", "3"),
        ("the variants differ most here", "2"),
        ("the least like its reference", "4"),
        ("in the middle", "5"),
    ]
    assert chosen[0].outputs == {"ours": "cccc", "theirs": "zzzz"}


def test_a_source_that_stands_in_the_split_twice_is_shown_once(tmp_path):
    rows = [wrong("1", "aaaa", "bbbb"), wrong("2", "aaaa", "aaab"), wrong("1", "aaaa", "bbbb")]
    finish(tmp_path, "ours", 1, 0.6, predictions=rows)
    finish(tmp_path, "theirs", 1, 0.5, predictions=[wrong(source, "aaaa", "cccc") for source in "121"])
    assert sorted(item.source for item in side_by_side(table(tmp_path))) == ["1", "2"]


def test_outputs_of_other_texts_do_not_stand_beside_these(tmp_path):
    finish(tmp_path, "ours", 1, 0.6, predictions=[wrong("1", "a", "b")])
    finish(tmp_path, "theirs", 1, 0.5, predictions=[wrong("2", "a", "b")])
    assert [list(item.outputs) for item in side_by_side(table(tmp_path))] == [["ours"]]


@pytest.mark.parametrize(
    ("one", "other", "value"), [("abc", "abc", 1), ("abc", "xyz", 0), ("ab", "ac", 2 / 6), ("", "", 1), ("a", "", 0)]
)
def test_likeness_counts_shared_characters_and_pairs(one, other, value):
    assert similarity(one, other) == similarity(other, one) == pytest.approx(value)


# ------------------------------------------------------------------------------------------------------------- samples


def test_samples_are_the_best_variants_first_seeds(tmp_path):
    rows = [right("1"), wrong("2", "b", "x"), right("3"), wrong("4", "d", "y"), right("5")]
    finish(tmp_path, "best", 2, 0.9, predictions=[right("other seed")])
    finish(tmp_path, "best", 1, 0.9, predictions=rows)
    finish(tmp_path, "next", 1, 0.1, predictions=[wrong("z", "z", "y")])
    good, bad = samples(table(tmp_path))
    assert [item.source for _, item in good] == ["1", "3", "5"]
    assert [(variant, item.source, item.hypothesis) for variant, item in bad] == [
        ("best", "2", "x"),
        ("best", "4", "y"),
    ]


def test_a_diverged_seed_or_one_without_predictions_is_passed_over(tmp_path):
    finish(tmp_path, "best", 1, 0.9, diverged=LOST, predictions=[wrong("lost", "a", "b")])
    finish(tmp_path, "best", 2, 0.9)
    finish(tmp_path, "best", 3, 0.9, predictions=[right("3")])
    good, bad = samples(table(tmp_path))
    assert [item.source for _, item in good] == ["3"]
    assert bad == []


def test_characters_that_differ_are_marked(tmp_path):
    rows = [wrong("五月", "2019-05-04", "2019-06-4"), wrong("空", "a<b", ""), wrong("三", "12", "1x2")]
    finish(tmp_path, "a", 1, 0.5, predictions=rows)
    html = write(table(tmp_path))["page"].read_text("utf-8")
    assert '2019-0<mark class="missing">5</mark>-<mark class="missing">0</mark>4</dd>' in html
    assert '2019-0<mark class="extra">6</mark>-4</dd>' in html
    assert '<mark class="missing">a&lt;b</mark>' in html and "<i>nothing</i>" in html
    assert "五月" in html and "></mark>" not in html
