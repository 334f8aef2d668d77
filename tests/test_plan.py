"""The plan of a run: every component resolved once, all problems at once across phases, nothing checked again."""

from __future__ import annotations

import types

import pytest

from paddle_tfm import load_recipe
from paddle_tfm.components import ComponentPlan
from paddle_tfm.errors import RecipeError
from paddle_tfm.hookspecs import WrongOnPurpose, hookimpl
from paddle_tfm.model.build import build
from paddle_tfm.plugins import create_plugins
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.registry import Registry
from paddle_tfm.sweep.check import check, remarks

SMALL = ["model.d_model=16", "model.num_heads=2", "model.d_ff=24", "model.encoder_layers=1", "model.decoder_layers=1"]


def planned(registry, *overrides):
    return plan_run(load_recipe("base", [*SMALL, *overrides]).runs()[0], registry)


def problem_paths(registry, *overrides) -> list[str]:
    """The paths of all problems of base.yaml with these overrides."""
    with pytest.raises(RecipeError) as caught:
        check(load_recipe("base", [*SMALL, *overrides]), registry)
    return [problem.path for problem in caught.value.problems]


# ------------------------------------------------------------------------------------------- all problems at once


def test_wrong_structure_does_not_hide_what_is_wrong_with_components(registry):
    paths = problem_paths(
        registry,
        "train.steps=many",
        "search={name: beam, size: 0}",
        "train.optimizer={name: adam, beta1: 3}",
        "model.head=tie",
        "model.num_heads=3",
        "evaluate.best=blue",
        "requires=[absent]",
    )
    assert sorted(paths) == sorted(
        ["train.steps", "search", "train.optimizer", "model.head", "model.attention", "evaluate.best", "requires"]
    )


def test_a_model_section_of_wrong_structure_hides_no_other_section(registry):
    """Nor is a schedule that needs the width said to lack it."""
    paths = problem_paths(registry, "model.d_ff=wide", "model.norm=layr", "search={name: beam, size: 0}")
    assert sorted(paths) == ["model.d_ff", "model.norm", "search"]


def test_a_component_that_is_wrong_leaves_its_neighbours_to_be_tried(registry):
    """Norms that are unknown, an encoding that its attention does not support, a feed-forward that refuses."""
    paths = problem_paths(
        registry,
        "model.norm={encoder: layr, decoder: layer}",
        "model.attention={encoder: multihead, decoder: linear}",
        "model.position={encoder: sinusoidal, decoder: alibi}",
        "model.feed_forward={name: mixture_of_experts, experts: 0}",
    )
    assert sorted(paths) == ["model.feed_forward", "model.norm.encoder", "model.position.decoder"]


def test_a_misspelled_metric_is_one_problem_though_it_may_be_the_best_one(registry):
    assert problem_paths(registry, "evaluate.metrics=[exact_mach]") == ["evaluate.metrics[0]"]
    assert problem_paths(registry, "evaluate.metrics=[perplexity]") == ["evaluate.best"]


def test_every_metric_that_is_twice_is_a_problem(registry):
    metrics = "evaluate.metrics=[exact_match, exact_match, perplexity, loss, perplexity]"
    assert sorted(problem_paths(registry, metrics)) == [f"evaluate.metrics[{i}]" for i in (1, 3, 4)]


@pytest.mark.parametrize(
    ("overrides", "path"),
    [
        (["model.placement=sub_ln", "model.attention=single_head"], "model.attention"),
        (["model.decoder_layers=0", "model.head=pointer", "train.max_ratio=null"], "model.head"),
        (["model.share_embeddings=true"], "model.share_embeddings"),
    ],
)
def test_neighbours_that_do_not_fit_are_problems_of_the_plan(registry, overrides, path):
    """Whoever plans knows, before anything of the model is built; and a plan with problems is not built."""
    plan = planned(registry, *overrides)
    assert path in [problem.path for problem in plan.problems]
    assert all(problem.file for problem in plan.problems)
    with pytest.raises(RecipeError):
        plan.require_sound("base")
    if path != "model.share_embeddings":  # that is between two sections
        with pytest.raises(RecipeError):
            build(plan.model, 13, 13)


