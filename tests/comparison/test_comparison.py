"""Runs collected, grouped, averaged and compared: against numbers worked out by hand."""

from __future__ import annotations

import json
import math

import pytest
from finished_runs import finished

from paddle_tfm.comparison.runs.finished import collect, grouped
from paddle_tfm.comparison.table import Comparison, compare
from paddle_tfm.comparison.verdict import verdict
from paddle_tfm.errors import UserError

DIRECTIONS = {"exact_match": True, "perplexity": False}


def finish(root, variant, seed, test=None, recipe="dates", **more):
    """A finished run's folder."""
    folder, units = root / recipe / variant / f"seed-{seed}", {"exact_match": "%", "perplexity": ""}
    own = {"recipe": recipe, "directions": DIRECTIONS, "units": units}
    return finished(folder, variant, seed, test or {}, **(own | more))


def series(root, variant, values, metric="exact_match", **more):
    """A run for each value; seeds count from 1."""
    for seed, value in enumerate(values, 1):
        finish(root, variant, seed, {metric: value}, **more)


def table(root, metric="exact_match", baseline=None) -> Comparison:
    return compare(collect([root]), "name", root, metric, baseline)


def by_name(comparison):
    return {row.variant: row for row in comparison.rows}


# ------------------------------------------------------------------------------------------------------------ collect


def test_collect_reads_a_run_and_a_folder_of_runs_once_each(tmp_path):
    one = finish(tmp_path, "pre", 1, {"exact_match": 0.5})
    finish(tmp_path, "pre", 2, {"exact_match": 0.25})
    results = collect([one, tmp_path, tmp_path / "dates" / "pre" / ".." / "pre"])
    assert [(result.variant, result.seed) for result in results] == [("pre", 1), ("pre", 2)]
    assert results[0].folder.resolve() == one.resolve()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (
            '{"variant": "pre"}',
            "it lacks recipe, seed, steps, parameters, seconds, tokens_per_second, directions, units, signatures, valid, test",
        ),
        ("[]", "it must hold a mapping, but holds []"),
    ],
)
def test_collect_names_the_file_that_holds_no_results(tmp_path, text, why):
    file = tmp_path / "results.json"
    file.write_text(text, "utf-8")
    with pytest.raises(UserError) as caught:
        collect([tmp_path])
    assert str(caught.value) == f"{file}: damaged: {why}"


# -------------------------------------------------------------------------------------------------- means and spreads


def test_a_row_holds_mean_and_standard_deviation_over_its_seeds(tmp_path):
    for seed, value, seconds in ((3, 0.9, 30.0), (1, 0.5, 60.0), (2, 0.7, 120.0)):
        finish(tmp_path, "pre", seed, {"exact_match": value, "loss": 1.0}, seconds=seconds, tokens_per_second=seconds)
    (row,) = table(tmp_path).rows
    assert row.seeds == [1, 2, 3]
    assert row.mean == pytest.approx({"exact_match": 0.7, "loss": 1.0})
    assert row.spread == pytest.approx({"exact_match": 0.2, "loss": 0.0})  # √((0.04 + 0 + 0.04) / 2)
    assert (row.seconds, row.tokens_per_second, row.parameters, row.diverged) == (70.0, 70.0, 1000, 0)
    assert row.difference is None


def test_the_validation_split_stands_in_where_there_is_no_test_split(tmp_path):
    finish(tmp_path, "pre", 1, test={"exact_match": 0.5}, valid={"exact_match": 0.875})
    finish(tmp_path, "post", 1, valid={"exact_match": 0.75})
    rows = by_name(table(tmp_path))
    assert (rows["pre"].mean["exact_match"], rows["post"].mean["exact_match"]) == (0.5, 0.75)


def test_variants_of_two_recipes_are_named_with_their_recipe(tmp_path):
    finish(tmp_path, "pre", 1, {"exact_match": 0.5}, recipe="dates")
    finish(tmp_path, "pre", 1, {"exact_match": 0.75}, recipe="copy")
    comparison = table(tmp_path)
    assert [row.variant for row in comparison.rows] == ["copy/pre", "dates/pre"]
    assert list(grouped(comparison.runs)) == ["copy/pre", "dates/pre"]


