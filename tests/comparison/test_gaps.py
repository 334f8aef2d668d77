"""All in which two sides of a comparison differ, and what a difference of their scores may be owed to."""

import json

import pytest

from paddle_tfm.comparison.gaps import ALL, LAST_BITS, MACHINE, OF_A_MACHINE, Side, confounds, gaps, last_bits, side_of
from paddle_tfm.comparison.runs.finished import Result
from paddle_tfm.comparison.runs.trained_from import recipe_of
from paddle_tfm.recipe.differences import ABSENT, with_defaults
from paddle_tfm.recipe.loading import load
from paddle_tfm.runs.changes import BUILD, OF_A_BUILD


def run(folder, recipe="task: reverse\n", seconds=10.0, version="1.0", **more):
    """A finished run's folder, with what is read of it."""
    folder.mkdir(parents=True)
    identity = {"components": {"norm mine": f"my-norm {version}", "task reverse": "paddle_tfm 1"}, "paddle": "3.3 abc"}
    identity |= {"data": {"train": "a" * 64, "test": "b" * 64}, "blas": "SKX", "shards": 2} | more.pop("identity", {})
    training = {"processor": "Zen", "cores": 2, "versions": {"numpy": "2.0"}, "peak_memory_mib": 500}
    training |= more.pop("training", {})
    results = {"parameters": 1000, "matrix_parameters": 800, "tokens": 5000, "seconds": seconds}
    results |= {"decoding": {"sentences": 10, "tokens": 100, "seconds": 1.0}} | more
    (folder / "recipe.yaml").write_text(recipe, "utf-8")
    for name, data in (("identity", identity), ("about", {"trainings": [training]}), ("results", results)):
        (folder / f"{name}.json").write_text(json.dumps(data), "utf-8")
    return folder


def made(name, folders):
    """The side that runs of these folders are."""
    files = [folder / "results.json" for folder in folders]
    results = [json.loads(file.read_text("utf-8")) if file.exists() else {} for file in files]
    runs = [Result(folder, name, 1, of_run) for folder, of_run in zip(folders, results)]
    return side_of(name, runs, recipe_of(folders[0]))


def test_each_thing_that_is_changed_is_found_alone(tmp_path):
    base = made("a", [run(tmp_path / "a")])
    changes = {
        ("settings", "task", "reverse", "copy"): {"recipe": "task: copy\n"},
        ("plugins", "norm mine", "my-norm 1.0", "my-norm 1.1"): {"version": "1.1"},
        ("data", "texts of test", "b" * 12, "c" * 12): {"identity": {"data": {"train": "a" * 64, "test": "c" * 64}}},
        ("build", "paddle", "3.3 abc", "3.4 def"): {"identity": {"paddle": "3.4 def"}},
        ("build", "shards", 2, 1): {"identity": {"shards": 1}},
        ("machine", "processor", "Zen", "Arm"): {"training": {"processor": "Arm"}},
        ("machine", "numpy", "2.0", "1.26"): {"training": {"versions": {"numpy": "1.26"}}},
    }
    for number, (gap, change) in enumerate(changes.items()):
        assert gaps(base, made("b", [run(tmp_path / str(number), **change)])) == [gap]
    assert gaps(base, made("b", [run(tmp_path / "same")])) == []


def test_a_run_without_kernels_differs_by_that_setting_alone(tmp_path):
    kernels = {f"kernel {name}": f"fast 1.0 sha256:{name}" for name in ("linear", "relu")}
    base = made("a", [run(tmp_path / "a", identity={"components": {"task reverse": "paddle_tfm 1", **kernels}})])
    without = run(
        tmp_path / "b",
        "task: reverse\ntrain: {kernels: false}\n",
        identity={"components": {"task reverse": "paddle_tfm 1"}},
    )
    (gap,) = gaps(base, made("b", [without]))
    assert gap == ("settings", "train", ABSENT, {"kernels": False})  # and none for each kernel
    other = {"task reverse": "paddle_tfm 1", **kernels, "kernel relu": "fast 1.1 sha256:relu2"}
    (gap,) = gaps(base, made("c", [run(tmp_path / "c", identity={"components": other})]))
    assert gap[:2] == ("plugins", "kernel relu")


def test_what_may_change_last_bits_says_so(tmp_path):
    """Of build and machine; a difference of settings changes more than last bits."""
    base = made("a", [run(tmp_path / "a")])
    other = run(tmp_path / "b", "task: copy\n", identity={"shards": 1}, training={"processor": "Arm", "cores": 64})
    found = {gap.what: last_bits(gap) for gap in gaps(base, made("b", [other]))}
    assert found.keys() == {"task", "shards", "processor", "cores"}
    assert found["task"] is None and found["cores"] == "changes no bit"
    assert found["shards"].startswith("changes last bits: the gradients of a batch are summed in other parts")
    assert found["processor"].startswith("may change last bits")
    of_each = {(BUILD, what) for what in OF_A_BUILD} | {(MACHINE, what) for what in OF_A_MACHINE}
    for section, what in of_each | {(MACHINE, what) for what in ("paddle_tfm", "paddle", "python", "numpy")}:
        assert LAST_BITS[section][what].startswith(("changes last bits", "may change last bits", "changes no bit"))


