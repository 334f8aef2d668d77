"""Invariants of models of one stack: whatever the variant, a decoder alone decodes with its cache what it computes at
once and sees no future; an encoder alone labels each source as if nothing else were in the batch."""

import numpy as np
import paddle
import pytest

from paddle_tfm import RecipeError, create_registry
from paddle_tfm.data.batches import Batch

DECODER = ["model.encoder_layers=0", "evaluate.metrics=[perplexity]", "evaluate.best=perplexity"]
TOKENS = ["model.decoder_layers=0"]
SEQUENCE = ["model.decoder_layers=0", "model.labels=sequence"]
SHAPES = {"decoder-only": DECODER, "tokens": TOKENS, "sequence": SEQUENCE}
OPTIONS = {  # of components that cannot be built without any
    ("position", "chain"): "{name: chain, parts: [sinusoidal, alibi]}",
    ("position", "randomized"): "{name: randomized, encoding: sinusoidal, longest: 100}",
    ("feed_forward", "canon"): "{name: canon, inner: relu}",
}
OF_TWO = ("pointer", "pointer_coverage", "pointer_network", "merged")  # what takes a source and a target
CAUSAL = ("xpos", "cope", "forgetting", "gated_deltanet", "kimi_delta")  # what an encoder refuses
KINDS = ("attention", "norm", "placement", "position", "feed_forward", "head", "initializer")


def each_component():
    """Whatever the registry holds that a model of one stack is made of, one at a time; not what is of two
    stacks, nor what is wrong on purpose."""
    for entry in create_registry():
        wrong = entry.wrong_on_purpose or entry.name in OF_TWO
        if entry.kind in KINDS and not wrong:
            tied = ["model.share_embeddings=true", "vocabulary.shared=true"] if entry.name == "tied" else []
            yield [f"model.{entry.kind}={OPTIONS.get((entry.kind, entry.name), entry.name)}", *tied]


COMPONENTS = list(each_component())
FEW = ("multihead", "linear", "batch", "mixture_of_experts", "shaw", "learned", "sub_ln", "tied")


def by_overrides(combinations):
    return pytest.mark.parametrize("overrides", combinations, ids=lambda overrides: overrides[0])


by_few = by_overrides([each for each in COMPONENTS if each[0].endswith(("linear", "batch", "mixture_of_experts"))])
REST = (pytest.mark.conformance, pytest.mark.exhaustive)  # tried by `pytest -m conformance`
by_component = by_overrides([pytest.param(each, marks=() if each[0].endswith(FEW) else REST) for each in COMPONENTS])
by_shape = pytest.mark.parametrize("shape", SHAPES)


@pytest.fixture
def labelled():
    """A batch for an encoder-only model: sources closed by the end token, and a label for each other token, or one."""

    def make(labels, lengths=(4, 2, 3), extra=0, seed=0, source=None):
        rng, size = np.random.default_rng(seed), max(lengths) + 1
        ids, valid = np.zeros((len(lengths), size + extra), np.int64), np.zeros((len(lengths), size + extra), bool)
        counts = lengths if labels == "token" else [1] * len(lengths)
        target, target_valid = (np.zeros((len(lengths), max(counts)), kind) for kind in (np.int64, bool))
        for i, (length, count) in enumerate(zip(lengths, counts)):
            drawn = rng.integers(4, 13, size=length)
            ids[i, : length + 1], valid[i, : length + 1] = [*drawn, 2], True
            target[i, :count], target_valid[i, :count] = rng.integers(4, 13, size=count), True
        if source is not None:
            ids[0, : len(source)] = source
        empty = np.zeros_like(target)
        return Batch(
            ids, valid, ids, empty, target, target, target_valid, 0, np.arange(len(lengths)), int(target_valid.sum())
        ).tensors()

    return make


def labels_of(shape):
    return "token" if shape == "tokens" else "sequence"


def make_of(shape, make_batch, labelled, **given):
    """A batch for a model of this shape."""
    if shape == "decoder-only":
        return make_batch((1, 1, 1), **({"extra_padding": given["extra"]} if "extra" in given else {}))
    return labelled(labels_of(shape), **given)


def real(h, batch):
    valid = batch.target_valid.numpy()
    return h.numpy()[:, : valid.shape[1]][valid]


def close(a, b, tolerance=2e-5):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def open_gates(model):
    """Gates that start at zero would let nothing through."""
    with paddle.no_grad():
        for parameter in model.parameters():
            if getattr(parameter, "keep_initial", False) and not parameter.numpy().any():
                parameter.set_value(paddle.full_like(parameter, 0.5))


