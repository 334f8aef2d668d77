"""Shipped components at options other than their defaults: one option at a time, another value each that it accepts, under
the checks that an option can break."""

import typing

import pytest

from paddle_tfm import create_registry
from paddle_tfm.errors import UserError
from paddle_tfm.testing import examine

pytestmark = pytest.mark.conformance
REGISTRY = create_registry()
KINDS = ("attention", "position", "norm", "placement", "feed_forward", "head")
CHECKS = frozenset(
    {
        *(
            "runs",
            "deterministic",
            "modes",
            "shapes",
            "registered",
            "causal",
            "padding",
            "cached",
            "beams",
            "gradients",
        ),
        *("averages", "values", "temperature", "heads_differ", "reaches", "precision", "inputs_unchanged", "dropout"),
        *("pure", "positions_differ", "relative", "nearness", "rows_reached", "invariances", "momentum", "both_signs"),
        *("identity_path", "each_branch_once", "own_norms", "sums_to_one", "loss_is_log_prob", "smoothing"),
    }
)


def other_values(option):
    """Values that an option may have instead of its default."""
    choices = typing.get_args(option.annotation)
    if typing.get_origin(option.annotation) is typing.Literal:
        return [value for value in choices if value != option.default]
    if isinstance(option.default, bool):
        return [not option.default]
    if isinstance(option.default, int):
        return [option.default + 1]
    if isinstance(option.default, float):
        return [option.default / 2] if option.default else [0.1]
    return []


def settings():
    for entry in REGISTRY:
        if entry.kind in KINDS and not entry.wrong_on_purpose:
            for option in REGISTRY.options(entry.kind, entry.name).values():
                for value in [] if option.required else other_values(option):
                    yield pytest.param(entry.kind, entry.name, {option.name: value},
                                       id=f"{entry.kind} {entry.name} {option.name}={value}")  # fmt: skip


@pytest.mark.parametrize("kind, name, options", settings())
def test_a_shipped_component_passes_at_other_options(kind, name, options):
    try:
        report = examine(kind, name, options, registry=create_registry(), only=CHECKS)
    except UserError as refusal:
        pytest.skip(str(refusal))
    assert [str(outcome) for outcome in report.failures] == []
