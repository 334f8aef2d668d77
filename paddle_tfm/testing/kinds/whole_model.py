"""What holds for a whole encoder-decoder model beside the invariants that it shares with components."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm.testing.adapters.arguments import NAMES, first
from paddle_tfm.testing.adapters.whole_model import VOCABULARY, WORD, WholeModel
from paddle_tfm.testing.invariants import WHOLE_MODEL
from paddle_tfm.testing.invariants.numerics import FACTORS, not_finite, or_by_silu
from paddle_tfm.testing.models.model_under_test import same_draws
from paddle_tfm.testing.models.word_orders import word_orders
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result, Skip, relative_distance

MAX_SIZE_RATIO = 3.0  # how many times the size of a token what is added to all tokens alike may have
MAX_EXCESS, BATCHES = 1.5, 4  # nats a token, above log V
MIN_EFFECT, MIN_EFFECT_OF_ORDER = 1e-5, 1e-6  # of the largest logit
WORDS = 6  # of a text, of which each is looked at


def _at_the_start_or_later(look: Callable[[WholeModel], Result]) -> Callable[[WholeModel], Result]:
    """A model may begin with a gate that is shut, or with an output of zeros: what it lacks then, a few steps bring."""

    @wraps(look)
    def twice(whole: WholeModel) -> Result:
        result = look(whole)
        return result if isinstance(result, Passed) else look(whole.after_training())

    return twice


@check(
    WHOLE_MODEL,
    invariant="the residual passes: with the matrices of a stack's layers at zero, the logits still depend on its text",
    consequence="a residual is missing: each layer must pass on its whole input, which deep stacks do not learn",
    hint="`x +` around each sublayer: norm(x + f(x)), or x + f(norm(x))",
)
@_at_the_start_or_later
def residual(whole: WholeModel) -> Result:
    batch = whole.batch()
    changes = {"encoder": {"source": whole.last_word_changed(batch.source)}}
    changes["decoder"] = {"target_in": whole.last_word_changed(batch.target_in)}
    for stack, change in changes.items():
        model = whole.model()
        matrices = _matrices(model, stack, whole.logits(model, batch).shape[-1])
        if not matrices:
            return Skip(f"which layers are the {stack}'s cannot be read from their names")
        for matrix in matrices:
            matrix.set_value(paddle.zeros_like(matrix))
        usual, other = whole.logits(model, batch), whole.logits(model, batch.replace(**change))
        if np.abs(usual - other).max() <= MIN_EFFECT_OF_ORDER * np.abs(usual).max():
            return Failed(f"with the {stack}'s matrices zero, another word in the {stack}'s text changes nothing")
    return Passed()


def _matrices(model: nn.Layer, stack: str, vocabulary: int) -> list[Tensor]:
    """The matrices of a stack's layers, without embeddings and the output."""
    tables = {id(table.weight) for table in model.sublayers() if isinstance(table, nn.Embedding)}
    return [
        parameter
        for name, parameter in model.named_parameters()
        if parameter.ndim == 2
        and _stack_of(name) == stack
        and id(parameter) not in tables
        and vocabulary not in parameter.shape
    ]


def _stack_of(name: str) -> str:
    """The stack that a parameter's path names first: "body.decoder.layers.0.enc_dec_attention.query" is the
    decoder's."""
    for part in name.split("."):
        for stack in ("encoder", "decoder"):
            if stack in part or part in (stack[:3], f"{stack[:3]}s") or part.startswith(f"{stack[:3]}_"):
                return stack
    return ""


@check(
    WHOLE_MODEL,
    invariant="every norm is used at one place",
    consequence="one set of gains (with BatchNorm also of statistics) serves inputs of different kinds",
    hint="a norm for each sublayer of each layer: made inside the loop over layers",
)
def own_norms(whole: WholeModel) -> Result:
    model = whole.model()
    calls: Counter[str] = Counter()
    norms = []
    for name, layer in model.named_sublayers():
        layer.register_forward_post_hook(_counter(calls, name))
        if "norm" in type(layer).__name__.lower() and not list(layer.children()):
            norms.append(name)
    whole.logits(model, whole.batch())
    for name in norms:
        above = [".".join(name.split(".")[:depth]) for depth in range(name.count("."), 0, -1)]
        parent = next((calls[outer] for outer in above if outer in calls), 1)  # a layer may be shared on purpose
        if calls[name] > parent:
            return Failed(f"{name} is called {calls[name]} times in one pass of the layer that holds it")
    placements = _placements(whole)
    return Note("; ".join(placements)) if placements else Passed()


