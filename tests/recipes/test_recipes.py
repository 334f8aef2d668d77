"""Every recipe that ships loads, is sound, explains itself, and trains."""

from __future__ import annotations

import json
import math
from importlib.util import find_spec

import pytest

import paddle_tfm
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.model.size import num_parameters
from paddle_tfm.plugins import create_plugins
from paddle_tfm.recipe import loading as recipe
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.recipe.reading import shipped
from paddle_tfm.recipe.sections import keys
from paddle_tfm.recipe.settings import Settings
from paddle_tfm.registry import Registry
from paddle_tfm.sweep.check import check
from paddle_tfm.train.run import create
from paddle_tfm.train.trainer import Trainer

RECIPES = sorted(shipped())
NEEDS = {"multi30k-published": "sacremoses"}  # recipe → the optional package of one of its components

# enough to learn a vocabulary from, small enough to be nothing
SMALL = (
    "train.steps=2",
    "evaluate.every=2",
    "evaluate.examples=2",
    "train.max_tokens=256",
    "search={name: greedy, max_length: 5}",  # a model that has learned nothing finds no end: most of the cost
    "evaluate.search={name: greedy, max_length: 5}",
    "seeds=[1]",
)
DATA = {
    "copy": ("task.train=200", "task.valid=4", "task.test=2"),
    "reverse": ("task.train=200", "task.valid=4", "task.test=2"),
    "sort_indices": ("task.train=200", "task.valid=4", "task.test=2"),
    "names": ("task.train=200", "task.valid=4", "task.test=2"),
    "questions": ("task.train=200", "task.valid=4", "task.test=2"),
    "dates": ("task.train=200", "task.valid=4", "task.test=2"),
    "parallel": (),
}


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry(create_plugins())


def with_its_package(name: str):
    missing = name in NEEDS and find_spec(NEEDS[name]) is None
    return pytest.param(name, marks=pytest.mark.skipif(missing, reason="its optional package is not installed"))


def task(data: dict) -> str:
    return data["task"] if isinstance(data["task"], str) else data["task"]["name"]


@pytest.mark.parametrize("name", map(with_its_package, RECIPES))
def test_it_is_sound_and_every_variant_s_model_builds(name, registry):
    runs = check(recipe.load(name), registry)
    assert runs


def test_each_explains_itself():
    for name in RECIPES:
        text = shipped()[name].read_text("utf-8")
        header = [line for line in text.split("\n\n")[0].splitlines() if line.startswith("#")]
        assert text.startswith("# "), "a comment says first what it is for"
        assert len(" ".join(header).split()) >= 15, name
        data = recipe.load(name).data
        assert data["name"] == name.rpartition("/")[2], name  # a recipe in a folder is named without it
        assert 10 < len(data["summary"]) <= 100 and not data["summary"].endswith("."), name
        assert any(unit in data["duration"] for unit in ("second", "minute", "hour")), name
        assert max(map(len, text.splitlines())) <= 125, name


def test_comparisons_name_variants_that_differ():
    for name in RECIPES:
        loaded = recipe.load(name)
        several = {run.variant: {**run.data, "variant": None} for run in loaded.runs()}
        resolved = [json.dumps({**data, "seeds": None}, sort_keys=True) for data in several.values()]
        assert len(set(resolved)) == len(resolved), name
        assert len(several) == 1 or loaded.data["baseline"] in loaded.written_variants(), name


def test_base_holds_every_setting():
    """A recipe that starts from base.yaml lacks nothing."""
    written, _ = yaml_lines.load_file(shipped()["base"])
    fields = Settings.model_fields
    # What came later stands there as a comment: a key more would be another identity of every run.
    later = {
        "model": {"source_end"},
        "train": {"gradient_norms", "kernels", "shards", "from", "vocabulary", "redraw", "freeze", "rate_factors"},
        "evaluate": {"tests"},
        "vocabulary": {"file", "symbols"},
    }
    for section in ("model", "train", "evaluate", "vocabulary"):
        of_section = set(keys(fields[section].annotation))
        assert set(written[section]) | later.get(section, set()) == of_section
    assert set(fields) - set(written) == {
        "requires",
        "baseline",
        "variant",
        "variants",
        "grid",
        "ablate",
        "claims",
        "fast",
        "size",
        "ladder",
        "equal",
        "tune",
    }


