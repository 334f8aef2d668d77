"""Which encodings have numbers of their own in each layer, as their papers have them, and which share one set."""

IN_EACH_LAYER = {"cope", "grape_a", "nope_hybrid", "pope", "shaw", "transformer_xl"}


def test_a_layer_has_numbers_of_its_own_where_the_papers_have_them(registry):
    """T5, KERPLE and FIRE share theirs."""
    ours = [entry for entry in registry if entry.kind == "position" and entry.provider.source == "paddle-tfm"]
    plain = [entry for entry in ours if entry.name not in ("chain", "randomized")]  # which are as what they hold
    assert {entry.name for entry in plain if entry.load().per_layer} == IN_EACH_LAYER


def test_each_layer_adds_the_bias_of_its_own_encoding(make_model, make_batch):
    model = make_model("model.position=shaw", "model.encoder_layers=2", "model.decoder_layers=2")
    model.train()
    model.loss(make_batch()).backward()
    norms = {path: float(each.grad.norm()) for path, each in model.named_parameters() if "encodings" in path}
    assert len(norms) >= 4 * 2 and min(norms.values()) > 0, norms
