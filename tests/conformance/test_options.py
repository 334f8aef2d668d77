"""Shipped components at options other than their defaults, one option at a time, under the checks that an option can
break: switches, choices, and values that a default says nothing about. Small and large values of numbers are tried by
the check `choices` of each component. Which values are refused is pinned, so that none slips away as a skip."""

from functools import cached_property

import pytest

from paddle_tfm import create_registry
from paddle_tfm.errors import UserError
from paddle_tfm.recipe.uses import default
from paddle_tfm.testing import FAIL, SKIP, checks, run_checks
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.other_options import AtAllSites, other_values

pytestmark = pytest.mark.conformance
REGISTRY = create_registry()
KINDS = ("attention", "position", "norm", "placement", "feed_forward", "head")

LEFT_OUT = {
    *("cost", "known_formula", "options", "choices"),  # no invariants, or what is done here
    *("learns", "half_precision"),  # it takes long, and says no more than `trains`; it needs a GPU
    # What is kept between calls, drawn or done in training is the same at every value of an option.
    *("stateless", "saved", "repeatable", "evaluation"),
    *("causal_in_training", "padding_in_training", "neighbours_in_training"),
}

# Checks that no shipped component gives anything to look at: own rates of dropout, losses that are added, branches left out
# by chance. The mutants and the right ones of this folder do.
OF_NONE_SHIPPED = {
    "attention": {"aux_losses"},
    "placement": set(),
    **{kind: {"dropout"} for kind in ("position", "norm", "feed_forward", "head")},
}

# Values of options whose default says nothing about others: it is None, a list or a component, or must divide a width.
BY_HAND = {
    ("feed_forward", "canon", "inner"): ["swiglu"],
    ("attention", "lora", "projections"): [["output"], ["query", "key", "value", "output"]],
    ("attention", "convolution", "kernel"): [4, 2, [3, 8]],
    ("attention", "grouped_query", "kv_heads"): [2],
    ("attention", "kimi_delta", "expand"): [2, 3],
    ("attention", "mla", "latent"): [1, 12],
    ("attention", "mla", "rotary_dim"): [2, 6],
    ("attention", "mla", "query_latent"): [5],
    ("attention", "recurrent", "hidden"): [5, 32],
    ("attention", "sigmoid", "length"): [1, 50],
    ("attention", "single_head", "head_size"): [5],
    ("attention", "synthesizer", "hidden"): [5],
    ("norm", "group", "groups"): [1, 2, 8],
    ("norm", "derf", "shift"): [-0.4, 0.4],
    ("placement", "attention_residuals", "block"): [2, 4],
    ("placement", "keel", "alpha"): [1.0, 50.0],
    ("placement", "layer_scale", "initial"): [1e-6, 2.0],
    ("placement", "steps", "before"): ["n"],
    ("placement", "steps", "self_before"): ["n"],
    ("placement", "steps", "after"): ["nda"],
    ("placement", "steps", "embedding"): ["n"],
    ("placement", "steps", "top"): ["n"],
    ("position", "chain", "parts"): [["sinusoidal", "alibi"], ["learned", "rotary", "t5"]],
    ("position", "cope", "positions"): [2, 5],
    ("position", "nope_hybrid", "encoding"): ["alibi", "shaw"],
    ("position", "pope", "spread"): [1.0, 6.0],
    ("position", "randomized", "encoding"): ["rotary", "alibi", "shaw"],
    ("position", "randomized", "longest"): [200],
    ("position", "randomized", "stride"): [1, 2],
    ("position", "rotary", "fraction"): [0.25, 0.5],
    ("position", "t5", "buckets"): [4, 8, 64],
    ("position", "xpos", "scale_base"): [256.0, 2048.0],  # with less, scores stop fading before the farthest position
    ("position", "yarn", "trained_length"): [4, 200],
    ("feed_forward", "mixture_of_experts", "top_k"): [1, 5],
    ("head", "adaptive", "cutoffs"): [[5], [5, 7, 10]],
    ("head", "fix", "scale"): [0.5, 20.0],
    ("head", "linear", "cap"): [1.0, 50.0],
    ("head", "tied", "cap"): [1.0, 50.0],
}
HEAD_DIM = [1, 6]  # of every attention that has the option

WITH_OTHERS = [  # options that only act beside another one, or are accepted only there
    ("attention", "synthesizer", {"mode": "random", "rank": 1}),
    ("attention", "synthesizer", {"mode": "random", "rank": 9}),
    ("attention", "mla", {"head_dim": 3, "rotary_dim": 2}),
    ("feed_forward", "mixture_of_experts", {"experts": 6, "top_k": 5}),
]