def _placements(whole: WholeModel) -> list[str]:
    """For each stack whether norms stand before its sublayers or behind the residuals, in words: in pre-norm a norm
    gets what its layer gets, in post-norm it gives what its layer gives. [] where its layers are in no list."""
    model = whole.model()
    inputs: dict[str, np.ndarray] = {}
    outputs: dict[str, np.ndarray] = {}
    norms: dict[str, list[str]] = {}
    layers = {
        f"{path}.{number}": each
        for path, group in model.named_sublayers()
        if isinstance(group, nn.LayerList) and _stack_of(path)
        for number, each in group.named_children()
        if any("norm" in type(part).__name__.lower() for part in each.sublayers())
    }

    def note(name: str) -> Callable[..., Any]:
        def called(layer: nn.Layer, arguments: tuple, out: Any) -> None:
            if arguments and isinstance(arguments[0], Tensor):
                inputs[name], outputs[name] = arguments[0].numpy(), first(out).numpy()

        return called

    for name, layer in layers.items():
        layer.register_forward_post_hook(note(name))
        for part, sublayer in layer.named_sublayers():
            if "norm" in type(sublayer).__name__.lower() and not list(sublayer.children()):
                norms.setdefault(name, []).append(f"{name}.{part}")
                sublayer.register_forward_post_hook(note(f"{name}.{part}"))
    whole.logits(model, whole.batch())
    said: dict[str, set[str]] = {}
    for name in norms:
        called = [norm for norm in norms[name] if norm in inputs and name in inputs]
        before = any(np.array_equal(inputs[name], inputs[norm]) for norm in called)
        behind = any(np.array_equal(outputs[name], outputs[norm]) for norm in called)
        words = {(True, False): "pre-norm", (False, True): "post-norm", (True, True): "norms before and behind"}
        said.setdefault(_stack_of(name), set()).add(words.get((before, behind), "neither pre-norm nor post-norm"))
    return [f"the {stack}: {', '.join(sorted(kinds))}" for stack, kinds in said.items()]


def _counter(calls: Counter[str], name: str) -> Callable[..., Any]:
    """Counts a call of the layer `name`."""
    return lambda layer, inputs, output: calls.update([name])


@check(
    WHOLE_MODEL,
    invariant="the output depends on the source, and on the target so far",
    consequence="it does not translate: it is a language model, or ignores what it has written",
    hint="what cross-attention gets as keys and values (the encoder's output)",
)
@_at_the_start_or_later
def attends(whole: WholeModel) -> Result:
    model, batch = whole.model(), whole.batch()
    usual = whole.logits(model, batch)
    source = batch.replace(source=whole.other_words(batch.source, 4))
    if relative_distance(usual, whole.logits(model, source)) < MIN_EFFECT:
        return Failed("another source changes nothing")
    target = batch.target_in.clone()
    target[:, 1] = whole.other_ids(target[:, 1])
    changed = whole.logits(model, batch.replace(target_in=target))
    if np.abs(changed - usual)[:, 1:].max() < MIN_EFFECT * np.abs(usual).max():
        return Failed("another target word changes nothing")
    return Passed()


@check(
    WHOLE_MODEL,
    invariant="every source word reaches every position of the output, and every position of the encoder; every target "
    "word its own position and all later ones",
    consequence="a part of the text is ignored: the first words are written without having read the last ones",
    hint="a causal mask or a window across, or in the encoder; a window in the decoder, by design: declare it",
)
@_at_the_start_or_later
def reaches(whole: WholeModel) -> Result:
    usual = whole.different_words(WORDS).expand([WORDS + 1, WORDS])  # the last row stays
    changed = usual.clone()
    for t in range(WORDS):
        changed[t, t] = whole.other_ids(changed[t, t], WORDS)
    begin = paddle.full([WORDS + 1, 1], whole.begin, "int64")
    words, other_words = (paddle.concat([begin, each[:, :-1]], 1) for each in (usual, changed))
    batch, encoded = whole.batch(), []
    every = np.ones([WORDS, WORDS], bool)

    def unseen(outputs: np.ndarray, expected: np.ndarray = every) -> tuple[int, int] | None:
        """The first (word, position) of those expected at which a change of the one changes nothing at the other."""
        effects = np.abs(outputs[:-1] - outputs[-1:]).reshape(WORDS, WORDS, -1).max(-1)
        pairs = np.argwhere(expected & (effects < MIN_EFFECT_OF_ORDER * np.abs(outputs).max()))
        return (int(pairs[0][0]), int(pairs[0][1])) if len(pairs) else None

    def noted(layer: nn.Layer, inputs: Any, out: Any) -> Any:
        encoded.append(first(out))

    model = whole.model()
    for name, layer in model.named_sublayers():
        if _stack_of(name) == "encoder":
            layer.register_forward_post_hook(noted)
    if pair := unseen(whole.logits(model, batch.replace(source=changed, target_in=words))):
        return Failed(f"source word {pair[0]} does not change the logits at position {pair[1]}")
    if encoded and list(encoded[-1].shape[:2]) == [WORDS + 1, WORDS] and (pair := unseen(encoded[-1].numpy())):
        return Failed(f"source word {pair[0]} does not change the encoder's output at position {pair[1]}")
    target = whole.logits(model, batch.replace(source=usual, target_in=other_words))
    if pair := unseen(target, np.triu(every, 1)):  # the word at t comes in at t + 1
        return Failed(f"target word {pair[0]} does not change the logits at position {pair[1]}")
    for matrix in _matrices(model, "encoder", target.shape[-1]):  # else another word's output carries it past a mask
        matrix.set_value(paddle.zeros_like(matrix))
    if pair := unseen(whole.logits(model, batch.replace(source=changed, target_in=words))):
        return Failed(f"source word {pair[0]}, encoded by itself, does not change the logits at position {pair[1]}")
    return Passed()


