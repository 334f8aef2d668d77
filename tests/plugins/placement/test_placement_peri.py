"""Peri-LN is sandwich with one norm more: what that is for."""


def test_the_size_of_the_embeddings_does_not_matter_to_peri_and_does_to_sandwich(make_model, make_batch):
    """2502.02732: what enters the residual stream is normalized, so that it is on the scale of what branches add."""
    batch = make_batch()
    for name, matters in (("peri", False), ("sandwich", True)):
        model = make_model(f"model.placement={name}", "model.position=rotary")
        before, _ = model(batch)
        for embedding in (model.source_embedding, model.target_embedding):
            embedding.weight.set_value(embedding.weight * 30.0)
        after, _ = model(batch)
        assert (float((after - before).abs().max()) > 1e-2) is matters, name