REFUSED = {  # settings out of an option's range
    "attention mla head_dim=1",  # half of it is rotated
    "attention exclusive head_dim=1",  # nothing is left beside the token's own value
    "feed_forward mixture_of_experts top_k=5",  # of 4 experts
}


def values_of(kind, name, option):
    """Values that an option may have instead of its default."""
    if (kind, name, option.name) in BY_HAND:
        return BY_HAND[kind, name, option.name]
    if option.name == "head_dim":
        return HEAD_DIM
    return other_values(option) if isinstance(option.default, (bool, str)) else []


def is_varied_elsewhere(option):
    """Numbers that a model has for all of its components: the models that components are checked in differ in them. And
    numbers whose default says what is small and large: the check `choices` varies them."""
    if option.required:
        return option.name in ("num_heads", "dropout", "d_ff")
    return isinstance(option.default, (int, float)) and not isinstance(option.default, bool)


def all_options():
    """(kind, name, option) of all shipped components."""
    for entry in REGISTRY:
        if entry.kind in KINDS and not entry.wrong_on_purpose:
            for option in REGISTRY.options(entry.kind, entry.name).values():
                yield entry.kind, entry.name, option


class AtOneSize(AtAllSites):
    """In models of one of the two sizes; of both where `size` is None."""

    size = None

    @cached_property
    def scenes(self):
        scenes = super().scenes
        sizes = list(dict.fromkeys(scene.size for scene in scenes))
        return [scene for scene in scenes if self.size is None or scene.size == sizes[self.size % len(sizes)]]


def settings():
    """(kind, name, options, size), most with one option each. The values of an option take turns with the sizes: all
    values in both take twice as long."""
    for kind, name, option in all_options():
        values = values_of(kind, name, option)
        for number, value in enumerate(values):
            yield kind, name, {option.name: value}, number if len(values) > 1 else None
    for kind, name, options in WITH_OTHERS:
        yield kind, name, options, None


BY_DESIGN = {  # checks that an option fails, as its docstring says
    "attention raw_keys first=True": {"bidirectional", "averages", "reaches"},  # position 0 reads its own value alone
}


def said(kind, name, options, *_):
    return " ".join([kind, name, *(f"{key}={value}" for key, value in options.items())])


ACCEPTED = [setting for setting in settings() if said(*setting) not in REFUSED]


def is_refused(kind, name, options, *_):
    try:
        ComponentUnderTest(REGISTRY, kind, name, options)
    except UserError:
        return True
    return False


def outcomes_of(kind, name, options, size, only):
    subject = AtOneSize(create_registry(), kind, name, options)
    subject.size = size
    return run_checks(subject, frozenset(only), lambda outcome: None)


def test_each_option_has_another_value():
    settable = {(kind, name, key) for kind, name, options, _ in settings() for key in options}
    for kind, name, option in all_options():
        assert (kind, name, option.name) in settable or is_varied_elsewhere(option), "add it to BY_HAND"
        assert option.default not in values_of(kind, name, option)


def test_which_settings_are_refused():
    """One less is a check of a range that is gone; one more, a range that became narrower, fails below."""
    refused = [setting for setting in settings() if said(*setting) in REFUSED]
    assert {said(*setting) for setting in refused if is_refused(*setting)} == REFUSED


def test_what_is_left_out_are_checks():
    assert not LEFT_OUT - {check.name for kind in KINDS for check in checks(kind)}


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_each_check_is_made_at_some_setting(kind):
    """As it is, or at another option."""
    remaining = {check.name for check in checks(kind)} - LEFT_OUT
    plain = ((kind, entry.name, {}, 0) for entry in REGISTRY if entry.kind == kind and not entry.wrong_on_purpose)
    for setting in [*plain, *(each for each in ACCEPTED if each[0] == kind)]:
        if remaining and not is_refused(*setting):
            remaining -= {each.check.name for each in outcomes_of(*setting, remaining) if each.status != SKIP}
    assert remaining == OF_NONE_SHIPPED[kind]


def marks(kind, name):
    """Without the exhaustive ones, what most recipes have is tried."""
    return () if default(kind) == name else pytest.mark.exhaustive


@pytest.mark.parametrize(
    "kind, name, options, size", [pytest.param(*each, id=said(*each), marks=marks(*each[:2])) for each in ACCEPTED]
)
def test_a_shipped_component_passes_at_other_options(kind, name, options, size):
    checked = {check.name for check in checks(kind)} - LEFT_OUT - BY_DESIGN.get(said(kind, name, options), set())
    outcomes = outcomes_of(kind, name, options, size, checked)
    assert [str(outcome) for outcome in outcomes if outcome.status == FAIL] == []