def test_the_same_variant_and_seed_twice_is_refused(tmp_path):
    one = finish(tmp_path / "before", "pre", 1, {"exact_match": 0.5})
    two = finish(tmp_path / "after", "pre", 1, {"exact_match": 0.75})
    with pytest.raises(UserError) as caught:
        compare(collect([tmp_path]), "name", tmp_path, "exact_match")
    message = str(caught.value)
    assert "are both 'pre' with seed 1; compare one of them" in message and str(one) in message and str(two) in message


def test_one_recipe_run_twice_is_told_apart_by_the_folders_that_were_asked_for(tmp_path):
    """`compare runs/before runs/after`: what changed between the two was an override."""
    finish(tmp_path / "before", "pre", 1, {"exact_match": 0.5})
    finish(tmp_path / "after", "pre", 1, {"exact_match": 0.75})
    before, after = tmp_path / "before", tmp_path / "after"
    comparison = compare(collect([before, after]), "name", tmp_path, "exact_match")
    assert [row.variant for row in comparison.rows] == [f"{after}/pre", f"{before}/pre"]
    assert comparison.rows[0].difference.mean == 0.25


# -------------------------------------------------------------------------------------------------------------- order


@pytest.mark.parametrize(("metric", "order"), [("exact_match", ["high", "low"]), ("perplexity", ["low", "high"])])
def test_the_best_comes_first_and_the_diverged_last(tmp_path, metric, order):
    series(tmp_path, "high", [0.9, 0.8], metric)
    series(tmp_path, "low", [0.1, 0.2], metric)
    series(tmp_path, "dead", [0.5, 0.5], metric, diverged="the loss was no number at step 3 (nan)")
    comparison = table(tmp_path, metric)
    assert [row.variant for row in comparison.rows] == [*order, "dead"]
    assert comparison.higher_is_better == (metric == "exact_match")


@pytest.mark.parametrize(
    ("metric", "baseline", "sentence"),
    [
        (
            "exact_mach",
            None,
            "unknown metric 'exact_mach'; did you mean 'exact_match'? Known: exact_match, loss, perplexity",
        ),
        ("exact_match", "post", "unknown variant 'post'. Known: pre"),
    ],
)
def test_an_unknown_metric_or_baseline_is_named(tmp_path, metric, baseline, sentence):
    series(tmp_path, "pre", [0.5])
    with pytest.raises(UserError) as caught:
        table(tmp_path, metric, baseline)
    assert str(caught.value) == sentence


# -------------------------------------------------------------------------------------------------------- differences


def test_only_seeds_in_common_are_paired(tmp_path):
    for seed, value in ((1, 0.5), (2, 0.6), (3, 0.9)):
        finish(tmp_path, "base", seed, {"exact_match": value})
    for seed, value in ((4, 0.1), (3, 0.8), (2, 0.7)):
        finish(tmp_path, "other", seed, {"exact_match": value})
    output = by_name(table(tmp_path))["other"].difference
    assert output.pairs == 2
    assert output.mean == pytest.approx(0.0)  # +0.1 and −0.1
    assert (output.low, output.high) == (-1, 1)  # 12.7 · √0.02 / √2 is more than shares can differ by


# ----------------------------------------------------------------------------------------------- diverged and infinite


def test_a_diverged_run_is_counted_is_in_no_mean_and_loses_its_pair(tmp_path):
    series(tmp_path, "base", [0.5, 0.6])
    finish(tmp_path, "other", 1, {"exact_match": 0.9})
    finish(tmp_path, "other", 2, {"exact_match": 0.1}, diverged="the loss was no number at step 3 (nan)")
    row = by_name(table(tmp_path))["other"]
    assert (row.mean["exact_match"], row.spread["exact_match"], row.diverged, row.seeds) == (0.9, None, 1, [1, 2])
    assert (row.difference.pairs, row.difference.diverged, row.difference.verdict) == (2, 1, "undetermined")
    assert row.standing == 0.45  # the share of 0 that it got, and 0.9
    assert [row.variant for row in table(tmp_path).rows] == ["base", "other"]  # and not where 0.9 alone would place it