def test_a_component_that_one_side_has_is_a_setting_unless_somebody_else_provides_it(tmp_path):
    base = made("a", [run(tmp_path / "a")])
    ours = {"norm mine": "my-norm 1.0", "task reverse": "paddle_tfm 1", "norm rms": "paddle_tfm 1"}
    assert gaps(base, made("b", [run(tmp_path / "b", identity={"components": ours})])) == []
    theirs = {**ours, "norm rms": "other 2"}
    found = gaps(base, made("c", [run(tmp_path / "c", identity={"components": theirs})]))
    assert found == [("plugins", "norm rms", ABSENT, "other 2")]


OWED = ": this may explain a difference of scores"


@pytest.mark.parametrize(
    ("change", "sentences"),
    [
        ({"parameters": 1021}, [f"2.1% more parameters than a{OWED}"]),
        ({"parameters": 1009}, ["0.9% more parameters than a"]),
        ({"tokens": 4998}, ["less than 0.1% fewer tokens of training than a"]),
        ({"parameters": 900}, [f"10.0% fewer parameters than a{OWED}"]),
        (
            {"matrix_parameters": 880},
            [f"10.0% more operations for each token of training than a{OWED}"],
        ),
        ({"decoding": {"tokens": 100, "seconds": 1.5}}, ["+50.0% time for each token that is written"]),
        ({"decoding": {"tokens": 100, "seconds": 1.2}}, []),  # nobody repeats a search to 20%
        ({"decoding": {"tokens": 200, "seconds": 2.0}}, []),
        ({"decoding": {"tokens": 10, "seconds": 0.9}}, []),  # too short to be measured
        ({"tokens": 10000}, [f"100% more tokens of training than a{OWED}"]),
        ({"seconds": 12.5}, ["+25.0% time: in equal time it would train 20% fewer steps"]),
        ({"seconds": 8.0}, ["−20.0% time: in equal time it would train 25% more steps"]),
        ({"seconds": 10.4}, []),  # nobody repeats a training to 4%
        (
            {"tokens": 10000, "seconds": 20.0},  # twice as long, and not slower
            [f"100% more tokens of training than a{OWED}", "+100% time of training"],
        ),
        ({"training": {"peak_memory_mib": 600}}, ["+20.0% memory of tensors at its peak"]),
        ({"seconds": 20.0, "training": {"processor": "Arm"}}, []),  # times of two machines
    ],
)
def test_what_a_difference_of_scores_may_be_owed_to(change, sentences, tmp_path):
    one, other = made("a", [run(tmp_path / "a")]), made("b", [run(tmp_path / "b", **change)])
    assert [each.sentence for each in confounds(one, other)] == sentences


@pytest.mark.parametrize("other", [{"shards": 1}, {"processes": 2}, {"threads": 4}])
def test_times_are_of_the_variants_only_where_as_many_compute_a_batch(other, tmp_path):
    base = made("a", [run(tmp_path / "a")])
    slower = run(tmp_path / "b", seconds=100.0)
    assert [each.what for each in confounds(base, made("b", [slower]))] == ["seconds"]
    divided = made("d", [run(tmp_path / "d", seconds=100.0, identity=other)])
    assert list(confounds(base, divided)) == []


def test_a_search_is_timed_over_all_seeds(tmp_path):
    """A seed whose outputs are short takes long for each of its tokens, and hardly counts."""
    runs = {1: {"tokens": 900, "seconds": 1.8}, 2: {"tokens": 100, "seconds": 0.7}}
    folders = [run(tmp_path / str(seed), decoding=decoding) for seed, decoding in runs.items()]
    assert made("a", folders).costs["decoding_seconds"] == {ALL: pytest.approx(2.5 / 1000)}


def test_times_that_overlap_between_seeds_are_noise():
    def side(*seconds: float) -> Side:
        return Side("", {}, {}, {"seconds": {f"seed-{seed}": each for seed, each in enumerate(seconds, 1)}})

    assert not list(confounds(side(10.0, 12.0), side(11.5, 14.0)))
    assert [each.percent for each in confounds(side(10.0, 12.0), side(13.0, 14.5))] == [pytest.approx(25.0)]


def test_what_is_not_known_is_left_out(tmp_path):
    full, bare = run(tmp_path / "full"), tmp_path / "bare"
    bare.mkdir()
    (bare / "recipe.yaml").write_text("task: reverse\n", "utf-8")
    (bare / "about.json").write_text("{", "utf-8")
    one, other = made("a", [full]), made("b", [bare])
    assert gaps(one, other) == [] and not list(confounds(one, other))


def test_defaults_are_those_of_the_constructors(registry):
    """Read from sources, without importing the classes; here the classes are asked."""
    from inspect import signature

    data = with_defaults(
        load("base", ["model.norm={encoder: {name: batch, momentum: 0.5}, decoder: layer}"]).data, registry
    )
    batch = signature(registry.entry("norm", "batch").load()).parameters
    own = {key: batch[key].default for key in ("eps", "population")}
    assert data["model"]["norm"]["encoder"] == {"name": "batch", **own, "momentum": 0.5}
    assert data["model"]["norm"]["decoder"]["name"] == "layer"
    assert data["evaluate"]["metrics"][0]["name"] and data["train"]["optimizer"]["name"] == "adam"