@check(
    WHOLE_MODEL,
    name="extremes",
    invariant="very large and very small inputs of its layers stay finite, in values and gradients",
    consequence="a spike in training ends in NaN",
    hint="exp without subtracting the maximum, division, square roots at 0 (`std` of equal numbers): shift, clip or "
    "add a small number",
)
def extremes_inside(whole: WholeModel) -> Result:
    names: dict[object, str] = {}  # of each class of its author's the first layer, and its tables
    for name, layer in whole.model().named_sublayers():
        if isinstance(layer, nn.Embedding) or not type(layer).__module__.startswith("paddle."):
            names.setdefault(name if isinstance(layer, nn.Embedding) else type(layer), name)

    def not_finite_at(name: str) -> Failed | None:
        for factor in FACTORS:
            model = whole.model()
            model.train()
            layer = dict(model.named_sublayers())[name]
            if isinstance(layer, nn.Embedding):
                layer.weight.set_value(layer.weight * factor)
            else:
                layer.register_forward_pre_hook(lambda layer, inputs, factor=factor: _times(factor, inputs))
            if failed := not_finite(whole, model, whole.batch(), f"the input of {name} times {factor:g}"):
                return failed
        return None

    def anywhere() -> Failed | None:
        return next((failed for name in names.values() if (failed := not_finite_at(name))), None)

    return or_by_silu(anywhere(), anywhere) or Passed()


def _times(factor: float, inputs: Any) -> Any:
    """The first input times a factor, if it is made of real numbers."""
    if inputs and isinstance(inputs[0], Tensor) and inputs[0].is_floating_point():
        return (inputs[0] * factor, *inputs[1:])
    return inputs


@check(
    WHOLE_MODEL,
    invariant="the logits at a position depend on the word at that position, the newest one",
    consequence="each word is predicted without the one before it",
    hint="`target_in` comes shifted to the right, the begin token first: no shift in the model; a causal mask that "
    "leaves out the diagonal",
)
@_at_the_start_or_later
def newest_word(whole: WholeModel) -> Result:
    model, batch = whole.model(), whole.batch()
    usual = whole.logits(model, batch)
    target = batch.target_in.clone()
    target[:, 1] = whole.other_ids(target[:, 1])
    effects = np.abs(whole.logits(model, batch.replace(target_in=target)) - usual).max((0, 2))  # [T]
    if effects.max() < MIN_EFFECT * np.abs(usual).max():
        return Skip("no position depends on the target's words")
    if effects[1] < MIN_EFFECT * np.abs(usual).max():
        later = [int(position) for position in np.flatnonzero(effects >= MIN_EFFECT * np.abs(usual).max())]
        return Failed(f"another word at position 1 changes the logits at {later}, and not at 1")
    return Passed()


@check(
    WHOLE_MODEL,
    invariant="a class with a dropout rate uses it",
    consequence="it overfits, for its dropout does nothing",
    hint="the dropout that the constructor makes: whether `forward` calls it",
)
@_at_the_start_or_later
def dropout(whole: WholeModel) -> Result:
    if not set(inspect.signature(whole.cls).parameters) & set(NAMES["dropout"]):
        return Skip("its constructor takes no dropout")
    model, batch = whole.model(dropout=0.5), whole.batch()
    model.train()
    outputs = []
    for seed in range(2):
        with paddle.no_grad(), same_draws(model, seed):
            outputs.append(first(model(batch.source, batch.target_in)).numpy())
    if np.array_equal(outputs[0], outputs[1]):
        return Failed("in training with dropout 0.5, two steps give the same: it draws nothing")
    return Passed()