@pytest.mark.parametrize("baseline", ["base", "dead"])
def test_a_variant_that_diverged_before_its_first_evaluation_is_a_row(tmp_path, baseline):
    series(tmp_path, "base", [0.5])
    finish(tmp_path, "dead", 1, diverged="the loss was no number at step 1 (nan)", best_step=0)
    comparison = table(tmp_path, baseline=baseline)
    assert [row.variant for row in comparison.rows] == ["base", "dead"]
    dead = comparison.rows[1]
    assert math.isnan(dead.mean["exact_match"])
    assert dead.spread["exact_match"] is None
    differences = [row.difference for row in comparison.rows if row.difference]
    assert [(each.verdict, each.mean, each.low) for each in differences] == [("undetermined", None, None)]
    assert comparison.shown() == ["exact_match"]


@pytest.mark.parametrize(
    ("seeds", "sentence"),
    [
        (2, "but every run of the baseline “dead” diverged: nothing can be measured against it (--baseline names another)"),
        (8, "and is better than the baseline “dead”, every run of which diverged: 8 seeds"),
    ],
)  # fmt: skip
def test_a_baseline_that_diverged_is_said_to_have(tmp_path, seeds, sentence):
    series(tmp_path, "good", [0.5] * seeds)
    for seed in range(1, seeds + 1):
        finish(tmp_path, "dead", seed, diverged="the loss was no number at step 1 (nan)", best_step=0)
    said = verdict(table(tmp_path, baseline="dead"))
    assert (
        said == f"“good” has the best mean (exact match 50.0%) {sentence}. Diverged: “dead” in {seeds} of {seeds} runs."
    )
    series(tmp_path, "half", [0.4])
    finish(tmp_path, "half", 2, diverged="the loss was no number at step 1 (nan)", best_step=0)
    assert "Diverged: “half” in 1 of 2 runs" in verdict(table(tmp_path, baseline="half"))


def test_an_infinite_perplexity_has_no_spread_and_loses_its_pair(tmp_path):
    series(tmp_path, "base", [2.0, 3.0, 2.5], "perplexity")
    series(tmp_path, "wild", [math.inf, 4.0, 4.5], "perplexity")
    row = by_name(table(tmp_path, "perplexity"))["wild"]
    assert (row.mean["perplexity"], row.spread["perplexity"]) == (math.inf, None)
    assert (row.difference.pairs, row.difference.mean, row.difference.verdict) == (3, 2.0, "undetermined")  # median


# --------------------------------------------------------------------------------------------------------------- text


def test_the_table_shows_the_deciding_metric_first_and_every_other_once(tmp_path):
    finish(tmp_path, "a", 1, {"loss": 1.0, "perplexity": 2.0, "exact_match": 0.5})
    finish(tmp_path, "b", 1, {"exact_match": 0.75, "bleu": 1.0})
    assert sorted(table(tmp_path).shown()) == ["bleu", "exact_match", "loss", "perplexity"]
    assert table(tmp_path).shown()[0] == "exact_match"
    assert table(tmp_path, "perplexity").shown()[0] == "perplexity"


def test_a_variant_on_other_texts_is_neither_the_best_nor_in_the_way_of_the_others(tmp_path):
    series(tmp_path, "a", [0.5, 0.75], data="same")
    series(tmp_path, "b", [0.25, 0.5], data="same")
    series(tmp_path, "c", [1.0, 1.0], data="easier")
    for variant, length in (("a", 12), ("c", 4)):
        file = tmp_path / "dates" / variant / "seed-1" / "recipe.yaml"
        file.write_text(f"task: {{name: reverse, max_length: {length}}}\n", "utf-8")
    output = table(tmp_path, baseline="a")
    assert [row.variant for row in output.rows] == ["a", "b", "c"]  # c last, though its mean is the highest
    assert by_name(output)["b"].difference.mean == pytest.approx(-0.25)
    said = verdict(output)
    assert said.startswith("The baseline “a” has the best mean")
    assert said.endswith(". Not compared: “c” is scored on other texts than “a”: task.max_length is 4, and there 12.")
    assert output.data()["not_compared"].keys() == {"c"}


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            {"signatures": {"exact_match": "v2"}},
            "the runs of “a” are scored by different metrics of the name exact match",
        ),
        ({"data": "other"}, "the runs of “a” are scored on 2 different test texts"),
    ],
)
def test_a_variant_alone_whose_runs_are_scored_otherwise_is_said_to(more, sentence, tmp_path):
    shared = {"signatures": {"exact_match": "v1"}, "data": "texts"}
    for seed in (1, 2):
        finish(tmp_path, "a", seed, {"exact_match": 0.5}, **(shared | (more if seed == 2 else {})))
    assert verdict(table(tmp_path)).startswith(f"Nothing can be compared: {sentence}")


