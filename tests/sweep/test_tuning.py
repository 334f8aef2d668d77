"""Trials before the reported runs: which are due, what is chosen, when the space is widened, and that it is the same
however often the sweep stopped. Trials' folders hold what a training leaves there; nothing is trained."""

import json
import math

import pytest

from paddle_tfm.errors import UserError
from paddle_tfm.recipe import loading
from paddle_tfm.sweep.cells import Cell
from paddle_tfm.sweep.tuning import Tuning

RECIPE = """\
base: base.yaml
name: mine
summary: mine
seeds: [1, 2]
variants: {a: {}, b: {model.norm: rms}}
train: {steps: 80}
"""


@pytest.fixture
def sweep(tmp_path):
    """A tuning of two variants in a folder of its own, as often as it is asked for."""

    def begin(tune, is_sound=lambda run: True, metric="exact_match"):
        file = tmp_path / "mine.yaml"
        file.write_text(f"{RECIPE}evaluate: {{best: {metric}}}\ntune: {tune}\n", "utf-8")
        recipe = loading.load(str(file))
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        return Tuning(recipe, recipe.tune(), recipe.runs(), out, lambda run: Cell(run, out / run.name), is_sound)

    return begin


def peak(cell):
    return cell.spec.data["train"]["schedule"]["peak"]


def end(cell, value, loss=1.0, diverged=None):
    """What the training of a cell leaves."""
    cell.folder.mkdir(parents=True, exist_ok=True)
    valid = {"exact_match": value, "loss": loss}
    results = {"variant": cell.spec.variant, "valid": valid, "directions": {"exact_match": True}, "diverged": diverged}
    (cell.folder / "results.json").write_text(json.dumps({**results, "steps": cell.spec.steps}), "utf-8")


def train(tuning, score, report=None):
    """All stages, each cell scored by a function of it; the names of the cells, by stage."""
    stages = []
    for stage in tuning.stages(*([report] if report else [])):
        for cell in stage:
            if not cell.is_finished:
                end(cell, **score(cell))
        stages.append([cell.name for cell in stage])
    return stages


def inside(cell):
    """Best in the middle of log(1e-3, 1e-1), of “b” a little above."""
    best = 1e-2 if cell.spec.variant == "a" else 2e-2
    return {"value": 1 - abs(math.log10(peak(cell) / best))}


def above(cell):
    """The larger, the better."""
    return {"value": peak(cell)}


SPACE = "{space: {train.schedule.peak: {log: [1e-3, 1e-1]}}, trials: 6"


def test_every_variant_has_the_same_trials_and_each_its_own_best(sweep):
    tuning = sweep(SPACE + "}")
    (stage,) = train(tuning, inside)
    assert stage == [f"tuning/{variant}/trial-0{n}" for n in range(1, 7) for variant in "ab"]
    peaks = {v: {peak(cell): cell.spec for cell in tuning.cells if cell.spec.variant == v} for v in "ab"}
    assert peaks["a"].keys() == peaks["b"].keys()
    best = {"a": min(peaks["a"], key=lambda p: abs(math.log(p / 1e-2))), "b": min(peaks["b"], key=lambda p: abs(math.log(p / 2e-2)))}  # fmt: skip
    assert best["a"] != best["b"]
    reported = tuning.chosen()
    assert [cell.name for cell in reported] == ["a/seed-1", "b/seed-1", "a/seed-2", "b/seed-2"]
    for cell in reported:
        assert peak(cell) == best[cell.spec.variant] and cell.spec.settings.train.schedule["peak"] == peak(cell)
        assert cell.spec.data["seeds"] == [cell.spec.seed] and cell.spec.seed in (1, 2)
    assert {cell.spec.seed for cell in tuning.cells} == {0}


def test_equal_scores_are_told_apart_by_the_loss_and_then_by_their_number(sweep):
    tuning = sweep(SPACE + ", widen: 0}")
    train(tuning, lambda cell: {"value": 0.5, "loss": 1.0 if "trial-04" in cell.name else 2.0})
    assert tuning.best("a").number == 4
    for cell in tuning.cells:
        end(cell, 0.5, 2.0)
    list(tuning.stages())
    assert tuning.best("a").number == 1


def test_a_trial_that_diverged_is_the_worst_and_a_variant_whose_trials_all_did_cannot_be_tuned(sweep):
    tuning = sweep(SPACE + ", widen: 0}")
    train(tuning, lambda cell: {"value": 0.9, "diverged": "lost"} if peak(cell) > 0.01 else {"value": 0.1})
    assert tuning.best("a").values["train.schedule.peak"] < 0.01
    for cell in tuning.cells:
        if cell.spec.variant == "b":
            end(cell, 0.9, diverged="lost")
    list(tuning.stages())
    assert tuning.best("a")
    with pytest.raises(UserError, match="every trial of variant 'b' diverged, so that nothing can be chosen"):
        tuning.chosen()


