"""A component cannot join the registry without a reference: each kind's table names what its tests hold to a paper."""

import pytest
import test_attention_papers
import test_feed_forward_papers
import test_head_papers
import test_latent_and_fading_papers
import test_mixer_papers
import test_norm_papers
import test_optimizer_papers
import test_placement_papers
import test_position_papers
import test_schedule_papers

REFERENCES = {
    "attention": test_attention_papers.REFERENCES
    | test_mixer_papers.REFERENCES
    | test_latent_and_fading_papers.REFERENCES,
    "position": test_position_papers.REFERENCES,
    "norm": test_norm_papers.REFERENCES,
    "placement": test_placement_papers.REFERENCES,
    "feed_forward": test_feed_forward_papers.REFERENCES,
    "head": test_head_papers.REFERENCES,
    "schedule": test_schedule_papers.REFERENCES,
    "optimizer": test_optimizer_papers.OPTIMIZERS,
    "initializer": test_optimizer_papers.INITIALIZERS,
}
COMPOSED = {"position": {"none", "chain"}, "norm": {"none"}}  # nothing of their own: tested as what they are made of


@pytest.mark.parametrize("kind", REFERENCES)
def test_every_component_has_a_reference(registry, kind):
    ours = [entry for entry in registry if entry.kind == kind and entry.provider.source == "paddle-tfm"]
    right = {entry.name for entry in ours if not entry.wrong_on_purpose}
    assert right == set(REFERENCES[kind])
    composed = {name for name, reference in REFERENCES[kind].items() if reference == "composition"}
    assert composed == COMPOSED.get(kind, set())
