"""What the engine's own sections say, beside numbers computed here: differences, costs, gradients, lengths, outputs in
another order, and the paragraph for a paper."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from finished_runs import finished, predicted

from paddle_tfm import create_registry
from paddle_tfm.colours import colour
from paddle_tfm.comparison.report import paper
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.report.sections.chance import Chances
from paddle_tfm.comparison.report.sections.costs import Costs
from paddle_tfm.comparison.report.sections.gaps import Gaps
from paddle_tfm.comparison.report.sections.outputs import Lengths
from paddle_tfm.comparison.report.sections.training import Gradients, Layers, Norms
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.table import compare

ROOT = Path(__file__).parent.parent.parent
SCORES = {"base": (0.5, 0.6, 0.55), "a_b & 50%": (0.7, 0.75, 0.8)}


@pytest.fixture(scope="module")
def registry():
    return create_registry()


def run(root, variant, seed, value, lines=(), gradients=(), **more):
    folder = root / str(sorted(SCORES).index(variant)) / f"seed-{seed}"
    finished(folder, variant, seed, {"exact_match": value}, **more)
    rows = [{"step": step, "loss": 1.0, "gradient_norm": norm} for step, norm in enumerate(gradients, 1)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    if lines:
        predicted(folder, [("no", *line, "-1.0") for line in lines])
    return folder


def facts_of(root, registry):
    return Facts(compare(collect([root]), "r", root, "exact_match", "base"), registry)


@pytest.fixture
def two(tmp_path, registry):
    for variant, values in SCORES.items():
        for seed, value in enumerate(values, 1):
            size = {"parameters": 1250, "seconds": 90.0} if variant != "base" else {}
            run(tmp_path, variant, seed, value, gradients=(4.0 * seed, 2.0, 1.0), **size)
    return facts_of(tmp_path, registry)


def test_costs_are_shown_beside_the_baselines(two):
    (table,) = Costs().tables(two).values()
    cells = {table.columns[0].cell(row): [column.cell(row) for column in table.columns[2:]] for row in table.rows}
    assert cells == {"base": ["1,000", "1:00"], "a_b & 50%": ["1,250", "1:30"]}


def test_what_a_difference_may_be_owed_to_is_told_once(tmp_path, registry):
    for variant, values in SCORES.items():
        for seed, value in enumerate(values, 1):
            more = {"parameters": 1021, "tokens": 440} if variant != "base" else {}
            folder = run(tmp_path, variant, seed, value, **more)
            peak = 20.0 if variant == "base" else 25.0
            cache = 384 if variant == "base" else 96
            about = {"cache_bytes": cache, "trainings": [{"peak_memory_mib": peak}]}
            (folder / "about.json").write_text(json.dumps(about), "utf-8")
    facts = facts_of(tmp_path, registry)
    html = Costs().html(facts)
    assert html.count("−75.0% bytes of key/value cache for each token that is written") == 1
    assert ">96 bytes<" in html
    assert html.count("2.1% more parameters than base: this may explain a difference of scores") == 1
    (table,) = Costs().tables(facts).values()
    record = next(row for row in table.records() if row["variant"] == "a_b & 50%")
    assert (record["peak_memory_mib"], record["tokens"]) == (25, 440)
    assert [item["what"] for item in Costs().data(facts)["a_b & 50%"]] == [
        *("parameters", "tokens", "peak_memory_mib", "cache_bytes")
    ]
    assert not Gaps().applies(facts)


def test_seeds_that_only_one_variant_has_make_no_difference_of_costs(tmp_path, registry):
    """Batches of another seed hold other numbers of tokens; a variant that was settled early has fewer seeds."""
    for seed, tokens in enumerate((400, 404, 417), 1):
        run(tmp_path, "base", seed, 0.5, tokens=tokens)
        if seed < 3:
            run(tmp_path, "a_b & 50%", seed, 0.7, tokens=tokens, seconds=120.0 + seed)
    facts = facts_of(tmp_path, registry)
    assert "tokens of training" not in Costs().html(facts)
    assert "trained with 2 to 3 seeds (1, 2 and 3 of base; 1 and 2 of a_b & 50%)" in paper.methods(facts)
    assert "each trained with 2 to 3 seeds for" in facts.sentence()
    assert "+102% time: in equal time it would train 51% fewer steps" in Costs().html(facts)  # 121.5 s over 60 s


def test_costs_that_are_the_same_have_no_column(tmp_path, registry):
    for variant, values in SCORES.items():
        run(tmp_path, variant, 1, values[0])
    for more in (1, 2):  # seeds differ, and variants do not
        (table,) = Costs().tables(facts_of(tmp_path, registry)).values()
        assert [column.heading for column in table.columns[2:]] == ["parameters", "time"], more
        for variant, values in SCORES.items():
            run(tmp_path, variant, 2, values[1], tokens=500)
    assert not Gradients().applies(facts_of(tmp_path, registry))


def test_gradient_norms_are_means_over_seeds_with_their_range(two):
    axes = Gradients().figures(two)["gradient-norms"].axes[0]
    (base,) = [line for line in axes.lines if line.get_color() == colour(two.numbers["base"])]
    assert base.get_xydata().tolist() == [[1, 8.0], [2, 2.0], [3, 1.0]]  # 4, 8 and 12 at the first step
    assert axes.get_xlabel() == "training steps" and axes.figure.get_suptitle().startswith("norm of the gradient")


def log(folder, *rows):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "metrics.jsonl").write_text(text, "utf-8")


def test_gradients_by_layer_are_joint_norms_of_its_parameters(tmp_path, registry):
    for seed, size in ((1, 1.0), (2, 3.0)):
        norms = {
            "head.weight": 2.0, "encoder.layers.0.a.weight": 3 * size, "encoder.layers.0.b.bias": 4 * size,
            "encoder.layers.10.a.weight": 7.0, "encoder.final_norm.weight": 0.5,
        }  # fmt: skip
        rows = [{"step": step, "loss": 1.0, "gradient_norms": norms} for step in (1, 100, 200)]
        log(run(tmp_path, "base", seed, 0.5), {"step": 0, "evaluation": {}}, *rows, {"step": 201, "loss": 1.0})
    log(run(tmp_path, "a_b & 50%", 1, 0.5), {"step": 1, "loss": 1.0, "gradient_norms": {"head.weight": 9.0}})
    facts = facts_of(tmp_path, registry)
    first, last = Layers().charts(facts).values()
    (base,) = [line for line in last.series if line.name == "base"]
    assert base.points[0] == (0, 2, 2, 2) and base.points[1] == (1, 10, 5, 15)  # a mean, and the range of the seeds
    assert first.x.names(str) == ["head", "encoder 0", "encoder 10", "encoder final norm"]
    assert "<title>base: 10 at encoder 0</title>" in last.html()


def test_discrepancies_are_those_of_the_checkpoint_that_is_scored(tmp_path, registry):
    def evaluation(step, *numbers):
        norms = {f"encoder.layers.{i}": {"mean": mean, "deviation": 0.5} for i, mean in enumerate(numbers)}
        overall = {"norm_discrepancy_mean": sum(numbers) / 2, "norm_discrepancy_deviation": 0.5}
        return {"step": step, "evaluation": overall, "norms": norms}

    for seed, best in ((1, 2), (2, 4)):
        folder = run(tmp_path, "base", seed, 0.5, best_step=best)
        log(folder, evaluation(2, 0.1, 0.3), evaluation(4, 0.2, 0.6))
    log(run(tmp_path, "a_b & 50%", 1, 0.5), {"step": 2, "evaluation": {}})
    facts = facts_of(tmp_path, registry)
    (table,) = Norms().tables(facts).values()
    rows = [tuple(row.values()) for row in table.records()]
    assert rows == [
        ("base", "encoder.layers.0", pytest.approx(0.15), 0.5),
        ("base", "encoder.layers.1", pytest.approx(0.45), 0.5),
    ]
    line = Norms().figures(facts)["norm-discrepancy-of-means"].axes[0].lines[0]
    assert line.get_xydata().tolist() == [[2, pytest.approx(0.2)], [4, pytest.approx(0.4)]]


def test_scores_by_length_are_those_of_the_examples_of_a_length(tmp_path, registry):
    sources = [" ".join("w" * length) for length in (2, 4) for _ in range(5)]
    for seed, wrong in ((1, 6), (2, 8)):  # of the first: all of 2 words wrong, and `wrong` − 5 of the others
        lines = [(text, text, "x" if i < wrong else text) for i, text in enumerate(sources)]
        run(tmp_path, "base", seed, 0.5, lines)
    facts = facts_of(tmp_path, registry)
    (table,) = Lengths().tables(facts).values()
    assert [[column.cell(row) for column in table.columns] for row in table.rows] == [
        ["2", "5", "0.0%"],
        ["4", "5", "60.0%"],  # 4 and 2 of 5
    ]
    line = Lengths().figures(facts)["scores-by-length"].axes[0].lines[0]
    assert line.get_xydata().tolist() == [[2, 0], [4, pytest.approx(0.6)]]
    assert "dashed line" not in Lengths().html(facts)


@pytest.mark.parametrize(("longest", "shown"), [([3, 3], True), ([4, 4], False), ([2, 3], True)])
def test_scores_by_length_say_where_the_trained_lengths_end(tmp_path, registry, longest, shown):
    lines = [(" ".join("w" * length), "a", "a") for length in (2, 4) for _ in range(5)]
    for seed, words in enumerate(longest, 1):
        folder = run(tmp_path, "base", seed, 0.5, lines)
        (folder / "about.json").write_text(json.dumps({"longest_source": {"words": words, "characters": 9}}), "utf-8")
    facts = facts_of(tmp_path, registry)
    assert ("is at the longest source of the training set, 3 words" in Lengths().html(facts)) == shown
    lines = Lengths().figures(facts)["scores-by-length"].axes[0].lines
    assert [
        line.get_xdata().tolist() if hasattr(line.get_xdata(), "tolist") else line.get_xdata() for line in lines[1:]
    ] == ([[3, 3]] if shown else [])


def test_where_texts_do_not_suffice_for_the_deciding_metric_another_is_shown_by_length(tmp_path, registry):
    lines = [(" ".join("w" * length), "a", "a" if length == 2 else "b") for length in (2, 4) for _ in range(5)]
    folder = run(tmp_path, "base", 1, 0.5, lines, test={"loss": 1.0, "exact_match": 0.5})
    (folder / "recipe.yaml").write_text("evaluate: {metrics: [token_accuracy, exact_match]}\n", "utf-8")
    facts = Facts(compare(collect([tmp_path]), "r", tmp_path, "loss", "base"), registry)
    assert list(facts.text_metrics()) == ["exact_match"]
    (table,) = Lengths().tables(facts).values()
    assert table.title == "test exact match, means over seeds"
    assert [table.columns[2].cell(row) for row in table.rows] == ["100.0%", "0.0%"]


def test_the_paragraph_has_the_numbers_and_cites_what_is_in_the_bibliography(two):
    first = two.comparison.runs[0].folder
    (first / "identity.json").write_text('{"components": {"norm rms": "norm 0.1.0", "norm gone": "mine 1"}}', "utf-8")
    text = paper.methods(two)
    for wanted in ("2 variants", "3 seeds (1, 2, 3)", "exact match on the test split", "paddle_tfm", "95% interval"):
        assert wanted in text, wanted
    entries = paper.bibliography(two)
    assert "1910.07467" in entries["arxiv-1910.07467"] and "norm rms" in entries["arxiv-1910.07467"]  # RMSNorm's paper
    for entry in entries.values():
        assert entry.startswith("@") and entry.count("{") == entry.count("}")
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    title = re.search(r'title: "(.*?)"', citation)[1]
    assert title in entries["paddle_tfm"].replace("{paddle\\_tfm}", "paddle_tfm")
    assert re.search(r"name: (.*)", citation)[1] in entries["paddle_tfm"].replace("\\_", "_")


def test_the_chance_of_each_difference_is_that_of_seeds_or_of_items(tmp_path, registry):
    """Whether the difference is one between seeds or one between examples decides what is said to limit it."""
    right = {"base": ["xxxxxxxxxx"] * 3, "a_b & 50%": ["x--x--x--x"] * 3}
    by_seed = {"base": ["xxxxxxxxxx"] * 3, "a_b & 50%": ["xxxxxxxxxx", "----------", "xxxxx-x---"]}
    for name, hits, limit in (("items", right, "test items"), ("seeds", by_seed, "seeds")):
        for variant, patterns in hits.items():
            for seed, pattern in enumerate(patterns, 1):
                lines = [(f"s{i}", f"t{i}", f"t{i}" if mark == "x" else "no") for i, mark in enumerate(pattern)]
                run(tmp_path / name, variant, seed, pattern.count("x") / 10, lines)
        facts = facts_of(tmp_path / name, registry)
        assert Chances().applies(facts)
        (table,) = Chances().tables(facts).values()
        (row,) = [[column.cell(row) for column in table.columns] for row in table.rows]
        assert row[:3] == ["a_b & 50%", "3", "10"]
        assert row[-1] == limit
        html = Chances().html(facts)
        assert "a_b &amp; 50%" in html and "one standard deviation of the mean difference" in html
        assert json.dumps(Chances().data(facts))
    # Ten items, of which six change in all runs alike: the standard error of their mean, in points.
    items = facts_of(tmp_path / "items", registry)
    assert Chances().data(items)["a_b & 50%"]["of_items"] == pytest.approx((0.24 / 9) ** 0.5)
    (table,) = Chances().tables(items).values()
    (cells,) = [{column.heading: column.cell(row) for column in table.columns} for row in table.rows]
    assert (cells["other seeds"], cells["other items"]) == ("0.0 points", "16 points")


def test_of_a_variant_that_cannot_be_compared_nothing_is_said_of_chance(tmp_path, registry):
    lines = [(f"s{i}", f"t{i}", f"t{i % 3}") for i in range(5)]
    for variant in SCORES:
        for seed in (1, 2):
            signatures = {"exact_match": "of base alone"} if variant == "base" else {}
            run(tmp_path, variant, seed, 0.6, lines, signatures=signatures)
    facts = facts_of(tmp_path, registry)
    assert facts.comparison.obstacles and not Chances().applies(facts)


def test_without_predictions_nothing_is_said_of_chance(two):
    assert not Chances().applies(two)
