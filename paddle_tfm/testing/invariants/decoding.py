"""Caches, beams and state: decoding step by step is the model that was trained."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm.model.state import DecoderState
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.testing.invariants import LAYERS, WHOLE_MODEL
from paddle_tfm.testing.models.model_under_test import ModelUnderTest, select_rows
from paddle_tfm.testing.models.scene import MIN_LOG_PROB, SHORT, Scene
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result, Skip, difference

PAIRS_ARE_RIGHT = "two at a time are right"
STEPS, RATE = 3, 0.01
CALLS = 2  # of a layer, after each of which it holds more
CHUNKS = ([1], [2], [1, 3], [4, 1])  # tokens fed at once; the last number again and again


@check(
    *LAYERS,
    invariant="decoding step by step through the key/value cache equals the full pass, in chunks too",
    consequence="the model that translates is not the one that was trained",
    hint="positions counted from the tensor's length instead of `info.positions`, keys rotated twice or not at all, "
    "a cache that forgets or repeats",
    each_scene=True,
    long=True,
)
def cached(scene: Scene) -> Result:
    model, batch = scene.evaluated_model, scene.batch()
    valid, full = batch.target_valid.numpy(), scene.decoder_outputs(model, batch)
    for chunks in CHUNKS if full.shape[1] < SHORT else CHUNKS[:1]:
        stepwise = scene.stepwise_outputs(model, batch, chunks)
        what = f"{chunks[0]} tokens first, then {chunks[-1]} at a time"
        if failed := difference(full[valid], stepwise[valid], what):
            return _with_pairs(scene, full, failed) if chunks == [1] else failed
    return Passed()


def _with_pairs(scene: Scene, full: np.ndarray, failed: Failed) -> Failed:
    """The failure of single tokens, and whether two at a time are right."""
    model, batch = scene.evaluated_model, scene.batch()
    valid, even = batch.target_valid.numpy(), full.shape[1] // 2 * 2
    pairs = scene.stepwise_outputs(model, batch, [2])
    at_all = valid & (np.arange(full.shape[1]) < even)
    if difference(full[at_all], pairs[at_all], ""):
        return failed
    return Failed(f"{failed.text}; {PAIRS_ARE_RIGHT}")


@check(
    *LAYERS,
    invariant="rows selected during decoding continue as they would alone (beam search reorders rows)",
    consequence="beam search mixes hypotheses up",
    hint="`select` of what `project` returns: every tensor in it, and nothing kept elsewhere",
    each_scene=True,
)
def beams(scene: Scene) -> Result:
    model, batch = scene.evaluated_model, scene.batch()
    num_rows, length = batch.target_in.shape
    if length < 3:
        return Skip("sentences too short")
    everyone = batch.replace(target_valid=paddle.ones_like(batch.target_valid))
    with paddle.no_grad():
        full = scene.decoder_outputs(model, everyone)
        start = model.start(scene.memory(model, everyone))
        after_two = _fed(model, everyone.target_in[:, :2], start)[1]
        for order in ([*reversed(range(num_rows)), 0, 0], [*range(1, num_rows), 0]):  # more rows than before; as many
            rows = paddle.to_tensor(order, dtype="int64")
            state = after_two.select(rows)
            for t in range(2, length):
                out, state = _fed(model, everyone.target_in[:, t : t + 1].index_select(rows), state)
                if failed := difference(full[order][:, t], out, f"rows chosen after two tokens, token {t}"):
                    return failed
        twice = paddle.to_tensor([row for row in range(num_rows) for _ in range(2)], dtype="int64")
        state = _fed(model, everyone.target_in[:, :1], start)[1]
        words = paddle.to_tensor([[4 + i % 9] for i in range(2 * num_rows)])
        state = _fed(model, words, state.select(twice))[1]
        swap = paddle.to_tensor([row + (1 if row % 2 == 0 else -1) for row in range(2 * num_rows)], dtype="int64")
        stays, moves, shared, parted = (
            _fed(model, words, chosen)[0]
            for chosen in (
                state.select(swap, True),
                state.select(swap),
                state.select(swap, True, 2),
                state.select(swap, True, 2).select(swap, False, 2).select(swap),
            )
        )
    if failed := difference(stays, moves, "beams of a sentence change places, its memory kept or moved along"):
        return failed
    return (
        difference(moves, shared, "beams of a sentence as several queries of one memory")
        or difference(moves, parted, "a memory for each beam again")
        or Passed()
    )


def _fed(model: Transformer, tokens: Tensor, state: DecoderState) -> tuple[np.ndarray, DecoderState]:
    """([h, log-probabilities] [B, C + V'] after the last of these tokens [B, T], the state with them)."""
    h, after = model.decode(tokens, state)
    log_probs, head = model.head.step(h, after.memory, after.head)
    out = paddle.concat([h[:, -1], log_probs.clip(min=MIN_LOG_PROB).astype(h.dtype)], -1)
    return out.numpy(), replace(after, head=head)


@check(
    *LAYERS,
    WHOLE_MODEL,
    invariant="the layers keep nothing between calls, and evaluation changes nothing",
    consequence="a result depends on what was computed before it",
    hint="attributes set in `forward`; buffers updated in evaluation mode; caches kept in the layer instead of in what "
    "`project` returns; attributes of the class, which all its objects share; a list that is only ever "
    "added to",
    each_scene=True,
)
def stateless(scene: ModelUnderTest) -> Result:
    model, batch = scene.model(), scene.batch()
    other = scene.batch(seed=9)  # of one shape, and sentences of other lengths: what is kept may belong to a shape
    other = select_rows(other, list(range(other.source.shape[0]))[::-1])
    before = _numbers(model)
    first = scene.outputs(model, batch)
    scene.outputs(model, other)
    if not np.array_equal(first, scene.outputs(model, batch)):
        return Failed("the same batch, after another one, gives other numbers")
    new, used = scene.model(moved=False), scene.model(moved=False)
    untouched = scene.outputs(new, batch)
    scene.outputs(used, other)
    if not np.array_equal(untouched, scene.outputs(used, batch)):
        return Failed("a batch gives other numbers in a new model than in one that has seen another batch")
    if where := _grown(used, lambda: scene.outputs(used, other)):
        return Failed(f"{where} holds more after each call")
    used.train()
    scene.losses(used, other)[0].backward()
    if where := _grown(used, lambda: scene.losses(used, other)):
        return Failed(f"{where} holds more after each call in training")
    if not np.array_equal(untouched, scene.outputs(new, batch)):
        return Failed("a model gives other numbers while another one is trained: they share something")
    for name, tensor in model.state_dict().items():
        if not np.array_equal(before[name], tensor.numpy()):
            return Failed(f"{name} changed in evaluation mode")
    if not isinstance(scene, Scene) or model.decoder is None:
        return Passed()
    second = slice(1, 2) if batch.target_in.shape[1] > 1 else slice(0, 1)
    with paddle.no_grad():
        start = model.start(scene.memory(model, batch))
        _, state = model.decode(batch.target_in[:, :1], start)
        once = model.decode(batch.target_in[:, second], state)[0]
        model.decode(batch.target_in[:, :1], start)
        model.decode(other.target_in[:, :1], model.start(scene.memory(model, other)))
        again = model.decode(batch.target_in[:, second], state)[0]
    return difference(once.numpy(), again.numpy(), "decoding twice from one state", 0.0) or Passed()


@check(
    *LAYERS,
    WHOLE_MODEL,
    invariant="saved and loaded, it is the same, and trains on like one that never stopped",
    consequence="a checkpoint does not hold the model that was trained: a run that is resumed is another run",
    hint="tensors that change in training and are neither parameters nor persistable buffers; values drawn in the "
    "constructor and kept outside both; a count of batches as a Python number (register_buffer)",
)
def saved(subject) -> Result:
    model_under_test: ModelUnderTest = subject.scenes[0]
    kept, loaded = model_under_test.model(), model_under_test.model(seed=99, moved=False)
    for seed in range(STEPS):
        _train(model_under_test, kept, seed)
    state = _numbers(kept)
    if state.keys() != loaded.state_dict().keys():
        return Failed("two models of one recipe have different names in their state")
    for name, tensor in loaded.state_dict().items():
        tensor.set_value(state[name])
    batch = model_under_test.batch()
    for steps in (0, STEPS):
        for seed in range(STEPS, STEPS + steps):
            for model in (kept, loaded):
                _train(model_under_test, model, seed)
        what = "the loaded model" + (f", {steps} steps later" if steps else "")
        usual, other = (model_under_test.outputs(model.eval() or model, batch) for model in (kept, loaded))
        if failed := difference(usual, other, what, 0.0):
            return failed
    other_state = _numbers(loaded)
    for name, value in _numbers(kept).items():
        if failed := difference(value, other_state[name], f"{what}: {name}", 0.0):
            return failed
    return Passed()


def _numbers(model: nn.Layer) -> dict[str, np.ndarray]:
    """A model's state as it is now."""
    return {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}


def _grown(model: nn.Layer, call: Callable[[], object]) -> str:
    """The list, dict or set in an attribute of a layer that becomes longer with the same call again and again, and has
    done so before; "" where there is none. What a shape is looked up in is full after one call."""
    call()
    sizes = _sizes(model)
    for _ in range(CALLS):
        call()
        sizes, before = _sizes(model), sizes
        sizes = {name: size for name, size in sizes.items() if size > before.get(name, size)}
    return next(iter(sizes), "")


def _sizes(model: nn.Layer) -> dict[str, int]:
    return {
        f"{path}.{name}".strip("."): len(value)
        for path, layer in model.named_sublayers(include_self=True)
        for name, value in vars(layer).items()
        if isinstance(value, (list, dict, set, deque))
    }


def _train(model_under_test: ModelUnderTest, model: nn.Layer, seed: int) -> None:
    """A step of gradient descent on a batch of its own."""
    model.train()
    batch = model_under_test.batch(seed=seed)
    (model_under_test.losses(model, batch)[1] / batch.tokens).backward()
    with paddle.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.set_value(parameter - RATE * parameter.grad)
    model.clear_gradients()