def move_statistics(model, batch):
    """One training pass, so that running statistics are not at their initial values."""
    model.train()
    with paddle.no_grad():
        model(batch)
    model.eval()


# -------------------------------------------------------------------------------------------------------- decoder-only


@by_component
def test_a_decoder_alone_keeps_the_laws(make_model, make_batch, stepwise, overrides):
    model, batch = make_model(*DECODER, *overrides), make_batch((1, 1, 1))
    move_statistics(model, make_batch((1, 1, 1), seed=5))
    with paddle.no_grad():
        full, memory = model(batch)
        assert memory is None and model.encode(batch.source, batch.source_valid) is None
        for chunk in (1, 2, 3):
            close(real(stepwise(model, batch, chunk), batch), real(full, batch))
        padded = make_batch((1, 1, 1), extra_padding=4)
        close(real(model(padded)[0], padded), real(full, batch))
        first = batch.map_arrays(lambda part: part[:1])
        close(model(first)[0][:, :4].numpy(), full[:1, :4].numpy())  # no neighbours
        changed = batch.target_in.clone()
        changed[:, 2:] = (changed[:, 2:] + 1) % 13
        close(model(batch.replace(target_in=changed))[0][:, :2].numpy(), full[:, :2].numpy())  # no future
        rows = paddle.to_tensor([2, 0, 0], dtype="int64")
        _, state = model.decode(batch.target_in[:, :2], model.start(None), batch.target_valid[:, :2])
        later = batch.target_in[:, 2:].index_select(rows), batch.target_valid[:, 2:].index_select(rows)
        h, _ = model.decode(later[0], state.select(rows), later[1])
        valid = later[1].numpy()
        close(h.numpy()[valid], full[:, 2:].index_select(rows).numpy()[valid])


# -------------------------------------------------------------------------------------------------------- encoder-only


@by_component
@pytest.mark.parametrize("shape", ["tokens", "sequence"])
def test_an_encoder_alone_keeps_the_laws(make_model, labelled, shape, overrides):
    """Padding, more of it, and neighbours change nothing; there is a vector for each label."""
    labels = labels_of(shape)
    if overrides[0].endswith(CAUSAL):
        with pytest.raises(RecipeError, match="refuses"):
            make_model(*SHAPES[shape], *overrides)
        return
    model, batch = make_model(*SHAPES[shape], *overrides), labelled(labels)
    open_gates(model)
    move_statistics(model, labelled(labels, seed=5))
    with paddle.no_grad():
        full, memory = model(batch)
        assert full.shape[:2] == batch.target_out.shape and memory is not None
        for extra in (1, 4):
            padded = labelled(labels, extra=extra)
            close(real(model(padded)[0], padded), real(full, batch))
        for i, length in enumerate((4, 2, 3)):
            alone = batch.map_arrays(lambda part, i=i: part[i : i + 1])
            size = length + 1 if labels == "token" else 1
            close(model(alone)[0][:, : size - 1 or 1].numpy(), full[i : i + 1, : size - 1 or 1].numpy())
        changed = labelled(labels, source=[12, 11])
        assert np.abs(model(changed)[0][0].numpy() - full[0].numpy()).max() > 1e-6
        close(model(changed)[0][1:].numpy(), full[1:].numpy())


@pytest.mark.parametrize("position, equivariant", [("none", True), ("sinusoidal", False), ("rotary", False)])
def test_without_positions_a_labeller_sees_a_bag(make_model, labelled, position, equivariant):
    """Labels move with their tokens, and the one label of a sequence does not care where they stand."""
    batch = labelled("token", (5,))
    order = paddle.to_tensor([3, 0, 4, 1, 2, 5])  # the end token stays
    turned = batch.replace(source=batch.source.index_select(order, 1))
    model = make_model(*TOKENS, f"model.position={position}")
    h, g = model(batch)[0], model(turned)[0]
    assert np.allclose(g.numpy(), h.index_select(order[:5], 1).numpy(), atol=1e-5) == equivariant
    model = make_model(*SEQUENCE, f"model.position={position}")
    of_one = labelled("sequence", (5,))
    turned = of_one.replace(source=of_one.source.index_select(order, 1))
    assert np.allclose(model(turned)[0].numpy(), model(of_one)[0].numpy(), atol=1e-5) == equivariant


