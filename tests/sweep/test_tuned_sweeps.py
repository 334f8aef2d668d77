"""Recipes that tune and have more to say: seeds that are added, equal budgets. Runs are left by an executor that trains
nothing."""

import json

import pytest

from paddle_tfm import create_registry, protocols
from paddle_tfm.comparison.recipe_runs import undecided
from paddle_tfm.recipe import loading, yaml_lines
from paddle_tfm.sweep.sweep import Sweep

pytestmark = pytest.mark.reliability

RECIPE = """\
base: base.yaml
name: mine
summary: mine
task: {name: copy, train: 40, valid: 4, test: 4}
model: {d_model: 16, num_heads: 2, d_ff: 48, encoder_layers: 1, decoder_layers: 1}
train: {steps: 8}
variants: {a: {}, b: {model.feed_forward: swiglu}, c: {model.norm: rms}}
tune: {space: {train.schedule.peak: [0.001, 0.003, 0.01]}, trials: 3, widen: 0, untuned: true}
"""


class Left(protocols.Executor):
    """Leaves the results that a training would: of a trial 0.003 is the best; of reported runs “b” is better than “a”
    from the first look on, and “c” is not."""

    def run(self, cells, supervisor):
        for cell in cells:
            spec, noise = cell.spec, (cell.spec.seed % 3) / 1000
            peak = spec.data["train"]["schedule"]["peak"]
            value = 0.5 + {"a": 0.0, "b": 0.2, "c": 0.0}[spec.variant] + noise * (-1 if spec.variant == "c" else 1)
            scores = {"exact_match": value if not spec.is_trial else 1 - abs(peak - 0.003), "loss": 1.0}
            facts = {"parameters": 7, "tokens": 8, "seconds": 1.0, "tokens_per_second": 8.0, "steps": spec.steps}
            facts |= {"diverged": None, "directions": {"exact_match": True}, "units": {}, "signatures": {}, "data": "d"}
            test = {} if spec.is_trial else scores
            cell.folder.mkdir(parents=True)
            results = {"recipe": "mine", "variant": spec.variant, "seed": spec.seed, "valid": scores, "test": test}
            (cell.folder / "results.json").write_text(json.dumps({**results, **facts}), "utf-8")
            (cell.folder / "recipe.yaml").write_text(yaml_lines.dump(spec.data), "utf-8")
            yield protocols.Outcome(cell)


@pytest.fixture
def train(tmp_path):
    """Runs the recipe with something more; the sweep's folder."""

    def run(more):
        file = tmp_path / "mine.yaml"
        file.write_text(RECIPE + more, "utf-8")
        recipe, out = loading.load(str(file)), tmp_path / "out"
        sweep = Sweep(recipe, create_registry(), out, executor=Left(), undecided=undecided(recipe, out))
        sweep.run()
        return out

    return run


def seeds(folder, form):
    return {variant: len(list(folder.glob(form.format(variant)))) for variant in "abc"}


def test_seeds_are_added_to_tuned_runs_and_to_those_beside_them(train):
    out = train("seeds: {at_most: 5, looks: [3, 5]}\n")
    assert seeds(out, "tuning/{}/trial-*") == {"a": 3, "b": 3, "c": 3}
    # “b” was settled after three seeds; “c” is open to the end, and the baseline goes with it.
    assert seeds(out, "{}/seed-*") == seeds(out, "tuning/{}/untuned-seed-*") == {"a": 5, "b": 3, "c": 5}
    for folder, peak in ((out / "b/seed-3", 0.003), (out / "tuning/b/untuned-seed-3", 0.001)):
        assert yaml_lines.load_file(folder / "recipe.yaml")[0]["train"]["schedule"]["peak"] == peak
    listed = json.loads((out / "command.json").read_text("utf-8"))["runs"]
    assert sorted(listed) == sorted(str(file.parent.relative_to(out)) for file in out.rglob("results.json"))


def test_trials_and_reported_runs_have_what_was_solved_for_an_equal_budget(train):
    out = train("seeds: [1]\nequal: parameters\n")
    solved = json.loads((out / "equal.json").read_text("utf-8"))["b"]["value"]
    assert solved != 48
    for name in ("tuning/b/trial-01", "tuning/b/untuned-seed-1", "b/seed-1"):
        assert yaml_lines.load_file(out / name / "recipe.yaml")[0]["model"]["d_ff"] == solved
    assert yaml_lines.load_file(out / "a/seed-1/recipe.yaml")[0]["model"]["d_ff"] == 48


def test_trials_are_chosen_by_a_validation_set_of_ones_own(tmp_path):
    own = "{own: {split: valid, task: {min_length: 6, max_length: 7, valid: 12}, while_training: true}}"
    file = tmp_path / "mine.yaml"
    more = f"seeds: [1]\nevaluate: {{every: 4, best: loss@own, tests: {own}}}\n"
    file.write_text(RECIPE.replace(", c: {model.norm: rms}", "").replace("untuned: true", "untuned: false") + more)
    Sweep(loading.load(str(file)), create_registry(), tmp_path / "out").run()
    for variant in "ab":
        losses = {}
        for trial in (tmp_path / "out/tuning" / variant).glob("trial-*"):
            results = json.loads((trial / "results.json").read_text("utf-8"))
            losses[yaml_lines.load_file(trial / "recipe.yaml")[0]["train"]["schedule"]["peak"]] = results["valid"][
                "loss@own"
            ]
        run = yaml_lines.load_file(tmp_path / "out" / variant / "seed-1/recipe.yaml")[0]
        assert len(losses) == 3 and run["train"]["schedule"]["peak"] == min(losses, key=losses.__getitem__)