def test_a_run_without_its_recipe_hides_no_difference_between_others(tmp_path):
    for seed in (1, 2, 3):
        trained(finish(tmp_path, "a", seed, {"exact_match": 0.5}), seed, f"lr: {seed}\n")
    (tmp_path / "dates/a/seed-1/recipe.yaml").unlink()
    assert "lr is 2 in a/seed-2, and 3 in a/seed-3" in table(tmp_path).obstacles["a"].sentence


SHARED = {
    "recipe": "a: 1\nb: {name: x}\n",
    "norm": "norm 0.1.0",
    "train": "0" * 64,
    "valid": "2" * 64,
    "vocabulary": "3" * 64,
}


def trained(folder, seed, recipe="", norm="", train="", **more):
    """What a run was trained from, beside its results."""
    sections = (name for name in ("model", "train", "evaluate") if f"{name}:" not in recipe)
    recipe += "".join(f"{name}: {{x: 1}}\n" for name in sections)
    text = f"name: dates\nsummary: of a\n  long line\n{recipe}variant: {folder.parent.name}\nseeds: [{seed}]\n"
    (folder / "recipe.yaml").write_text(text, "utf-8")
    data = {"train": train, **({"valid": more["valid"]} if "valid" in more else {})}
    identity = {"components": {"norm layer": norm}, "data": data, "vocabulary": more.get("vocabulary", "")}
    (folder / "identity.json").write_text(json.dumps(identity), "utf-8")


@pytest.mark.parametrize("variant", ["a", "b"])
@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({}, ""),
        ({"recipe": "a: 1\nb: {name: x, k: 2}\n"}, "b.k is absent in {}/seed-1, and 2 in {}/seed-2"),
        ({"recipe": "a: 2\nb: y\nc: 3\n"}, "a is 1 in {}/seed-1, and 2 in {}/seed-2; b is x in {}/seed-1, and y in {}/seed-2; and 1 more"),
        ({"recipe": "a:   1\nb: x\n"}, ""),
        ({"norm": "norm 0.2.0"}, "norm layer is norm 0.1.0 in {}/seed-1, and norm 0.2.0 in {}/seed-2"),
        ({"train": "1" * 64}, "the hash of the training texts is 000000000000 in {}/seed-1, and 111111111111 in {}/seed-2"),
        ({"valid": "1" * 64}, "the hash of the validation texts is 222222222222 in {}/seed-1, and 111111111111 in {}/seed-2"),
        ({"vocabulary": "1" * 64}, "the hash of the vocabulary is 333333333333 in {}/seed-1, and 111111111111 in {}/seed-2"),
        ({"recipe": "a: 1\nb: x\nrequires: [z]\nevaluate: {x: 1, metrics: [z]}\ntrain: {x: 1, gradient_norms: 3}\n"}, ""),
        ({"recipe": "a: 1\nb: x\ntask: {file: z.tsv}\n"}, ""),  # the texts are the same
        ({"recipe": "a: 1\nb: x\ntask: z\n", "train": "1" * 64}, "task is absent in {}/seed-1, and z in {}/seed-2"),
    ],
)  # fmt: skip
def test_runs_that_differ_in_more_than_their_seeds_are_no_sample(variant, other, sentence, tmp_path):
    for name in ("a", "b"):
        for seed in (1, 2):
            more = other if (name, seed) == (variant, 2) else {}
            trained(finish(tmp_path, name, seed, {"exact_match": 0.5}), seed, **{**SHARED, **more})
    said = table(tmp_path, baseline="a").obstacles
    expected = f"the runs of “{variant}” differ in more than their seeds: {sentence.replace('{}', variant)}"
    assert {name: each.sentence for name, each in said.items()} == ({"b": expected} if sentence else {})