@check(
    WHOLE_MODEL,
    invariant="order matters: a source with two words exchanged is another source",
    consequence="the encoder sees a bag of words",
    hint="whether positions reach the encoder: one vector for each position, and not one for all, nor for all but the "
    "first",
)
@_at_the_start_or_later
def order_matters(whole: WholeModel) -> Result:
    model, batch = whole.model(), whole.batch()
    row = int(np.argmax((batch.source.numpy() != whole.pad_id).sum(1)))  # the longest
    source = batch.source.clone()
    source[row] = whole.different_words(source.shape[1])
    usual, effects = whole.logits(model, batch.replace(source=source))[row], []
    for order in word_orders(source.shape[1]):
        reordered = source.clone()
        reordered[row] = source[row][paddle.to_tensor(order)]
        effects.append(relative_distance(usual, whole.logits(model, batch.replace(source=reordered))[row]))
    if max(effects) < MIN_EFFECT_OF_ORDER:
        return Failed(f"source words exchanged or shuffled in {len(effects)} ways, the logits are the same")
    return Passed()


@check(
    WHOLE_MODEL,
    invariant="vectors added to tokens do not drown them",
    consequence="all tokens look alike: the model hardly sees which word stands where",
    hint="`+ sqrt(d_model)` where `* sqrt(d_model)` was meant; the scale of positions beside that of embeddings",
)
def magnitude(whole: WholeModel) -> Result:
    embedded, entered = _embedded_and_entered(whole)
    if embedded is None or entered is None:
        return Skip("it has no nn.Embedding followed by nn.Linear or nn.LayerNorm to look at")
    token, sums = embedded[0, 0], entered[0]  # [C], [T, C]: a · token + what positions add
    a = float((sums @ token).mean() / (token @ token))
    common = sums.mean(0) - a * token
    ratio = float(np.sqrt((common**2).mean()) / max(1e-9, abs(a) * np.sqrt((token**2).mean())))
    if ratio > MAX_SIZE_RATIO:
        return Failed(f"what is added to every token alike is {ratio:.1f} times as large as the token itself")
    return Passed()


def _embedded_and_entered(whole: WholeModel) -> tuple[np.ndarray | None, np.ndarray | None]:
    """([1, T, C] of the first table of words for a text of one word, what the first layer after it gets)."""
    model = whole.model()
    embedded: list[np.ndarray] = []
    entered: list[np.ndarray | None] = []

    def after_table(layer: nn.Layer, inputs: Any, out: Tensor) -> Any:
        if isinstance(inputs[0], Tensor) and bool((inputs[0] == WORD).all()):  # words, not positions
            embedded.append(out.numpy())

    def before_layer(layer: nn.Layer, inputs: Any) -> Any:
        shape = embedded[-1].shape if embedded else (0,)
        for x in inputs:
            if isinstance(x, Tensor) and x.ndim == 3 and x.shape[-1] == shape[-1] and x.dtype == paddle.float32:
                # [T, B, C], or source and target in one text: what comes later is no sum of embeddings
                entered.append(x.numpy() if tuple(x.shape) == shape else None)
                break

    for layer in model.sublayers():
        if isinstance(layer, nn.Embedding):
            layer.register_forward_post_hook(after_table)
        elif isinstance(layer, (nn.Linear, nn.LayerNorm)):
            layer.register_forward_pre_hook(before_layer)
    text = paddle.full([1, 6], WORD, "int64")
    whole.logits(model, whole.batch().replace(source=text, target_in=text))
    return embedded[0] if embedded else None, entered[0] if entered else None


@check(
    WHOLE_MODEL,
    invariant="at the start the loss is about log V, as of uniform predictions",
    consequence="training first has to undo the initial values; deep models never recover",
    hint="the scale of matrices: variance about 1 / width; U(−1, 1) is far too wide; no sqrt(head_dim) in the scores",
)
def initial_loss(whole: WholeModel) -> Result:
    model = whole.model()
    logits = np.concatenate([whole.outputs(model, whole.batch(seed=seed)) for seed in range(BATCHES)]).astype("float64")
    # What it is on average over all words that might come next: a dozen words drawn would say as much of the draw.
    words = logits[:, whole.different_words(VOCABULARY).numpy()]
    highest = logits.max(-1)
    total = highest + np.log(np.exp(logits - highest[:, None]).sum(-1))
    loss, even = float((total - words.mean(-1)).mean()), math.log(logits.shape[-1])
    if not loss < even + MAX_EXCESS:
        return Failed(f"{loss:.2f} nats a token, on average over all words, where log V is {even:.2f}")
    return Note(f"{loss:.2f} nats a token, log V is {even:.2f}")
