"""A component cannot join the registry without a reference: of most kinds a function of its name in KIND_numpy.py, with
which the kit compares it; what has no forward pass is in a table of the tests that hold it to its paper."""

import importlib

import pytest
import test_optimizer_papers

KINDS = ("attention", "position", "norm", "placement", "feed_forward", "head", "schedule")
TABLES = {"optimizer": test_optimizer_papers.OPTIMIZERS, "initializer": test_optimizer_papers.INITIALIZERS}


@pytest.mark.parametrize("kind", [*KINDS, *TABLES])
def test_every_component_has_a_reference(registry, kind):
    ours = [entry for entry in registry if entry.kind == kind and entry.provider.source == "paddle-tfm"]
    right = {entry.name for entry in ours if not entry.wrong_on_purpose}
    table = TABLES[kind] if kind in TABLES else vars(importlib.import_module(f"{kind}_numpy"))
    assert right == {name for name in right if callable(table.get(name)) or name in TABLES.get(kind, ())}
