"""What holds for every part of a model, whichever kind it is: checked inside small real models, at every site."""

from __future__ import annotations

import time

import numpy as np
import paddle
from paddle import nn

from paddle_tfm import randomness
from paddle_tfm.components import Spec
from paddle_tfm.data.vocabulary import PAD
from paddle_tfm.model.build import build
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Tap
from paddle_tfm.recipe.model_plan import plan_model
from paddle_tfm.testing.report import Failed, NotHere, Seen, check
from paddle_tfm.testing.subject import VOCABULARY, Scene, Size, Subject, batch, real

MODEL = ("attention", "norm", "placement", "position", "feed_forward", "head", "initializer")
LAYERS = MODEL[:-1]
CLOSE = 5e-5  # float32: what two orders of the same sums may differ by, of the largest number
EXACT = 1e-7  # the same in float64, for components that hold a part in float32 too
HELD = 1e-5  # float64, where a component computes a part in float32
STEPS = 60  # of training on one batch
ZERO = 1e-20  # of the largest gradient: Paddle's softmax on a CPU gives a masked key 1e-28


def apart(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference, as a share of the largest number (of 1, if that is smaller)."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape:
        raise Failed(f"shapes differ: {list(a.shape)} and {list(b.shape)}")
    if not a.size:
        return 0.0
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise Failed("numbers that are not finite")
    return float(np.abs(a - b).max() / max(1.0, np.abs(a).max()))


def demand_same(a: np.ndarray, b: np.ndarray, what: str, tolerance: float = CLOSE) -> None:
    """Raises Failed, with the difference, unless both are the same but for rounding."""
    found = apart(a, b)
    if not found <= tolerance:
        raise Failed(f"{what}: they differ by {found:.2g} of the largest number")


def encoded(model: Transformer, batch):
    """The memory of a batch."""
    return model.encode(batch.source, batch.source_valid, batch.copy_ids, batch.extra)


def outputs(model: Transformer, batch) -> np.ndarray:
    """Log-probabilities at real target tokens [N, V]: what a user sees of a model."""
    with paddle.no_grad():
        h, memory = model(batch)
        return real(model.head.log_probs(h, memory), batch)


def only(batch, rows: list[int]):
    """These sentences of a batch, padded as before."""
    index = paddle.to_tensor(rows, dtype="int64")
    return batch.each(lambda part: part.index_select(index, 0))


def other_words(ids: paddle.Tensor) -> paddle.Tensor:
    """Each word changed to the next one; special ids stay."""
    return paddle.where(ids >= 4, (ids - 4 + 1) % 9 + 4, ids)


# ------------------------------------------------------------------------------------------------ shapes and parameters


@check(
    *MODEL,
    law="a model with it runs, forwards and backwards",
    means="nothing else can be checked",
    look="the error",
)
def runs(subject: Subject) -> None:
    scene = subject.scenes[0]
    scene.model(moved=False).loss(scene.batch()).backward()


@check(
    *LAYERS,
    law="outputs have the shape and dtype of inputs, in float32 and in float64",
    means="a sum with the residual would be broadcast, or computed in another precision, without an error",
    look="the last reshape, and constants or casts with a fixed dtype",
    each_scene=True,
)
def shapes(scene: Scene) -> None:
    for dtype in ("float32", "float64"):
        model = scene.model(dtype, moved=False)
        for layer in scene.mine(model):
            if layer is not model.head:
                layer.register_forward_post_hook(_same_shape)
        batch = scene.batch()
        h, memory = model(batch)
        demand_shape(h, [*batch.target_in.shape, scene.size.d_model], dtype, "the decoder's output")
        log_probs = model.head.log_probs(h, memory)
        demand_shape(log_probs[..., 0], batch.target_in.shape, None, "log_probs of one word")
        demand_shape(model.head.loss(h, model.target(batch), memory), batch.target_in.shape, None, "the head's loss")


def demand_shape(tensor: paddle.Tensor, shape: list[int], dtype: str | None, what: str) -> None:
    """Raises Failed unless the tensor is of this shape and (None: any) dtype."""
    found = str(tensor.dtype).removeprefix("paddle.")
    if list(tensor.shape) != list(shape):
        raise Failed(f"{what} is {list(tensor.shape)} instead of {list(shape)}")
    if dtype is not None and found != dtype:
        raise Failed(f"{what} is {found} in a {dtype} model")


def _same_shape(layer: nn.Layer, inputs: tuple, out: object) -> None:
    x = inputs[0]
    if isinstance(x, paddle.Tensor) and isinstance(out, paddle.Tensor):
        demand_shape(out, x.shape, str(x.dtype).removeprefix("paddle."), f"the output of {type(layer).__name__}")


@check(
    *LAYERS,
    law="every parameter is registered, once",
    means="what is not registered is not saved, and no optimizer ever sees it: it stays at its initial value",
    look="layers kept in a plain list, tuple or dict (use nn.LayerList), tensors that should be parameters "
    "(create_parameter), parameters held under two names",
    each_scene=True,
)
def registered(scene: Scene) -> None:
    model = scene.model(moved=False)
    known = {id(parameter) for parameter in model.parameters()}
    for path, layer in model.named_sublayers():
        for name, parameter in reachable(vars(layer)):
            if id(parameter) not in known:
                raise Failed(f"{path}.{name} {parameter.shape} is used, and not among the model's parameters")
    seen: dict[int, str] = {}
    for name, tensor in model.state_dict().items():
        if id(tensor) in seen:
            raise Failed(f"{name} and {seen[id(tensor)]} are one tensor, saved twice")
        seen[id(tensor)] = name


def reachable(value: object, name: str = "", depth: int = 5):
    """(where, parameter) of all trainable tensors inside attributes, lists, tuples, dicts and layers."""
    if depth == 0:
        return
    if isinstance(value, paddle.Tensor):
        if not value.stop_gradient and value.is_leaf:
            yield name, value
    elif isinstance(value, nn.Layer):
        for key, parameter in value.named_parameters():
            yield f"{name}.{key}", parameter
        yield from reachable({k: v for k, v in vars(value).items() if not k.startswith("_")}, name, depth - 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in ("_parameters", "_sub_layers", "_buffers"):
                yield from reachable(item, f"{name}.{key}".lstrip("."), depth - 1)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from reachable(item, f"{name}[{i}]", depth - 1)


@check(
    *LAYERS,
    law="every parameter gets a gradient",
    means="a part of it does not learn, or what it computes does not depend on what it holds",
    look="tensors that went through NumPy, `detach`, `no_grad` or an argmax; parameters that nothing uses",
    each_scene=True,
)
def trains(scene: Scene) -> None:
    model = scene.model(moved=False)
    model.train()
    rng = np.random.default_rng(1)
    with paddle.no_grad():  # a gate that starts at zero lets nothing through in the first step
        for parameter in model.parameters():
            noise = rng.normal(scale=1e-2, size=parameter.shape).astype("float32")
            parameter.set_value(parameter + paddle.to_tensor(noise))
    alive, connected = set(), set()
    for seed in range(4):  # an expert may have no token in one batch
        model.clear_gradients()
        model.loss(scene.batch(seed=seed)).backward()
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                connected.add(name)
                if parameter.grad.numpy().any():
                    alive.add(name)
    for name, parameter in model.named_parameters():
        if name not in connected:
            raise Failed(f"no gradient reaches {name}")
        if name not in alive and parameter.ndim > 1:
            raise Failed(f"the gradient of {name} is zero")  # a vector may do nothing: softmax forgets a key's bias


@check(
    *LAYERS,
    law="training lowers the loss",
    means="it learns nothing, or too slowly to be of use",
    look="scales and signs; what is lost on the way from the input to the output",
)
def learns(subject: Subject) -> None:
    scene = subject.scenes[0]
    model, batch = scene.model(moved=False), scene.batch()
    model.train()
    optimizer = paddle.optimizer.Adam(learning_rate=3e-3, parameters=model.parameters())
    losses = []
    for _ in range(STEPS):
        tap = Tap()
        loss = model.cross_entropy(batch, tap=tap) / batch.tokens
        losses.append(float(loss))
        sum(tap.aux_losses.values(), loss).backward()
        optimizer.step()
        optimizer.clear_grad()
    if not losses[-1] < 0.8 * losses[0]:
        raise Failed(f"{STEPS} steps of Adam on one batch: {losses[0]:.3g} nats a token, then {losses[-1]:.3g}")


# ----------------------------------------------------------------------------------------------- the future, the padding


@check(
    *LAYERS,
    law="no future leak in the decoder: a position depends on earlier ones and itself only",
    means="teacher forcing shows the model the answer: training looks excellent, and translation is nonsense",
    look="the causal mask (its direction, an off-by-one), the axis of a softmax, sums or norms over time, a reshape that "
    "mixes positions and heads",
    each_scene=True,
)
def causal(scene: Scene) -> None:
    model = scene.model()
    _changed_future(model, scene)
    batch = scene.batch()
    x = model.target_embedding(batch.target_in).detach()
    x.stop_gradient = False
    h, _ = model.decoder(x, model.start(encoded(model, batch)), batch.target_valid, Tap())
    row = int(np.argmax(scene.size.target_lengths))  # the longest
    for t in range(scene.size.target_lengths[row]):
        (gradient,) = paddle.grad(h[row, t].sum() + 0.1 * (h[row, t] ** 2).sum(), x, retain_graph=True)
        reached = gradient.abs().sum(-1)[row].numpy()
        if not np.isfinite(reached).all():
            raise Failed("a gradient that is not finite")
        late = np.nonzero(reached[t + 1 :] > ZERO * max(1.0, reached.max()))[0]
        if late.size:
            raise Failed(f"position {t}'s output has a gradient with respect to position {t + 1 + int(late[0])}")


@check(
    *LAYERS,
    law="no future leak in the decoder while training either",
    means="what is trained is not what will be decoded",
    look="statistics over the batch or over time that are used in training mode only",
    each_scene=True,
)
def causal_in_training(scene: Scene) -> None:
    model = scene.model()
    model.train()
    _changed_future(model, scene)


def _changed_future(model: Transformer, scene: Scene) -> None:
    batch = scene.batch()
    length = batch.target_in.shape[1]
    with paddle.no_grad():
        full = model(batch)[0]
        for t in sorted({1, length // 2, length - 1} - {0}):
            later = paddle.to_tensor(np.arange(length) >= t)
            tokens = paddle.where(later.unsqueeze(0), (batch.target_in + 5) % 13, batch.target_in)
            h = model(batch._replace(target_in=tokens))[0]
            seen = apart(h.numpy()[:, :t], full.numpy()[:, :t])
            if seen > CLOSE:
                raise Failed(f"changing the target from position {t} on changes earlier outputs by {seen:.2g}")


@check(
    *LAYERS,
    law="padding changes nothing: more of it, or other ids in it",
    means="a sentence is translated differently depending on the length of its neighbours",
    look="the mask (inverted, or of the wrong side), sums and means over positions that are not real, softmax before the "
    "mask",
    each_scene=True,
)
def padding(scene: Scene) -> None:
    model = scene.model()
    usual = outputs(model, scene.batch())
    more = outputs(model, scene.batch(extra_padding=4))
    demand_same(usual, more, "with 4 more columns of padding")
    demand_same(more, outputs(model, scene.batch(extra_padding=4, padding=7)), "with other ids in the padding")


@check(
    *LAYERS,
    law="padding changes no loss and no gradient in training",
    means="what is learned depends on how sentences were put into batches",
    look="means over positions that are not real; a loss, or statistics, that count padding",
    each_scene=True,
)
def padding_in_training(scene: Scene) -> None:
    model = scene.model("float64")
    model.train()
    found = []
    for extra in (0, 5):
        model.clear_gradients()
        loss = model.loss(scene.batch(extra_padding=extra), smoothing=0.1)
        loss.backward()
        gradients = {name: p.grad.numpy() for name, p in model.named_parameters() if p.grad is not None}
        found.append({"the loss": loss.numpy(), **gradients})
    if found[0].keys() != found[1].keys():
        raise Failed(f"padding decides which parameters get a gradient: {sorted(found[0].keys() ^ found[1].keys())}")
    for name in found[0]:
        demand_same(found[0][name], found[1][name], f"5 more columns of padding, {name}", HELD)


@check(
    *LAYERS,
    law="sentences of a batch do not influence each other, and their order does not matter",
    means="a translation depends on what happens to be translated beside it",
    look="statistics over the batch used in evaluation, reshapes that mix rows, the axis of a softmax",
    each_scene=True,
)
def neighbours(scene: Scene) -> None:
    model, batch = scene.model(), scene.batch()
    rows = len(scene.size.source_lengths)
    _independent(model, batch)
    if rows < 2:
        return
    order = list(range(rows))[::-1]
    turned = only(batch, order)
    full, back = outputs(model, batch), outputs(model, turned)
    lengths = scene.size.target_lengths
    ends = np.cumsum([lengths[i] for i in order])
    blocks = dict(zip(order, np.split(back, ends[:-1])))
    demand_same(full, np.concatenate([blocks[i] for i in range(rows)]), "in another order")
    for i in range(rows):
        alone = only(batch, [i])
        cut = alone._replace(
            **{name: getattr(alone, name)[:, : scene.size.source_lengths[i]] for name in ("source", "source_valid", "copy_ids")}
        )  # fmt: skip
        demand_same(outputs(model, cut), np.split(full, np.cumsum(lengths)[:-1])[i], f"sentence {i} alone")


@check(
    *LAYERS,
    law="sentences of a batch do not influence each other while training either",
    means="what is trained is not what will be decoded",
    look="statistics over the batch",
    each_scene=True,
)
def neighbours_in_training(scene: Scene) -> None:
    model, batch = scene.model(), scene.batch()
    model.train()
    _independent(model, batch)


def _independent(model: Transformer, batch) -> None:
    rows = batch.source.shape[0]
    if rows < 2:
        return
    first = paddle.to_tensor(np.arange(rows) == 0).unsqueeze(-1)
    changed = batch.each(
        lambda part: part if part.dtype == paddle.bool else paddle.where(first, part, other_words(part))
    )
    with paddle.no_grad():
        before, after = (model(given)[0].numpy()[0] for given in (batch, changed))
    count = int(batch.target_valid[0].sum())
    demand_same(before[:count], after[:count], "with other neighbours")


# -------------------------------------------------------------------------------------------------- caches, beams, state


def stepwise(model: Transformer, batch, chunks: list[int]) -> np.ndarray:
    """h [B, T, C] decoded through the cache, so many tokens at a time (the last number again and again)."""
    state, found, begin = model.start(encoded(model, batch)), [], 0
    with paddle.no_grad():
        while begin < batch.target_in.shape[1]:
            chunk = chunks[min(len(found), len(chunks) - 1)]
            part = slice(begin, begin + chunk)
            h, state = model.decode(batch.target_in[:, part], state, batch.target_valid[:, part])
            found.append(h)
            begin += chunk
    return paddle.concat(found, 1).numpy()


@check(
    *LAYERS,
    law="decoding step by step through the cache equals the full pass, in chunks too",
    means="the model that translates is not the one that was trained",
    look="positions counted from the tensor's length instead of `info.positions`, keys rotated twice or not at all, a cache "
    "that forgets or repeats",
    each_scene=True,
)
def cached(scene: Scene) -> None:
    model, batch = scene.model(), scene.batch()
    with paddle.no_grad():
        full = model(batch)[0]
    for chunks in ([1], [2], [1, 3], [4, 1]):
        found = stepwise(model, batch, chunks)
        valid = batch.target_valid.numpy()
        told = f"{chunks[0]} tokens first, then {chunks[-1]} at a time"
        demand_same(full.numpy()[valid], found[valid], told)


@check(
    *LAYERS,
    law="choosing rows in the middle of decoding gives what these rows give (beams reorder)",
    means="beam search mixes hypotheses up",
    look="`select` of what `project` returns: every tensor in it, and nothing kept elsewhere",
    each_scene=True,
)
def beams(scene: Scene) -> None:
    model, batch = scene.model(), scene.batch()
    rows = batch.source.shape[0]
    length = batch.target_in.shape[1]
    if length < 3:
        raise NotHere("sentences too short")
    everyone = batch._replace(target_valid=paddle.ones_like(batch.target_valid))
    with paddle.no_grad():
        memory = encoded(model, everyone)
        full = model.decode(everyone.target_in, model.start(memory))[0]
        order = [*reversed(range(rows)), 0, 0]
        pick = paddle.to_tensor(order, dtype="int64")
        _, state = model.decode(everyone.target_in[:, :2], model.start(memory))
        h, _ = model.decode(everyone.target_in[:, 2:].index_select(pick), state.select(pick))
        demand_same(full.numpy()[order][:, 2:], h.numpy(), "rows chosen after two tokens")
        doubled = paddle.to_tensor([row for row in range(rows) for _ in range(2)], dtype="int64")
        _, state = model.decode(everyone.target_in[:, :1], model.start(memory))
        state = state.select(doubled)
        words = paddle.to_tensor([[4 + i % 9] for i in range(2 * rows)])
        _, state = model.decode(words, state)
        swap = paddle.to_tensor([row + (1 if row % 2 == 0 else -1) for row in range(2 * rows)], dtype="int64")
        stays, moves = (model.decode(words, state.select(swap, same))[0].numpy() for same in (True, False))
        demand_same(stays, moves, "beams of a sentence change places, its memory kept or moved along")


@check(
    *LAYERS,
    law="the layers keep nothing between calls, and evaluation changes nothing",
    means="a result depends on what was computed before it",
    look="attributes set in `forward`; buffers updated in evaluation mode; caches kept in the layer instead of in what "
    "`project` returns",
    each_scene=True,
)
def stateless(scene: Scene) -> None:
    model, batch, other = scene.model(), scene.batch(), scene.batch(seed=9)
    held = {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}
    first = outputs(model, batch)
    outputs(model, other)
    if not np.array_equal(first, outputs(model, batch)):
        raise Failed("the same batch, after another one, gives other numbers")
    new, used = scene.model(moved=False), scene.model(moved=False)
    outputs(used, other)
    if not np.array_equal(outputs(new, batch), outputs(used, batch)):
        raise Failed("a batch gives other numbers in a new model than in one that has seen another batch")
    for name, tensor in model.state_dict().items():
        if not np.array_equal(held[name], tensor.numpy()):
            raise Failed(f"{name} changed in evaluation mode")
    with paddle.no_grad():
        start = model.start(encoded(model, batch))
        _, state = model.decode(batch.target_in[:, :1], start)
        once = model.decode(batch.target_in[:, 1:2] if batch.target_in.shape[1] > 1 else batch.target_in, state)[0]
        model.decode(batch.target_in[:, :1], start)
        model.decode(other.target_in[:, :1], model.start(encoded(model, other)))
        again = model.decode(batch.target_in[:, 1:2] if batch.target_in.shape[1] > 1 else batch.target_in, state)[0]
    demand_same(once.numpy(), again.numpy(), "decoding twice from one state", 0.0)


@check(
    *LAYERS,
    law="saved and loaded, it is the same",
    means="a checkpoint does not hold the model that was trained",
    look="tensors that change in training and are neither parameters nor persistable buffers; values drawn in the "
    "constructor and kept outside both",
    each_scene=True,
)
def saved(scene: Scene) -> None:
    model, other = scene.model(), scene.model(seed=99, moved=False)
    state = {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}
    if state.keys() != other.state_dict().keys():
        raise Failed("two models of one recipe have different names in their state")
    for name, tensor in other.state_dict().items():
        tensor.set_value(state[name])
    demand_same(outputs(model, scene.batch()), outputs(other, scene.batch()), "the loaded model", 0.0)


# -------------------------------------------------------------------------------------------------- numbers at the edges


@check(
    *LAYERS,
    law="a row that sees nothing stays finite, in values and gradients",
    means="one empty sentence turns the weights of the whole model into NaN",
    look="softmax over nothing but −inf (use a large negative number), divisions by a count that may be 0",
    each_scene=True,
)
def masked_rows(scene: Scene) -> None:
    for rows in ([0], list(range(len(scene.size.source_lengths)))):
        model, batch = scene.model(), scene.batch()
        model.train()
        valid = batch.source_valid.numpy().copy()
        valid[rows] = False
        _finite(model, batch._replace(source_valid=paddle.to_tensor(valid)), "a source that is all padding")


@check(
    *LAYERS,
    law="very large and very small inputs stay finite, in values and gradients",
    means="a spike in training ends in NaN",
    look="exp, division, square roots at 0, squares of large numbers: shift, clip or add a small number",
    each_scene=True,
)
def extremes(scene: Scene) -> None:
    for factor in (1e4, 1e-6, 0.0):
        told = f"its input times {factor:g}"
        model = scene.model()
        model.train()
        if scene.subject.kind == "head":
            _finite_head(model, scene, factor, told)
            continue
        if scene.subject.kind == "position":  # it gets positions; what it is added to is beside it
            told = f"embeddings times {factor:g}"
            with paddle.no_grad():
                for table in {
                    id(t): t for t in (model.source_embedding, model.target_embedding) if t is not None
                }.values():
                    table.weight.set_value(table.weight * factor)
        for layer in scene.mine(model)[:1]:  # at one place: from layer to layer a factor would grow beyond all numbers
            layer.register_forward_pre_hook(lambda layer, inputs, factor=factor: (inputs[0] * factor, *inputs[1:]))
        _finite(model, scene.batch(), told)


def _finite_head(model: Transformer, scene: Scene, factor: float, what: str) -> None:
    given = scene.batch()
    h, memory = model(given)
    h = h.detach() * factor
    h.stop_gradient = False
    losses = model.head.loss(h, model.target(given), memory)
    losses.sum().backward()
    if not (np.isfinite(losses.numpy()).all() and np.isfinite(h.grad.numpy()).all()):
        raise Failed(f"{what}: the loss or its gradient is not finite")
    with paddle.no_grad():
        if not np.isfinite(model.head.log_probs(h, memory).numpy()).all():
            raise Failed(f"{what}: log-probabilities are not finite")


def _finite(model: Transformer, batch, what: str) -> None:
    loss = model.loss(batch)
    if not np.isfinite(float(loss)):
        raise Failed(f"{what}: the loss is {float(loss)}")
    loss.backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and not np.isfinite(parameter.grad.numpy()).all():
            raise Failed(f"{what}: the gradient of {name} is not finite")
    model.eval()
    with paddle.no_grad():
        if not np.isfinite(model(batch)[0].numpy()).all():
            raise Failed(f"{what}: the output in evaluation is not finite")


@check(
    *LAYERS,
    law="gradients agree with finite differences, in float64",
    means="the backward pass is not that of the forward pass: it learns something else",
    look="a PyLayer's backward; values that reach the output past the graph (NumPy, `detach`)",
    each_scene=True,
)
def gradients(scene: Scene) -> None:
    model, batch = scene.model("float64"), scene.batch()
    model.train()
    rng = np.random.default_rng(11)

    def loss() -> paddle.Tensor:
        return model.loss(batch)

    model.clear_gradients()
    loss().backward()
    mine = {id(parameter) for layer in scene.mine(model) for parameter in layer.parameters()}
    tables = {id(table.weight) for table in (model.source_embedding, model.target_embedding) if table is not None}
    trained = [(name, p) for name, p in model.named_parameters() if p.grad is not None]

    def agree(chosen: dict[str, paddle.Tensor]) -> bool:
        directions = {name: rng.normal(size=p.shape) for name, p in chosen.items()}
        for name, p in chosen.items():
            if id(p) in tables:
                directions[name][PAD] = 0.0  # padding's row stays zero, whatever reaches it
        return _agree(chosen, directions, loss)

    for group in (mine, tables - mine):  # its own parameters, and what gradients reach through it
        chosen = {name: p for name, p in trained if id(p) in group}
        if chosen and not agree(chosen):
            wrong = [name for name, p in chosen.items() if not agree({name: p})]
            raise Failed(f"the backward pass and finite differences disagree: {', '.join(wrong or chosen)}")


def _agree(chosen: dict[str, paddle.Tensor], directions: dict[str, np.ndarray], loss) -> bool:
    """Whether the derivative in a direction is the slope seen from both sides, for one step size at least: kinks
    (ReLU, the choice of an expert) need a small one, parts held in float32 a large one."""
    products = [float((p.grad.numpy() * directions[name]).sum()) for name, p in chosen.items()]
    norm = float(np.sqrt(sum((p.grad.numpy() ** 2).sum() for p in chosen.values())))
    claimed, start = sum(products), {name: p.numpy().copy() for name, p in chosen.items()}
    for step in (1e-4, 1e-6, 1e-8, 1e-3):
        sides = []
        for sign in (1, -1):
            with paddle.no_grad():
                for name, p in chosen.items():
                    p.set_value(start[name] + sign * step * directions[name])
                sides.append(float(loss()))
        for name, p in chosen.items():
            p.set_value(start[name])
        if abs((sides[0] - sides[1]) / (2 * step) - claimed) < 1e-3 * max(norm, 1e-3):
            return True
    return False


@check(
    *LAYERS,
    law="half precision (bfloat16) stays finite and near float32, where the device has it",
    means="mixed-precision training would diverge",
    look="constants that half precision cannot hold; sums that should be kept in float32",
    each_scene=True,
)
def half_precision(scene: Scene) -> None:
    if paddle.device.get_device() == "cpu":
        raise NotHere("a CPU trains in float32; run the check on a GPU")
    model, batch = scene.model(), scene.batch()
    usual = outputs(model, batch)
    with paddle.amp.auto_cast(dtype="bfloat16"):
        half = outputs(model, batch)
    demand_same(usual, half.astype("float32"), "bfloat16", 0.1)


# ------------------------------------------------------------------------------------------------------- draws and modes


@check(
    *MODEL,
    law="the same seed gives the same model, and the same training step",
    means="runs cannot be repeated, nor resumed",
    look="draws from Paddle's, NumPy's or Python's generator in `forward` (use paddle_tfm.layers.Dropout), in an "
    "initializer (use its `rng`)",
    each_scene=True,
)
def repeatable(scene: Scene) -> None:
    one = scene.model(dropout=0.3)
    paddle.seed(12345)
    np.random.seed(12345)
    same = scene.model(dropout=0.3)
    for (name, a), b in zip(one.named_parameters(), same.parameters()):
        if not np.array_equal(a.numpy(), b.numpy()):
            raise Failed(f"{name} starts from other values although the seed is the same")
    batch = scene.batch()
    one.train()
    losses = []
    for i in range(2):
        paddle.seed(i)
        with paddle.no_grad(), randomness.random_context(7, 1):
            losses.append(float(one.loss(batch)))
    if losses[0] != losses[1]:
        raise Failed(f"one training step computed twice: the loss is {losses[0]:.6g}, then {losses[1]:.6g}")


@check(
    *LAYERS,
    law="dropout is off in evaluation",
    means="outputs change from call to call, and scores are too low",
    look="a dropout that does not ask `self.training`; functional dropout with its default `training=True`",
    each_scene=True,
)
def evaluation(scene: Scene) -> None:
    plain, noisy = scene.model(moved=False), scene.model(dropout=0.5, moved=False)
    names = {name for name, _ in plain.named_parameters()}
    for name, parameter in noisy.named_parameters():
        if name in names:
            parameter.set_value(dict(plain.named_parameters())[name])
    batch = scene.batch()
    demand_same(outputs(noisy, batch), outputs(noisy, batch), "evaluated twice", 0.0)
    demand_same(outputs(plain, batch), outputs(noisy, batch), "evaluated with and without dropout in the recipe")


# ------------------------------------------------------------------------------------------------------ for information


@check(
    *LAYERS,
    law="speed and memory beside the reference",
    means="",
    look="",
    information=True,
)
def cost(subject: Subject) -> None:
    size = Size(64, 4, 256, 2, 2, (24,) * 16, (24,) * 16)
    chosen = subject.scenes[0].settings.model_dump()[subject.kind]
    usual = subject.base[subject.kind]
    models, given = [], batch(size)
    for value in (chosen, usual):
        made = build(plan_model(subject.settings(size, value), subject.registry), VOCABULARY, VOCABULARY)
        made.train()
        models.append(made)
    times: list[list[float]] = [[], []]
    for _ in range(6):
        for model, taken in zip(models, times):
            begin = time.perf_counter()
            model.loss(given).backward()
            taken.append(time.perf_counter() - begin)
            model.clear_gradients()
    step = [float(np.median(taken[1:])) for taken in times]
    weights = [sum(p.size for p in model.parameters()) for model in models]
    reference = Spec.parse(usual).name
    told = (
        f"a training step takes {step[0] / step[1]:.2f} × that with {reference}, with {weights[0] / weights[1]:.2f} × "
    )
    raise Seen(f"{told}the parameters (d_model 64, 2+2 layers, 16 sentences of 24 tokens)")