def brings_its_texts(name: str) -> bool:
    """Whether nothing is fetched, and no file of the user's is read."""
    task = recipe.load(name).data["task"]
    return name != "vaswani-base" and (isinstance(task, str) or task.keys().isdisjoint(("dataset", "datasets")))


TRAINED = [name for name in RECIPES if brings_its_texts(name)]


def require_trained(results: dict) -> None:
    assert results["steps"] == 2
    assert results["diverged"] is None
    assert math.isfinite(results["test"]["loss"])


@pytest.mark.parametrize("name", [name for name in TRAINED if "/" not in name])
def test_its_last_variant_trains_a_few_steps(name, registry, tmp_path):
    """At the size that a ladder ends with. Findings are of the same tasks."""
    run = recipe.load(name, [*SMALL, *DATA[task(recipe.load(name).data)]]).expand()[0][-1]
    plan = plan_run(run, registry).require_sound(name)
    require_trained(Trainer(create(plan, tmp_path / "run", load_corpus(plan)), registry.plugins).train())


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_it_trains_a_few_steps(name, tmp_path):
    """All that it trains: variants, sizes and trials."""
    data = recipe.load(name).data
    trials = ["tune.trials=2", "tune.widen=0"] if "tune" in data else []
    folders = paddle_tfm.run(name, [*SMALL, *DATA[task(data)], *trials], out=tmp_path)
    assert len(folders) == len(recipe.load(name).variants())
    for folder in folders:
        require_trained(json.loads((folder / "results.json").read_text("utf-8")))


# --------------------------------------------------------------------------------------- the base model of the paper


def count_by_hand(d_model, d_ff):
    """One table for source, target and output; 6 + 6 layers (arXiv:1706.03762, section 3)."""
    attention, feed_forward = 4 * (d_model * d_model + d_model), 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    encoder = 6 * (attention + feed_forward + 2 * norm)
    decoder = 6 * (2 * attention + feed_forward + 3 * norm)
    return 37_000 * d_model + encoder + decoder


def test_the_base_model_of_2017_has_the_size_of_the_paper():
    """The whole vocabulary and all layers, built narrower; at the paper's widths the same sum is the paper's."""
    data = recipe.load("vaswani-base").data["model"]
    assert count_by_hand(data["d_model"], data["d_ff"]) == 63_082_496
    sizes = {"source_vocabulary": 37_000, "target_vocabulary": 37_000}
    model = paddle_tfm.build_model("vaswani-base", ["model.d_model=32", "model.d_ff=128"], **sizes)
    assert num_parameters(model) == count_by_hand(32, 128)


# --------------------------------------------------------------------------------------------------- a published size


def test_the_published_size_is_that_of_the_paper():
    """4 + 4 layers, d 128, FFN 256, one table of 8,000 pieces, 256 bytes among them, and the special tokens
    (`transformer_tiny` of github.com/LividWo/Revisit-MMT); positions add no parameter."""
    data = recipe.load("multi30k-published").data
    size = data["tokenizer"]["size"] + 4
    model = paddle_tfm.build_model("multi30k-published", source_vocabulary=size, target_vocabulary=size)
    attention, feed_forward, norm = 4 * (128 * 128 + 128), 2 * 128 * 256 + 256 + 128, 2 * 128
    encoder, decoder = 4 * (attention + feed_forward + 2 * norm), 4 * (2 * attention + feed_forward + 3 * norm)
    ends = 2 * norm  # pre-norm: one more norm ends each stack
    assert num_parameters(model) == size * 128 + encoder + decoder + ends