# ------------------------------------------------------------------------------------------------- resolved once


def test_components_are_resolved_with_their_options_as_types(registry):
    plan = planned(registry, "model.position={name: chain, parts: [sinusoidal, {name: rotary, base: 500}]}")
    chain = plan.model.at("position", "decoder", "self")
    assert chain is plan.model.at("position", "encoder", "self") is plan.components["model.position"]
    assert plan.model.at("position", "decoder", "cross") is None
    assert [part.name for part in chain.walk()] == ["chain", "sinusoidal", "rotary"]
    rotary = chain.options["parts"][1]
    assert (rotary.path, rotary.options) == ("model.position.parts[1]", {"base": 500.0})
    assert isinstance(rotary.options["base"], float)
    assert plan.providers()["position rotary"].startswith("position ")
    assert plan.tokenizer("source") is plan.tokenizer("target")


def test_building_a_plan_resolves_and_coerces_nothing(registry, monkeypatch):
    """The walk of a key ends where the plan begins: building only calls constructors."""
    plan = planned(registry, "model.norm={encoder: {name: layer, eps: 1e-3}, decoder: rms}")

    def refuse(*arguments):
        raise AssertionError("resolved again")

    for name in ("resolve", "entry", "build", "_values", "_value"):
        monkeypatch.setattr(Registry, name, refuse)
    model = build(plan.model, 13, 13)
    assert model.encoder.layers[0].placement.norms[0].eps == 1e-3
    for component in plan.components.values():
        if not component.path.startswith("model."):
            component.build(d_model=16, steps=3)


def test_one_instance_does_not_see_what_another_did_to_its_options():
    class Collecting:
        def __init__(self, items):
            self.items = items

    plan = ComponentPlan("task", "mine", "task", Collecting, options={"items": ["a"]}, parameters={"items": True})
    plan.build().items.append("b")
    assert plan.build().items == ["a"]


def test_expected_failures_are_said_once_for_a_decoder(registry):
    recipe = load_recipe(
        "base", [*SMALL, "model.norm={encoder: batch, decoder: batch}", "seeds=[1, 2]", "train.batches=mixed"]
    )
    (sentence,) = remarks(check(recipe, registry))
    assert sentence.startswith("default: norm 'batch' in the decoder: ")
    encoder = load_recipe("base", [*SMALL, "model.norm={encoder: batch, decoder: layer}"])
    assert "later ones" not in "".join(remarks(check(encoder, registry)))


def test_norms_over_a_batch_and_batches_of_one_length_are_remarked_on_once(registry):
    def said(norm, *more):
        return remarks(
            check(load_recipe("base", [*SMALL, f"model.norm={{encoder: {norm}, decoder: layer}}", *more]), registry)
        )

    (sentence,) = said("batch", "seeds=[1, 2]")
    assert sentence.startswith("default: norms over a batch (batch) ")
    assert sentence.endswith("compare with train.batches=mixed")
    assert len(said("{name: power, population: 5}")) == 1
    assert said("batch", "train.batches=mixed") == said("rms") == said("group") == []


# ------------------------------------------------------------------------------------------------ wrong on purpose


def test_what_is_wrong_on_purpose_works_by_name_and_is_not_listed():
    module = types.ModuleType("mistakes")
    targets = {"good": "somewhere:Good", "unscaled": WrongOnPurpose("somewhere:Unscaled")}
    module.register_norms = hookimpl(lambda: targets)
    plugins = create_plugins()
    plugins.manager.register(module, name="mistakes")
    registry = Registry(plugins)
    assert registry.entry("norm", "unscaled").wrong_on_purpose and not registry.entry("norm", "good").wrong_on_purpose
    assert registry.entry("norm", "unscaled").target == "somewhere:Unscaled"
    assert "good" in registry.names("norm") and "unscaled" not in registry.names("norm")
    (problem,) = registry.resolve("norm", "unscale", "model.norm").problems
    assert "did you mean 'unscaled'?" in problem.message
    assert "unscaled" not in problem.message.partition("Known: ")[2]


# ------------------------------------------------------------------------------------------------------- registry