def test_the_space_is_widened_for_all_where_the_best_of_one_lies_at_its_edge(sweep):
    said = []
    score = lambda cell: above(cell) if cell.spec.variant == "b" else inside(cell)  # noqa: E731
    tuning = sweep(SPACE + ", widen: 2}")
    stages = train(tuning, score, said.append)
    assert [len(stage) for stage in stages] == [12, 12, 12]  # six more trials of both, twice
    assert stages[1][:3] == ["tuning/a/trial-07", "tuning/b/trial-07", "tuning/a/trial-08"]
    ends = [space[0].values for space in tuning.spaces]
    assert ends == [(1e-3, 0.1), (1e-3, 1.0), (1e-3, pytest.approx(31.62))]
    assert all(0.1 < peak(cell) <= 1 for cell in tuning.cells[12:24])
    sentence = "The best trial of “b” is at the edge of the space: train.schedule.peak is now 0.001 to 1 (log) for all variants"
    assert said[0] == sentence
    assert tuning.edges("b") == {"train.schedule.peak": 1} and tuning.edges("a") == {}
    assert [len(stage) for stage in train(sweep(SPACE + ", widen: 0}"), score)] == [12]


def test_it_is_not_widened_beyond_what_every_variant_takes(sweep):
    tuning = sweep(SPACE + ", widen: 2}", is_sound=lambda run: run.data["train"]["schedule"]["peak"] < 0.5)
    assert [len(stage) for stage in train(tuning, above)] == [12]
    assert tuning.edges("a") == {"train.schedule.peak": 1}


def test_trials_are_halved_within_a_variant_and_never_between_variants(sweep):
    """All of “b” are worse than all of “a” with few steps, and better with all."""

    def score(cell):
        late = cell.spec.steps == 80
        value = -peak(cell) if cell.spec.variant == "a" else peak(cell)
        return {"value": value + (10 if (cell.spec.variant == "a") != late else 0)}

    tuning = sweep(SPACE.replace("trials: 6", "trials: 8") + ", halving: 2, widen: 0}")
    stages = train(tuning, score)
    assert [len(stage) for stage in stages] == [16, 8, 4, 2]
    assert [{cell.rpartition("-")[2] for cell in stage} for stage in stages[:3]] == [{"10"}, {"20"}, {"40"}]
    for variant, choose in (("a", min), ("b", max)):
        cells = [cell for cell in tuning.cells if cell.spec.variant == variant]
        for steps, left in ((10, 8), (20, 4), (40, 2), (80, 1)):
            peaks = sorted((peak(cell) for cell in cells if cell.spec.steps == steps), reverse=choose is max)
            first = sorted((peak(cell) for cell in cells if cell.spec.steps == 10), reverse=choose is max)
            assert peaks == first[:left]
        assert tuning.best(variant).values["train.schedule.peak"] == choose(peak(cell) for cell in cells)
    record = tuning.scores["a"]
    assert sum(not score.stopped for score in record.values()) == 1


def test_it_goes_on_where_it_stopped_with_the_same_trials_and_the_same_choice(sweep):
    tune = SPACE + ", widen: 1, untuned: true}"
    whole = sweep(tune)
    train(whole, above)
    whole.write()
    record = (whole.folder / "tuning.json").read_text("utf-8")
    names = [cell.name for cell in whole.cells]

    for kept in (0, 5, 12, 17):
        for cell in whole.cells[kept:]:
            (cell.folder / "results.json").unlink(missing_ok=True)
        again = sweep(tune)
        due = [cell.name for cell in again.known(None)]
        assert due[: len(again.cells)] == names[: 12 if kept < 12 else 24]
        train(again, above)
        again.write()
        assert (again.folder / "tuning.json").read_text("utf-8") == record
        assert [cell.name for cell in again.cells] == names
    assert again.names(["b/seed-2", "a/seed-1"]) == [
        *(*names, "b/seed-2", "a/seed-1"),
        *("tuning/a/untuned-seed-1", "tuning/b/untuned-seed-2"),
    ]


def test_one_run_is_known_once_its_variant_is_tuned(sweep):
    tune = SPACE + ", widen: 1}"
    tuning = sweep(tune)
    (cell,) = tuning.known("tuning/b/trial-02")
    assert cell.spec.variant == "b"
    with pytest.raises(
        UserError, match="--cell a/seed-1: trials choose its values, and one of them is not finished: tuning/a"
    ):
        tuning.known("a/seed-1")
    with pytest.raises(UserError, match="--cell: unknown run 'tuning/a/trial-07'"):
        tuning.known("tuning/a/trial-07")  # of a wider space, which is not known yet
    train(sweep(tune), above)
    (cell,) = sweep(tune).known("a/seed-1")
    assert peak(cell) > 0.1
    assert sweep(tune).known("tuning/a/trial-07")


def test_a_run_with_the_recipe_s_own_values_waits_for_no_trial(sweep):
    (cell,) = sweep(SPACE + ", untuned: true}").known("tuning/a/untuned-seed-2")
    assert cell.spec.data["train"]["schedule"]["peak"] == 0.001 and cell.spec.seed == 2


def test_runs_that_were_begun_without_tuning_are_not_mixed_with_tuned_ones(sweep):
    folder = sweep(SPACE + "}").folder / "a/seed-1"
    folder.mkdir(parents=True)
    (folder / "identity.json").write_text("{}", "utf-8")
    with pytest.raises(UserError, match="seed-1 was begun, but its variant is not tuned"):
        sweep(SPACE + "}").known(None)
