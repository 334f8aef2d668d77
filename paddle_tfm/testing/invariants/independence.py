"""What an output must not depend on: the future, padding, and the other sentences of a batch."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import nn

from paddle_tfm.data.batches import Batch
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.testing.invariants import LAYERS, WHOLE_MODEL
from paddle_tfm.testing.models.model_under_test import ModelUnderTest, lengths, select_rows
from paddle_tfm.testing.models.scene import Scene, embeddings
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import CLOSE, Failed, Passed, Result, Skip, difference, distance, some

DROPOUT = 0.3
CROWD = 70  # sentences, several hundred tokens
ROUNDED = 10  # times what two orders of the same sums may usually differ by
ROUNDING, FALL = 1e-5, 1e-4  # of the largest gradient in float32; how far rounding falls in float64
# Of the largest gradient: Paddle's softmax on a CPU gives a masked key 1e-28, and behind layers whose gradients grow to
# 1e17 that has become 2e-17.
ZERO = 1e-15


@check(
    *LAYERS,
    WHOLE_MODEL,
    invariant="no future leak in the decoder: a position depends on earlier ones and itself only",
    consequence="teacher forcing shows the model the answer: training looks excellent, and translation is nonsense",
    hint="the causal mask (that it reaches the decoder's self-attention, its direction, an off-by-one), the axis of "
    "a softmax, sums or norms over time, a reshape that mixes positions and heads",
    each_scene=True,
    long=True,
    equal=True,
)
def causal(model_under_test: ModelUnderTest) -> Result:
    model, batch = model_under_test.evaluated_model, model_under_test.batch()
    if failed := _changed_future(model_under_test, model, batch):
        return failed
    for t, gradient in model_under_test.gradients_by_position(model, batch):
        if not np.isfinite(gradient).all():
            return Failed("a gradient that is not finite")
        late = np.nonzero(gradient[t + 1 :] > ZERO * max(1.0, gradient.max()))[0]
        if late.size and not _cancels(model_under_test, t, gradient):
            return Failed(f"position {t}'s output has a gradient with respect to position {t + 1 + int(late[0])}")
    return Passed()


@check(
    *LAYERS,
    WHOLE_MODEL,
    invariant="no future leak in the decoder while training either",
    consequence="what is trained is not what will be decoded",
    hint="statistics over the batch or over time that are used in training mode only, such as BatchNorm's in a decoder",
    each_scene=True,
)
def causal_in_training(model_under_test: ModelUnderTest) -> Result:
    model = model_under_test.training_model(dropout=DROPOUT)  # what dropout sees may leak too
    if isinstance(model, Skip):
        return model
    return _changed_future(model_under_test, model, model_under_test.batch()) or Passed()


def _cancels(model_under_test: ModelUnderTest, t: int, gradient: np.ndarray) -> bool:
    """Whether the gradient with respect to later positions is the rounding of what cancels out, as where a softmax over
    all keys is masked and normalized again: in float64 hardly anything is left of it."""
    share = gradient[t + 1 :].max() / gradient.max()
    if share > ROUNDING:
        return False
    exact = dict(model_under_test.gradients_by_position(model_under_test.model("float64"), model_under_test.batch()))[t]
    return bool(exact[t + 1 :].max() / exact.max() < FALL * share)


def _changed_future(model_under_test: ModelUnderTest, model: nn.Layer, batch: Batch) -> Failed | None:
    length = batch.target_in.shape[1]
    usual, compared = model_under_test.decoder_outputs(model, batch), model_under_test.compared_positions(batch)
    for t in sorted({1, length // 2, length - 1} - {0}):
        later = paddle.to_tensor(np.arange(length) >= t).unsqueeze(0)
        tokens = paddle.where(later, model_under_test.other_ids(batch.target_in), batch.target_in)
        changed = model_under_test.decoder_outputs(model, batch.replace(target_in=tokens))
        early = compared[:, :t]
        size = distance(changed[:, :t][early], usual[:, :t][early])
        if size > CLOSE:
            seen = f"changing the target from position {t} on changes earlier outputs by {size:.2g}"
            return Failed(seen + _scattered(model_under_test, model, batch, usual))
    return None


def _scattered(model_under_test: ModelUnderTest, model: nn.Layer, batch: Batch, usual: np.ndarray) -> str:
    """To which later positions the first one reacts, in words, where these are not the next ones: a mask that is
    missing shows it all, one that is off by one the next, and a reshape that mixes tokens some of them."""
    seen = []
    row = int(np.argmax(lengths(batch.target_valid)))
    for t in range(1, lengths(batch.target_valid)[row]):
        here = paddle.to_tensor(np.arange(batch.target_in.shape[1]) == t).unsqueeze(0)
        tokens = paddle.where(here, model_under_test.other_ids(batch.target_in), batch.target_in)
        changed = model_under_test.decoder_outputs(model, batch.replace(target_in=tokens))
        if distance(changed[row, 0], usual[row, 0]) > CLOSE:
            seen.append(t)
    unseen = [t for t in range(1, max(seen, default=0)) if t not in seen]
    return f"; the first position reacts to {some(seen)} and not to {some(unseen)}" if unseen else ""


@check(
    *LAYERS,
    WHOLE_MODEL,
    invariant="padding changes nothing: neither more of it nor other ids in it",
    consequence="a sentence is translated differently depending on the length of its neighbours",
    hint="the mask (inverted, or of the wrong side; in the encoder and in cross-attention), sums and means over "
    "positions that are not real, softmax before the mask; of a whole model, another id of padding (`--pad-id`)",
    each_scene=True,
    long=True,
    equal=True,
)
def padding(model_under_test: ModelUnderTest) -> Result:
    model = model_under_test.evaluated_model
    usual = model_under_test.outputs(model, model_under_test.batch())
    for what, batch in model_under_test.padded_batches():
        if failed := difference(usual, model_under_test.outputs(model, batch), what):
            return failed
    return Passed()


@check(
    *LAYERS,
    WHOLE_MODEL,
    invariant="padding changes no output, no loss, no gradient and no statistic in training",
    consequence="what is learned depends on how sentences were put into batches",
    hint="means over positions that are not real; a loss, or statistics (BatchNorm's), that count padding",
    each_scene=True,
)
def padding_in_training(model_under_test: ModelUnderTest) -> Result:
    steps, tables = [], {}
    for extra in (0, 5):
        model = model_under_test.training_model(model_under_test.training_dtype)
        if isinstance(model, Skip):
            return model
        steps.append(_step(model_under_test, model, extra))
        tables = model_under_test.buffers(model)
    usual, padded = steps
    for name in dict.fromkeys([*usual, *padded]):
        # An expert that is given no token has no gradient; one that is given padding alone has one of zeros.
        value, beside = (one.get(name, np.zeros_like(other.get(name, 0.0))) for one, other in (steps, steps[::-1]))
        if name in tables and value.shape != beside.shape:
            continue  # one that is made longer for a longer text
        what = f"5 more columns of padding, {name}"
        if failed := difference(value, beside, what, model_under_test.training_tolerance):
            return failed
    return Passed()


def _step(model_under_test: ModelUnderTest, model: nn.Layer, extra_padding: int) -> dict[str, np.ndarray]:
    """Outputs, the loss, all gradients, and the buffers after it, of a batch with so much more padding."""
    batch = model_under_test.batch(extra_padding=extra_padding)
    model.clear_gradients()
    loss = model_under_test.losses(model, batch, smoothing=0.1)[1]
    loss.backward()
    gradients = {name: p.grad.numpy() for name, p in model.named_parameters() if p.grad is not None}
    buffers = {name: buffer.numpy().copy() for name, buffer in model_under_test.buffers(model).items()}
    return {"outputs": model_under_test.outputs(model, batch), "the loss": loss.numpy(), **gradients, **buffers}


@check(
    *LAYERS,
    WHOLE_MODEL,
    invariant="sentences of a batch do not influence each other, and their order does not matter",
    consequence="a translation depends on what happens to be translated beside it",
    hint="statistics over the batch used in evaluation, reshapes that mix rows, [T, B, C] taken for [B, T, C], the "
    "axis of a softmax",
    each_scene=True,
    equal=True,
)
def neighbours(model_under_test: ModelUnderTest) -> Result:
    failed = _neighbours(model_under_test, model_under_test.evaluated_model)
    if failed and not _neighbours(model_under_test, model_under_test.evaluated_model, ROUNDED * CLOSE):
        # sums in another order differ by more where norms and routers make small numbers large: float64 tells
        failed = _neighbours(model_under_test, model_under_test.model("float64"))
    return failed or Passed()


def _neighbours(model_under_test: ModelUnderTest, model: nn.Layer, tolerance: float = CLOSE) -> Failed | None:
    batch = model_under_test.batch()
    if failed := _other_neighbours(model_under_test, model, batch, tolerance):
        return failed
    counts, num_rows = lengths(batch.target_valid), batch.source.shape[0]
    if num_rows < 2:
        return None
    rows = np.split(model_under_test.outputs(model, batch), np.cumsum(counts)[:-1])
    order = list(range(num_rows))[::-1]
    reordered = model_under_test.outputs(model, select_rows(batch, order))
    ends = np.cumsum([counts[i] for i in order])
    blocks = dict(zip(order, np.split(reordered, ends[:-1])))
    in_order = np.concatenate([blocks[i] for i in range(num_rows)])
    if failed := difference(np.concatenate(rows), in_order, "in another order", tolerance):
        return failed
    for i, source_length in enumerate(lengths(batch.source_valid)):
        alone = select_rows(batch, [i])
        sources = {name: getattr(alone, name)[:, :source_length] for name in ("source", "source_valid", "copy_ids")}
        outputs = model_under_test.outputs(model, alone.replace(**sources))
        if failed := difference(outputs, rows[i], f"sentence {i} alone", tolerance):
            return failed
    return _in_a_crowd(model_under_test, model, batch, rows, tolerance)


def _in_a_crowd(
    model_under_test: ModelUnderTest, model: nn.Layer, batch: Batch, rows: list[np.ndarray], tolerance: float
) -> Failed | None:
    """Failed where sentences of a batch of CROWD get others than their `rows`: what is done in portions of so many
    sentences or tokens, or has room for so many, shows in no small batch."""
    order = np.random.default_rng(3).permutation(np.arange(CROWD) % len(rows)).tolist()
    crowd = model_under_test.outputs(model, select_rows(batch, order))
    return difference(np.concatenate([rows[i] for i in order]), crowd, f"in a batch of {CROWD} sentences", tolerance)


@check(
    *LAYERS,
    invariant="no future leak, and no effect of padding or neighbours, with embeddings a hundred times smaller "
    "and weights four times larger than at the start of a training",
    consequence="once the numbers of a layer become large, one token influences another",
    hint="clips, caps and norms: over which axes is the size taken?",
    each_scene=True,
)
def other_sizes(scene: Scene) -> Result:
    declared = scene.subject.expected_failures
    for what, resized in (("embeddings of a hundredth", _small_embeddings), ("weights times 4", _large_weights)):
        model, batch = scene.model("float64"), scene.batch()
        with paddle.no_grad():
            resized(model)
        failed = None
        if "causal" not in declared:
            failed = _changed_future(scene, model, batch)
        if "neighbours" not in declared:
            failed = failed or _other_neighbours(scene, model, batch)
        if "padding" not in declared:
            usual = scene.outputs(model, batch)
            for padded, other in scene.padded_batches():
                failed = failed or difference(usual, scene.outputs(model, other), padded)
        if failed:
            return Failed(f"{what}: {failed.text}")
    return Passed()


def _small_embeddings(model: Transformer) -> None:
    for table in embeddings(model):
        table.weight.set_value(table.weight * 0.01)


def _large_weights(model: Transformer) -> None:
    tables = {id(table.weight) for table in embeddings(model)}
    for parameter in model.parameters():
        if parameter.ndim > 1 and id(parameter) not in tables:
            parameter.set_value(parameter * 4.0)


@check(
    *LAYERS,
    invariant="sentences of a batch do not influence each other while training either",
    consequence="what is trained is not what will be decoded",
    hint="statistics over the batch",
    each_scene=True,
)
def neighbours_in_training(model_under_test: ModelUnderTest) -> Result:
    model = model_under_test.training_model()
    if isinstance(model, Skip):
        return model
    return _other_neighbours(model_under_test, model, model_under_test.batch()) or Passed()


def _other_neighbours(
    model_under_test: ModelUnderTest, model: nn.Layer, batch: Batch, tolerance: float = CLOSE
) -> Failed | None:
    """Failed where other words in all sentences but the first change the first."""
    num_rows = batch.source.shape[0]
    if num_rows < 2:
        return None
    first = paddle.to_tensor(np.arange(num_rows) == 0).unsqueeze(-1)

    def changed(part):
        return part if part.dtype == paddle.bool else paddle.where(first, part, model_under_test.other_words(part))

    count = lengths(batch.target_valid)[0]
    before, after = (model_under_test.decoder_outputs(model, b)[0, :count] for b in (batch, batch.map_arrays(changed)))
    return difference(before, after, "with other neighbours", tolerance)