def test_the_label_of_a_sequence_is_read_where_it_ends(make_model, labelled):
    tokens, sequence = make_model(*TOKENS), make_model(*SEQUENCE)
    batch = labelled("sequence", (4, 2, 3), extra=2)
    x, read = tokens.encode(batch.source, batch.source_valid).x, sequence(batch)[0]
    for i, length in enumerate((4, 2, 3)):
        np.testing.assert_array_equal(read[i, 0].numpy(), x[i, length].numpy())


# ----------------------------------------------------------------------------------------------------------- all shapes


@by_shape
@by_few
def test_padding_changes_no_gradient(make_model, make_batch, labelled, shape, overrides, float64):
    """Training mode: extra columns of padding leave the loss and every gradient as they were."""
    gradients = []
    for extra in (0, 5):
        model = make_model(*SHAPES[shape], *overrides)  # one for each pass, which moves running statistics
        model.train()
        batch = make_of(shape, make_batch, labelled, extra=extra)
        loss = model.loss(batch, smoothing=0.1)
        loss.backward()
        found = {name: p.grad.numpy() for name, p in model.named_parameters() if p.grad is not None}
        gradients.append(found | {"": loss.numpy()})
    assert gradients[0].keys() == gradients[1].keys()
    single = "mixture" in str(overrides)  # it holds its softmax in float32
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if single else {"rtol": 1e-7, "atol": 1e-10}
    for name, gradient in gradients[0].items():
        np.testing.assert_allclose(gradients[1][name], gradient, err_msg=name, **tolerance)


def test_parameters_that_shapes_share_start_from_the_same_values(make_model):
    """A stack of the same path has the same initial values, whether the other one is there or not."""
    both = dict(make_model().named_parameters())
    for shape in SHAPES.values():
        alone = dict(make_model(*shape).named_parameters())
        assert alone.keys() < both.keys()
        for name, value in alone.items():
            np.testing.assert_array_equal(value.numpy(), both[name].numpy(), err_msg=name)


@pytest.mark.parametrize(
    "overrides, sentence",
    [
        ([*DECODER, "model.head=pointer"], "decoder-only has only one of them"),
        ([*TOKENS, "model.head=pointer"], "encoder-only has only one of them"),
        ([*TOKENS, "model.head=tied"], "'tied' needs 'embedding'"),
        ([*DECODER, "train.max_ratio=2.0"], "compares the lengths of two texts"),
        ([*TOKENS, "train.max_ratio=2.0"], "compares the lengths of two texts"),
        ([*DECODER, "model.attention={encoder: linear, decoder: linear, cross: linear}"], "no attention there"),
        ([*TOKENS, "model.position={encoder: none, decoder: none, cross: alibi}"], "no position there"),
        ([*TOKENS, "model.labels=word"], "model.labels"),
    ],
)  # fmt: skip
def test_what_takes_two_stacks_is_refused(make_model, overrides, sentence):
    with pytest.raises(RecipeError, match=sentence):
        make_model(*overrides)


def test_choices_for_the_stack_that_is_not_there_may_stand(make_model):
    """An override spreads over both stacks (`model.norm.decoder=rms`), so that it says something about the absent
    one."""
    made = make_model(
        *DECODER, "model.norm={encoder: batch, decoder: {self: rms, cross: layer, feed_forward: rms, final: rms}}"
    )
    assert {type(layer).__name__ for layer in made.sublayers() if "norm" in type(layer).__module__} == {"RMSNorm"}
    made = make_model(*TOKENS, "model.norm={encoder: rms}", "model.attention={encoder: linear, decoder: multihead}")
    assert {type(layer).__name__ for layer in made.sublayers() if "norm" in type(layer).__module__} == {"RMSNorm"}


def test_a_model_says_which_part_a_call_lacks(make_model, make_batch):
    batch = make_batch()
    labeller, decoder, pair = make_model(*TOKENS), make_model(*DECODER), make_model()
    with pytest.raises(ValueError, match="this model has none; read its labels"):
        labeller.start(labeller.encode(batch.source, batch.source_valid))
    with pytest.raises(ValueError, match="this model has none; read its labels"):
        labeller.decode(batch.target_in, pair.start(None))
    with pytest.raises(ValueError, match="this model has no encoder; decode instead"):
        decoder.label_states(decoder.encode(batch.source, batch.source_valid))
    with pytest.raises(ValueError, match="must have a memory to attend to"):
        pair.decode(batch.target_in, pair.start(None))