@pytest.mark.parametrize(
    ("metric", "pieces", "words"),
    [
        ("perplexity", (12, 71), "the references are 71 to “b” and 12 to “a”"),
        ("loss", (12, 71), "the references are 71 to “b” and 12 to “a”"),
        ("perplexity", (12, 12), "“b” and “a” cut the references into different pieces"),
        ("exact_match", (12, 71), ""),
        ("perplexity", (12, 0), ""),  # nobody knows
        ("perplexity", (12,), ""),
    ],
)
def test_what_is_per_piece_is_not_compared_between_other_pieces(metric, pieces, words, tmp_path):
    for name, place in (("a", 0), ("b", -1)):
        number = pieces[place]
        cut = {"pieces": {"number": number, "sha256": f"{place}{number}"}} if number else {}
        for seed in (1, 2):
            value = {"exact_match": 0.5, "perplexity": 9.0 + seed - number / 9, "loss": 2.0 - number / 90}
            finish(tmp_path, name, seed, value, per_piece=["loss", "perplexity"], **cut)
    if len(pieces) == 1:
        for file in tmp_path.rglob("results.json"):
            file.write_text(file.read_text("utf-8").replace('"-112"', '"012"'), "utf-8")
    said = table(tmp_path, metric, "a")
    assert [each.words for each in said.obstacles.values()] == ["other pieces"] * bool(words)
    assert words in verdict(said) and ("is a number per piece" in verdict(said)) == bool(words)
    assert ("loss" in said.signatures) == ("perplexity" in said.signatures) == (len(pieces) == 2 and pieces[1] > 0)


@pytest.mark.parametrize("sweeps", [("one", "one"), ("one", "two")], ids=["one sweep", "two sweeps"])
@pytest.mark.parametrize("other", [{"norm": "norm 0.2.0"}, {"train": "1" * 64}], ids=["code", "texts"])
def test_variants_of_one_sweep_have_the_same_code_and_texts(other, sweeps, tmp_path):
    """Those of two sweeps need not: that may be what is compared."""
    for name, sweep, more in zip("ab", sweeps, [{}, other]):
        trained(finish(tmp_path / sweep, name, 1, {"exact_match": 0.5}), 1, **{**SHARED, **more})
    said = table(tmp_path, baseline="a").obstacles
    assert [each.words for each in said.values()] == ["unlike runs"] * (sweeps == ("one", "one"))
    if said:
        assert said["b"].sentence.startswith("“a” and “b” also differ in what is not compared: ")


@pytest.mark.parametrize(
    ("setting", "texts", "are_compared"),
    [
        ("tokenizer: char", {"vocabulary": "1" * 64}, True),
        ("vocabulary: {max_size: 9}", {"vocabulary": "1" * 64}, True),
        ("model: {x: 1, shape: decoder-only}", {"vocabulary": "1" * 64}, True),
        ("task: {name: copy}", {"train": "1" * 64, "vocabulary": "1" * 64}, True),
        ("model: {x: 1, norm: rms}", {"vocabulary": "1" * 64}, False),
        ("tokenizer: char", {"train": "1" * 64, "vocabulary": "1" * 64}, False),
    ],
)
def test_variants_may_be_what_decides_their_texts(setting, texts, are_compared, tmp_path):
    for name, line, more in (("a", "", {}), ("b", f"{setting}\n", texts)):
        run = finish(tmp_path, name, 1, {"exact_match": 0.5})
        trained(run, 1, **{**SHARED, "recipe": SHARED["recipe"] + line, **more})
    assert bool(table(tmp_path, baseline="a").obstacles) != are_compared


@pytest.mark.parametrize(
    ("more", "words", "sentence"),
    [
        ({"signatures": {"exact_match": "v2"}}, "other metric", "the exact match of “b” is another than that of “a”: v1 and v2"),
        ({"units": {"exact_match": "points"}}, "other metric", "the exact match of “b” is another than that of “a”"),
        ({"directions": {"perplexity": False}, "units": {}}, "no such metric", "“b” was not scored by exact match"),
    ],
)  # fmt: skip
def test_scores_by_another_metric_are_not_compared(tmp_path, more, words, sentence):
    series(tmp_path, "a", [0.5, 0.75], signatures={"exact_match": "v1"})
    series(tmp_path, "b", [0.5, 0.75], **({"signatures": {"exact_match": "v1"}} | more))
    output = table(tmp_path, baseline="a")
    assert (output.obstacles["b"].words, output.rows[1].difference) == (words, None)
    assert sentence in verdict(output)
    if words == "other metric":  # another metric of the same runs is the same
        assert table(tmp_path, "perplexity", "a").obstacles == {}
