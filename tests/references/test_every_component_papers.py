"""What has no forward pass cannot join the registry without a reference either: the tests that hold it to its paper have it
in a table. Of all else tests/conformance/test_reference.py asks for a function of its name in KIND_numpy.py."""

import pytest
import test_optimizer_papers

TABLES = {"optimizer": test_optimizer_papers.OPTIMIZERS, "initializer": test_optimizer_papers.INITIALIZERS}


@pytest.mark.parametrize("kind", TABLES)
def test_every_component_has_a_reference(registry, kind):
    ours = [entry for entry in registry if entry.kind == kind and entry.provider.source == "paddle-tfm"]
    assert {entry.name for entry in ours if not entry.wrong_on_purpose} == set(TABLES[kind])
