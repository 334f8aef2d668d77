"""A whole encoder-decoder model of anybody's, `model(source, target_in) -> logits`, looked at from outside."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.errors import UserError
from paddle_tfm.testing.adapt import constructor, first
from paddle_tfm.testing.laws import CLOSE, STEPS, apart, demand_same, reachable
from paddle_tfm.testing.report import Failed, NotHere, Seen, check

KIND = "encoder-decoder"
WORDS, LONGEST, WORD = 17, 64, 5
DROWNED = 3.0  # how many times the size of a token what is added to all tokens alike may have


class WholeModel:
    """A model class, built small; ids from 3 on are words, 1 begins a target (2 if 1 is `pad_id`), `pad_id` pads.

    Raises:
        UserError: the constructor needs what the kit does not know, or the model cannot be built or called.
    """

    def __init__(self, cls: type, options: Mapping[str, object], pad_id: int = 0):
        self.cls, self.options, self.pad_id = cls, options, pad_id
        self.expected_failures: Mapping[str, str] = getattr(cls, "expected_failures", {})
        self.kind, self.name, self.refusals = KIND, cls.__name__, {}
        try:
            with paddle.no_grad():
                first(self.model()(*self.texts()))
        except UserError:
            raise
        except Exception as error:
            text = " ".join(str(error).split())[:300]
            raise UserError(
                f"{cls.__name__}(…)(source [3, 6], target_in [3, 6]) fails: {type(error).__name__}: {text}"
            ) from error

    def model(self, seed: int = 1, dropout: float = 0.0) -> nn.Layer:
        """In evaluation mode."""
        given = {"d_model": 32, "num_heads": 4, "head_dim": 8, "d_ff": 48, "layers": 2, "vocabulary": WORDS}
        given |= {"max_length": LONGEST, "dropout": dropout, "pad_id": self.pad_id}
        paddle.seed(seed)
        made = self.cls(**constructor(self.cls, given, self.options))
        made.eval()
        return made

    def texts(self, extra: int = 0, seed: int = 0) -> tuple[Tensor, Tensor]:
        """(source, target_in) int64 [3, 6 + extra], padded at the end."""
        rng = np.random.default_rng([seed, 3])
        sides = []
        for lengths, begin in (((6, 3, 4), 0), ((4, 6, 2), 1)):
            ids = np.full((3, 6 + extra), self.pad_id, dtype=np.int64)
            for row, length in zip(ids, lengths):
                row[:length] = rng.choice([i for i in range(3, WORDS) if i != self.pad_id], length)
                if begin:
                    row[0] = 1 if self.pad_id != 1 else 2
            sides.append(paddle.to_tensor(ids))
        return sides[0], sides[1]

    def logits(self, model: nn.Layer, source: Tensor, target_in: Tensor) -> np.ndarray:
        """[B, T, V]"""
        with paddle.no_grad():
            return first(model(source, target_in)).numpy()

    def loss(self, model: nn.Layer, source: Tensor, target_in: Tensor) -> Tensor:
        """Mean cross entropy of real tokens, each predicting the word of the source at its place, if there is one."""
        logits, target = first(model(source, target_in)), source[:, : target_in.shape[1]]
        known = (target_in != self.pad_id) & (target != self.pad_id)
        losses = F.cross_entropy(logits, target.unsqueeze(-1), reduction="none", soft_label=False).squeeze(-1)
        return paddle.where(known, losses, paddle.zeros_like(losses)).sum() / known.astype(losses.dtype).sum().clip(
            min=1.0
        )

    def last_word_changed(self, ids: Tensor) -> Tensor:
        """The last word of the longest text is another one."""
        changed = ids.clone()
        row = int(np.argmax((ids.numpy() != self.pad_id).sum(1)))
        others = [word for word in range(3, WORDS) if word not in (self.pad_id, int(ids[row, 5]))]
        changed[row, 5] = others[0]
        return changed

    @cached_property
    def valid(self) -> np.ndarray:
        """bool [3, 6]: the real target tokens."""
        return self.texts()[1].numpy() != self.pad_id


@check(
    KIND,
    law="the model returns logits [B, T, V]",
    means="the loss is computed of something else",
    look="the last layer",
)
def shapes(whole: WholeModel) -> None:
    out = whole.logits(whole.model(), *whole.texts())
    if out.ndim != 3 or list(out.shape[:2]) != [3, 6]:
        raise Failed(f"source [3, 6] and target_in [3, 6] give {list(out.shape)} instead of [3, 6, V]")
    if np.all(out >= 0) and np.allclose(out.sum(-1), 1, atol=1e-3):
        raise Failed("rows sum to one: these are probabilities; the cross entropy would take a second softmax")


@check(
    KIND,
    law="every parameter is registered",
    means="what is not registered is not saved, and no optimizer ever sees it: it stays at its initial value",
    look="layers kept in a plain list (use nn.LayerList), tensors that should be parameters (create_parameter)",
)
def registered(whole: WholeModel) -> None:
    model = whole.model()
    known = {id(parameter) for parameter in model.parameters()}
    for path, layer in model.named_sublayers(include_self=True):
        for name, parameter in reachable(vars(layer)):
            if id(parameter) not in known:
                where = f"{path}.{name}".strip(".")
                raise Failed(f"{where} {parameter.shape} is used, and not among the model's parameters")


@check(
    KIND,
    law="every matrix gets a gradient",
    means="a part of the model does not learn: layers that are made and never called, or cut off from the loss",
    look="parameters that nothing uses; tensors that went through NumPy or `detach`",
)
def trains(whole: WholeModel) -> None:
    model = whole.model()
    model.train()
    alive: set[str] = set()
    for seed in range(3):
        model.clear_gradients()
        whole.loss(model, *whole.texts(seed=seed)).backward()
        alive |= {name for name, p in model.named_parameters() if p.grad is not None and np.any(p.grad.numpy())}
    for name, parameter in model.named_parameters():
        if name not in alive and not parameter.stop_gradient and parameter.ndim > 1:
            raise Failed(f"{name} {parameter.shape} gets no gradient, and never moves")


@check(
    KIND,
    law="training lowers the loss",
    means="it learns nothing, or too slowly to be of use",
    look="scales and signs; the causal mask; initial values; a softmax in the model and another in the loss",
)
def learns(whole: WholeModel) -> None:
    model = whole.model()
    model.train()
    optimizer = paddle.optimizer.Adam(learning_rate=2e-3, parameters=model.parameters())
    losses = []
    for _ in range(2 * STEPS):
        loss = whole.loss(model, *whole.texts())
        losses.append(float(loss))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    if not losses[-1] < 0.5 * losses[0]:
        raise Failed(f"{2 * STEPS} steps of Adam on one batch: {losses[0]:.3g} nats a token, then {losses[-1]:.3g}")


@check(
    KIND,
    law="no future leak: a position depends on earlier target tokens and itself only",
    means="teacher forcing shows the model the answer: training looks excellent, and translation is nonsense",
    look="the causal mask: that it is given to the decoder's self-attention, its direction, an off-by-one",
)
def causal(whole: WholeModel) -> None:
    _future_changed(whole, whole.model())


@check(
    KIND,
    law="no future leak while training either",
    means="what is trained is not what will be decoded",
    look="BatchNorm in the decoder: its statistics in training hold later tokens",
)
def causal_in_training(whole: WholeModel) -> None:
    _future_changed(whole, _in_training(whole))


def _in_training(whole: WholeModel) -> nn.Layer:
    """A model in training mode that draws nothing."""
    model, texts = whole.model(), whole.texts()
    model.train()
    if apart(whole.logits(model, *texts), whole.logits(model, *texts)) > CLOSE:
        raise NotHere("its dropout could not be set to zero")
    return model


def _future_changed(whole: WholeModel, model: nn.Layer) -> None:
    source, target = whole.texts()
    usual = whole.logits(model, source, target)
    for t in (1, 3, 5):
        changed = target.clone()
        changed[:, t:] = (changed[:, t:] - 3 + 1) % (WORDS - 3) + 3
        real = whole.valid[:, :t]
        seen = apart(usual[:, :t][real], whole.logits(model, source, changed)[:, :t][real])
        if seen > CLOSE:
            raise Failed(f"changing the target from position {t} on changes earlier logits by {seen:.2g}")


@check(
    KIND,
    law="padding changes nothing",
    means="a sentence is translated differently depending on the length of its neighbours",
    look="the mask of source padding in the encoder and in cross-attention; its shape, and which value hides; BatchNorm",
)
def padding(whole: WholeModel) -> None:
    model = whole.model()
    source, target = whole.texts()
    longer, more = whole.texts(extra=4)
    usual = whole.logits(model, source, target)[whole.valid]
    demand_same(usual, whole.logits(model, longer, target)[whole.valid], "with 4 more columns of padding in the source")
    demand_same(
        usual, whole.logits(model, source, more)[:, :6][whole.valid], "with 4 more columns of padding in the target"
    )


@check(
    KIND,
    law="padding changes nothing in training either",
    means="batches with much padding train another model than even ones, and evaluation is worse than training",
    look="BatchNorm over padding: it must get the real tokens only",
)
def padding_in_training(whole: WholeModel) -> None:
    model, (source, target), (longer, more) = _in_training(whole), whole.texts(), whole.texts(extra=4)
    usual = whole.logits(model, source, target)
    demand_same(usual[whole.valid], whole.logits(model, longer, more)[:, :6][whole.valid], "4 more columns of padding")


@check(
    KIND,
    law="the residual passes: where the matrices of a stack's layers are zero, the logits still depend on its text",
    means="a residual is missing: every layer has to pass on everything by itself, and deep stacks cannot",
    look="`x +` around each sublayer: norm(x + f(x)), or x + f(norm(x))",
)
def residual(whole: WholeModel) -> None:
    source, target = whole.texts()
    for stack, texts in (
        ("encoder", (whole.last_word_changed(source), target)),
        ("decoder", (source, whole.last_word_changed(target))),
    ):
        model = whole.model()
        words = {id(table.weight) for table in model.sublayers() if isinstance(table, nn.Embedding)}
        vocabulary = whole.logits(model, source, target).shape[-1]
        matrices = [
            parameter
            for name, parameter in model.named_parameters()
            if parameter.ndim == 2 and _stack_of(name) == stack and id(parameter) not in words
        ]
        matrices = [matrix for matrix in matrices if vocabulary not in matrix.shape]  # words, and the output
        if not matrices:
            raise NotHere(f"which layers are the {stack}'s cannot be told from their names")
        for matrix in matrices:
            matrix.set_value(paddle.zeros_like(matrix))
        usual, other = whole.logits(model, source, target), whole.logits(model, *texts)
        if np.abs(usual - other).max() <= 1e-6 * np.abs(usual).max():
            raise Failed(f"with the {stack}'s matrices zero, another word in the {stack}'s text changes nothing")


def _stack_of(name: str) -> str:
    """The stack that a parameter's path names first: "body.decoder.layers.0.enc_dec_attention.query" is the decoder's."""
    for part in name.split("."):
        for stack in ("encoder", "decoder"):
            if stack in part or part in (stack[:3], f"{stack[:3]}s") or part.startswith(f"{stack[:3]}_"):
                return stack
    return ""


@check(
    KIND,
    law="every norm is used at one place",
    means="one set of gains, and with BatchNorm of statistics, has to serve inputs of different kinds",
    look="a norm for each sublayer of each layer: made inside the loop over layers",
)
def own_norms(whole: WholeModel) -> None:
    model = whole.model()
    calls: dict[str, int] = {}
    norms = []
    for name, layer in model.named_sublayers():
        layer.register_forward_post_hook(lambda *_, name=name: calls.update({name: calls.get(name, 0) + 1}))
        if "norm" in type(layer).__name__.lower() and not list(layer.children()):
            norms.append(name)
    whole.logits(model, *whole.texts())
    for name in norms:
        above = [".".join(name.split(".")[:depth]) for depth in range(name.count("."), 0, -1)]
        parent = next((calls[outer] for outer in above if outer in calls), 1)  # a layer may be shared on purpose
        if calls.get(name, 0) > parent:
            raise Failed(f"{name} is called {calls[name]} times in one pass of the layer that holds it")


@check(
    KIND,
    law="sentences of a batch do not influence each other, and their order does not matter",
    means="a translation depends on what happens to be translated beside it",
    look="a reshape that mixes rows; [T, B, C] taken for [B, T, C]; statistics over the batch",
)
def neighbours(whole: WholeModel) -> None:
    model, (source, target) = whole.model(), whole.texts()
    usual = whole.logits(model, source, target)
    for i in range(3):
        alone = whole.logits(model, source[i : i + 1], target[i : i + 1])
        demand_same(usual[i][whole.valid[i]], alone[0][whole.valid[i]], f"sentence {i} alone")


@check(
    KIND,
    law="the output depends on the source, and on the target so far",
    means="it does not translate: it is a language model, or ignores what it has written",
    look="what cross-attention gets as keys and values (the encoder's output)",
)
def looks(whole: WholeModel) -> None:
    model, (source, target) = whole.model(), whole.texts()
    usual = whole.logits(model, source, target)
    other = paddle.where(source != whole.pad_id, (source - 3 + 4) % (WORDS - 3) + 3, source)
    size = float(np.abs(usual).max())
    if np.abs(whole.logits(model, other, target) - usual).max() < 1e-5 * size:
        raise Failed("another source changes nothing")
    changed = target.clone()
    changed[:, 1] = (changed[:, 1] - 3 + 1) % (WORDS - 3) + 3
    if np.abs(whole.logits(model, source, changed) - usual)[:, 1:].max() < 1e-5 * size:
        raise Failed("another target word changes nothing")


@check(
    KIND,
    law="order matters: a source with two words exchanged is another source",
    means="the encoder sees a bag of words",
    look="whether positions reach the encoder: one vector for each position, and not one for all",
)
def order_matters(whole: WholeModel) -> None:
    model, (source, target) = whole.model(), whole.texts()
    turned = source.clone()
    turned[:, 0], turned[:, 1] = source[:, 1], source[:, 0]
    usual = whole.logits(model, source, target)
    if np.abs(usual - whole.logits(model, turned, target)).max() < 1e-6 * np.abs(usual).max():
        raise Failed("the first two source words exchanged, the logits are the same")


@check(
    KIND,
    law="tokens are not drowned by what is added to them",
    means="all tokens look alike: the model hardly sees which word stands where",
    look="`+ sqrt(d_model)` where `* sqrt(d_model)` was meant; the scale of positions beside that of embeddings",
)
def magnitude(whole: WholeModel) -> None:
    model = whole.model()
    looked_up: list[np.ndarray] = []
    entered: list[np.ndarray] = []

    def embedded(layer: nn.Layer, inputs: tuple, out: Tensor) -> None:
        if (inputs[0] == WORD).all():  # words, not positions
            looked_up.append(out.numpy())

    def enters(layer: nn.Layer, inputs: tuple) -> None:
        shape = looked_up[-1].shape if looked_up else None
        for x in inputs:
            if isinstance(x, Tensor) and tuple(x.shape) == shape and x.dtype == paddle.float32:
                entered.append(x.numpy())
                return

    tables = [layer for layer in model.sublayers() if isinstance(layer, nn.Embedding)]
    for table in tables:
        table.register_forward_post_hook(embedded)
    for layer in model.sublayers():
        if isinstance(layer, (nn.Linear, nn.LayerNorm)):
            layer.register_forward_pre_hook(enters)
    whole.logits(model, paddle.full([1, 6], WORD, "int64"), paddle.full([1, 6], WORD, "int64"))
    if not looked_up or not entered:
        raise NotHere("it has no nn.Embedding followed by nn.Linear or nn.LayerNorm to look at")
    token = looked_up[0][0, 0]
    sums = entered[0][0]  # [T, C]: a · token + what positions add
    a = float((sums @ token).mean() / (token @ token))
    common = sums.mean(0) - a * token
    size = float(np.sqrt((common**2).mean()) / max(1e-9, abs(a) * np.sqrt((token**2).mean())))
    if size > DROWNED:
        raise Failed(f"what is added to every token alike is {size:.1f} times as large as the token itself")


@check(
    KIND,
    law="dropout is off in evaluation",
    means="outputs change from call to call, and scores are too low",
    look="functional dropout with its default `training=True`",
)
def evaluation(whole: WholeModel) -> None:
    model = whole.model(dropout=0.5)
    texts = whole.texts()
    demand_same(whole.logits(model, *texts), whole.logits(model, *texts), "evaluated twice", 0.0)


@check(
    KIND,
    law="at the start the loss is about log V: the model has no opinion yet",
    means="training first has to undo the initial values; deep models never recover",
    look="the scale of matrices: variance about 1 / width; U(−1, 1) is far too wide; no sqrt(head_dim) in the scores",
)
def initial_loss(whole: WholeModel) -> None:
    model, texts = whole.model(), whole.texts()
    loss, even = float(whole.loss(model, *texts)), math.log(whole.logits(model, *texts).shape[-1])
    if not loss < even + 1.5:
        raise Failed(f"{loss:.2f} nats a token, where log V is {even:.2f}")
    raise Seen(f"{loss:.2f} nats a token, log V is {even:.2f}")


@check(
    KIND,
    law="saved and loaded, it is the same",
    means="a checkpoint does not hold the model that was trained",
    look="values drawn in the constructor and kept outside parameters and buffers",
)
def saved(whole: WholeModel) -> None:
    model, other = whole.model(), whole.model(seed=2)
    other.set_state_dict(model.state_dict())
    demand_same(whole.logits(model, *whole.texts()), whole.logits(other, *whole.texts()), "the loaded model")


@check(
    KIND,
    law="a source that is all padding stays finite, in values and gradients",
    means="one empty sentence turns the weights of the whole model into NaN",
    look="softmax over nothing but −inf: use a large negative number",
)
def masked_rows(whole: WholeModel) -> None:
    model, (source, target) = whole.model(), whole.texts()
    empty = source.clone()
    empty[0] = whole.pad_id
    loss = whole.loss(model, empty, target)
    loss.backward()
    bad = [name for name, p in model.named_parameters() if p.grad is not None and not np.isfinite(p.grad.numpy()).all()]
    if not np.isfinite(float(loss)) or bad:
        raise Failed(f"the loss is {float(loss):.3g}, gradients of {len(bad)} parameters are not finite")
