"""Broken components, each at most three lines away from its correct twin in `twins/` or in the zoo, and the check that
names its bug."""

from __future__ import annotations

import difflib
import importlib.util
import sys
import types
from dataclasses import dataclass
from pathlib import Path

from edits import edited
from mutants_classes import CLASSES, ORDERS, RIGHT_CLASSES
from mutants_escaped import ESCAPED, RIGHT_VARIANTS
from mutants_places import PLACES, VARIANTS
from mutants_precision import HALF_PRECISION, IDLE_OPTIONS, RARE_STEPS
from mutants_ranges import RANGES
from mutants_several import SEVERAL
from mutants_zoo import OF_THE_ZOO

from paddle_tfm import create_registry

TWINS = Path(__file__).parent / "twins"
AS_KIND = {  # of twins that are ordinary layers
    "full_width": "attention",
    "ordinary_feed_forward": "feed_forward",
    "ordinary_attention": "attention",
    "ordinary_norm": "norm",
    "ordinary_position": "position",
    "transformer": "encoder-decoder",
}
MASK = {"ordinary_attention": "allowed", "full_width": "allowed"}  # what their masks say


@dataclass(frozen=True)
class Mutant:
    """`was` in the twin's source becomes `becomes`; the check `caught_by` must fail."""

    twin: str  # a file of `twins`, or kind/name in the zoo
    name: str
    was: str
    becomes: str
    caught_by: str

    def __str__(self) -> str:
        return f"{self.twin}: {self.name}"

    def source(self) -> str:
        """The mutant's source."""
        return edited(source(self.twin), self.was, self.becomes, self)

    def lines(self) -> int:
        """How many lines of the twin are changed, added or removed."""
        changes = [line[:1] for line in difflib.ndiff(source(self.twin).splitlines(), self.source().splitlines())]
        return max(changes.count("-"), changes.count("+"))


def source(twin: str) -> str:
    path = TWINS / f"{twin}.py"
    if "/" in twin:
        path = Path(importlib.util.find_spec(_module(twin)).origin)
    return path.read_text(encoding="utf-8")


def _module(twin: str) -> str:
    return f"paddle_tfm_plugins.{twin.replace('/', '.')}"


def build(text: str, twin: str) -> type:
    """The component of a twin's source, or of a mutant's: the class `Twin`, or the one that the zoo registers."""
    if "/" not in twin:
        module = types.ModuleType(f"twin_{twin}")
        exec(compile(text, f"{twin}.py", "exec"), module.__dict__)
        return module.Twin
    kind, name = twin.split("/")
    module = types.ModuleType(f"{_module(twin)}_mutant")
    sys.modules[module.__name__] = module  # where dataclasses look for themselves
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return getattr(module, create_registry().entry(kind, name).target.partition(":")[2])


def _of(twin: str, *mutants: tuple[str, str, str, str]) -> list[Mutant]:
    return [Mutant(twin, *mutant) for mutant in mutants]


ATTENTION = _of(
    "attention",
    ("no 1 / sqrt(head_dim)", "scores = scores / math.sqrt(self.head_dim)", "scores = scores * 1.0", "temperature"),
    ("scores divided by head_dim", "math.sqrt(self.head_dim)", "self.head_dim", "temperature"),
    ("softmax over the queries", "mask.dense(scores.dtype), -1)", "mask.dense(scores.dtype), -2)", "averages"),
    ("softmax over the heads", "mask.dense(scores.dtype), -1)", "mask.dense(scores.dtype), 1)", "averages"),
    ("inverted mask", "scores + mask.dense(scores.dtype)", "scores - mask.dense(scores.dtype)", "causal"),
    ("no mask", "F.softmax(scores + mask.dense(scores.dtype), -1)", "F.softmax(scores, -1)", "causal"),
    (
        "mask after the softmax", "F.softmax(scores + mask.dense(scores.dtype), -1)",
        "F.softmax(scores, -1) * mask.allowed().astype(scores.dtype)", "averages",
    ),
    (
        "masked scores are zero instead of very low", "F.softmax(scores + mask.dense(scores.dtype), -1)",
        "F.softmax(scores * mask.allowed().astype(scores.dtype), -1)", "causal",
    ),
    (
        "masked scores are minus infinity", "F.softmax(scores + mask.dense(scores.dtype), -1)",
        "F.softmax(paddle.where(mask.allowed().expand(scores.shape), scores, paddle.full_like(scores, "
            "float('-inf'))), -1)",
        "masked_rows",
    ),
    (
        "causal mask only: padding is seen", "mask.dense(scores.dtype)",
        "(1.0 - (info.positions.unsqueeze([1, 3]) >= mask.k_positions.unsqueeze([1, 2])).astype(scores.dtype) * "
            "float(mask.causal) - float(not mask.causal)) * -1e9",
        "padding",
    ),
    (
        "an encoder that sees the past only", "scores + mask.dense(scores.dtype)",
        "scores + mask.dense(scores.dtype) + (info.positions.unsqueeze([1, 3]) < mask.k_positions.unsqueeze([1, "
            "2])).astype(scores.dtype) * -1e9",
        "bidirectional",
    ),
    (
        "padding mask only: the future is seen", "mask.dense(scores.dtype)",
        "(1.0 - mask.k_valid.unsqueeze([1, 2]).astype(scores.dtype)) * -1e9", "causal",
    ),
    (
        "heads mixed up when they are taken apart", "self.heads, self.head_dim]).transpose([0, 2, 1, 3])",
        "self.heads, self.head_dim]).reshape([x.shape[0], self.heads, x.shape[1], self.head_dim])", "causal",
    ),
    (
        "heads mixed up when they are put together", "x.transpose([0, 2, 1, 3]).reshape([x.shape[0], x.shape[2]",
        "x.reshape([x.shape[0], x.shape[2]", "causal",
    ),
    (
        "rows of the batch mixed up", "context = paddle.matmul(weights, kv.value)",
        "context = paddle.matmul(weights, kv.value.roll(1, 0))", "neighbours",
    ),
    ("values are the keys", "value = self.split(self.value(source))", "value = self.split(self.key(source))", "trains"),
    (
        "keys cut off from the gradient", "self.split(self.key(source))", "self.split(self.key(source)).detach()",
        "trains",
    ),
    ("no output projection", "return self.output(self.merge(context))", "return self.merge(context)", "trains"),
    (
        "looks at itself instead of the source", "q = info.encoding.query(",
        "kv = kv if mask.causal else self.project(x, info)\n        q = info.encoding.query(", "attends",
    ),
    (
        "dropout in evaluation", "weights = self.dropout(weights)",
        "weights = F.dropout(weights, self.dropout.rate) if self.dropout.rate else weights", "evaluation",
    ),
    (
        "dropout from Paddle's generator", "weights = self.dropout(weights)",
        "weights = F.dropout(weights, self.dropout.rate, training=self.training) if self.dropout.rate else weights",
        "repeatable",
    ),
    (
        "keys not encoded", "key = info.encoding.key(self.split(self.key(source)), info.positions)",
        "key = self.split(self.key(source))", "supported_hooks",
    ),
    (
        "the encoding's bias left out", "F.softmax(scores + mask.dense(scores.dtype), -1)",
        "F.softmax(scores + (1.0 - mask.allowed().astype(scores.dtype)) * -1e9, -1)", "supported_hooks",
    ),
    (
        "the encoding's values left out", "context = context if relative is None else context + relative",
        "context = context", "supported_hooks",
    ),
    (
        "positions counted from the tensor's length", "self.split(self.query(x)), info.positions)",
        "self.split(self.query(x)), paddle.arange(x.shape[1]).unsqueeze(0))", "cached",
    ),
    (
        "state kept in the module", "q = info.encoding.query(",
        "self.kept = kv = kv if mask.causal or not hasattr(self, 'kept') or self.kept.key.shape != kv.key.shape "
            "else self.kept\n        q = info.encoding.query(",
        "stateless",
    ),
    (
        "another precision", "return self.output(self.merge(context))",
        "return self.output(self.merge(context)).astype('float32')", "shapes",
    ),
    (
        "mean over the batch taken off", "q = info.encoding.query(",
        "x = x - x.mean(0, keepdim=True)\n        q = info.encoding.query(", "neighbours",
    ),
    (
        "a past that is cut off",
        "Past(paddle.concat([self.key, new.key], 2), paddle.concat([self.value, new.value], 2))",
        "Past(new.key, new.value)", "cached",
    ),
    (
        "a cache that forgets the newest token but one", "paddle.concat([self.value, new.value], 2)",
        "paddle.concat([self.value[:, :, :-1], new.value[:, :, :1], new.value], 2)", "cached",
    ),
    (
        "beams reorder keys and not values", "self.value.index_select(rows, 0)",
        "self.value.index_select(rows.sort(), 0)", "beams",
    ),
)  # fmt: skip

ORDINARY = [
    *_of(
        "full_width",
        (
            "scale by d_model / num_heads on full-width heads", "math.sqrt(self.d_model)",
            "math.sqrt(self.d_model / self.num_heads)", "temperature",
        ),
    ),
    *_of(
        "ordinary_attention",
        ("heads in a plain list", "self.heads = nn.LayerList(heads)", "self.heads = heads", "registered"),
        (
            "the query chained through the heads", "head(query, key, value, mask)",
            "head(paddle.concat([found[-1]] * len(self.heads), -1) if found else query, key, value, mask)", "values",
        ),
        (
            "keys projected from the projected query", "k = self.key(key)",
            "k = F.linear(q, self.key.weight[: q.shape[-1]], self.key.bias)", "attends",
        ),
        ("values projected from the query", "v = self.value(value)", "v = self.value(query)", "attends"),
        (
            "inverted mask", "paddle.where(mask, scores, paddle.full_like(scores, -1e9))",
            "paddle.where(mask, paddle.full_like(scores, -1e9), scores)", "causal",
        ),
        ("mask ignored", "scores = paddle.where(mask, scores, paddle.full_like(scores, -1e9))", "", "causal"),
        ("softmax over the wrong axis", "F.softmax(scores, -1)", "F.softmax(scores, 1)", "causal"),
        (
            "weights cut off by NumPy", "F.softmax(scores, -1)", "paddle.to_tensor(F.softmax(scores, -1).numpy())",
            "trains",
        ),
    ),
    *_of(
        "ordinary_feed_forward",
        ("no activation", "        hidden = gate * self.w3(x)\n", "        hidden = self.w1(x) + self.w3(x)\n", "nonlinear"),
        ("a softmax over time for a gate", "F.sigmoid(gate)", "F.softmax(gate, 1)", "causal"),
        ("a layer in a plain list", "hidden = gate * self.w3(x)", "hidden = gate * [self.w3][0](x).detach()", "trains"),
        ("dropout that is never called", "self.dropout(self.w2(hidden))", "self.w2(hidden)", "dropout"),
        ("a width of its own", "        hidden_dim = multiple_of *", "        hidden_dim = 64\n        hidden_dim = multiple_of *", "width"),
    ),
    *_of(
        "ordinary_norm",
        (
            "over the time axis", "mean = paddle.mean(x, axis=-1, keepdim=True)",
            "mean = paddle.mean(x, axis=1, keepdim=True)", "causal",
        ),
        (
            "over the batch", "mean = paddle.mean(x, axis=-1, keepdim=True)",
            "mean = paddle.mean(x, axis=0, keepdim=True)", "neighbours",
        ),
        (
            "gain that is no parameter",
            "self.gain = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))",
            "self.gain = [paddle.create_parameter([d_model], paddle.get_default_dtype(), "
                "default_initializer=nn.initializer.Constant(1.0))][0:1]\n        self.__dict__['gain'] = self.gain[0]",
            "registered",
        ),
    ),
    *_of(
        "ordinary_position",
        (
            "one position's vector for all", "return x + self.table[: x.shape[1]].astype(x.dtype)",
            "return x + self.table[x.shape[1] - 1].astype(x.dtype)", "positions_differ",
        ),
        ("plus sqrt(d_model)", "return x + self.table", "return x + x.shape[-1] ** 0.5 + self.table", "magnitude"),
        (
            "indexed by the batch", "return x + self.table[: x.shape[1]].astype(x.dtype)",
            "return x + self.table[: x.shape[0]].unsqueeze(1).astype(x.dtype)", "neighbours",
        ),
        (
            "a table filled in one row only",
            "table[:, 0::2] = paddle.sin(position * rates)\n        table[:, 1::2] = paddle.cos(position * rates)",
            "table[0, 0::2] = 1.0", "positions_differ",
        ),
        (
            "drawn anew for each model, and not saved", 'self.register_buffer("table", table)',
            'self.register_buffer("table", table + paddle.randn(table.shape), persistable=False)', "saved",
        ),
    ),
]  # fmt: skip

NORM = [
    *_of(
        "layer_norm",
        ("the mean is not taken off", "centred = x - x.mean(-1, keepdim=True)", "centred = x * 1.0", "invariances"),
        (
            "not divided", "centred / paddle.sqrt(variance + self.eps) * self.weight", "centred * self.weight",
            "invariances",
        ),
        ("divided by the variance", "paddle.sqrt(variance + self.eps)", "(variance + self.eps)", "invariances"),
        ("no eps", "paddle.sqrt(variance + self.eps)", "paddle.sqrt(variance)", "extremes"),
        ("statistics over time", "x.mean(-1, keepdim=True)", "x.mean(1, keepdim=True)", "causal"),
        (
            "statistics cut off from the gradient", "(centred * centred).mean(-1, keepdim=True)",
            "(centred * centred).mean(-1, keepdim=True).detach()", "gradients",
        ),
        ("a gain that nothing uses", "* self.weight + self.bias", "+ self.bias", "trains"),
    ),
    *_of(
        "batch_norm",
        (
            "padding is counted", "real = valid.astype(x.dtype).unsqueeze(-1)",
            "real = paddle.ones_like(valid).astype(x.dtype).unsqueeze(-1)", "padding_in_training",
        ),
        (
            "running statistics never updated", "self.remember(mean.detach(), variance.detach())", "pass",
            "running_statistics",
        ),
        (
            "the running mean moves away", "self.momentum * (mean - self.mean)", "self.momentum * (self.mean - mean)",
            "running_statistics",
        ),
        (
            "the running variance is a standard deviation", "(variance - self.variance))",
            "(variance.sqrt() - self.variance))", "running_statistics",
        ),
        (
            "batch statistics in evaluation", "if self.training and float(real.sum()) > 1:",
            "if float(real.sum()) > 1:", "neighbours",
        ),
        (
            "updated in evaluation", "mean, variance = self.mean, self.variance",
            "mean, variance = self.mean.clone(), self.variance.clone()\n"
                "        self.mean.set_value(self.mean * 0.9 + 0.1 * x.mean([0, 1]))",
            "stateless",
        ),
        (
            "buffers that are not saved", 'self.register_buffer("mean", paddle.zeros([d_model], self.weight.dtype))',
            'self.register_buffer("mean", paddle.zeros([d_model], self.weight.dtype), persistable=False)', "saved",
        ),
        (
            "an RMS norm hidden in front", "mean, variance = self.mean, self.variance",
            "x = x / paddle.sqrt((x * x).mean(-1, keepdim=True) + self.eps)\n"
                "        mean, variance = self.mean, self.variance",
            "invariances",
        ),
    ),
]  # fmt: skip

PLACEMENT = [
    *_of(
        "pre",
        ("one norm shared by all sublayers", "self.norms[i]", "self.norms[0]", "own_norms"),
        (
            "missing residual", "return x + self.drops[i](sublayer(normed))", "return self.drops[i](sublayer(normed))",
            "identity_path",
        ),
        ("the residual is the normalized input", "return x + ", "return normed + ", "identity_path"),
        (
            "post under the name pre", "return x + self.drops[i](sublayer(normed))",
            "return self.norms[i](x + self.drops[i](sublayer(x)), info.valid, info.positions)", "identity_path",
        ),
        ("no final norm", "final_norm = True", "final_norm = False", "output_normalized"),
        (
            "a sublayer called twice", "self.drops[i](sublayer(normed))",
            "self.drops[i](sublayer(normed) + sublayer(normed))", "each_branch_once",
        ),
        (
            "a sublayer's output thrown away", "return x + self.drops[i](sublayer(normed))",
            "branch = self.drops[i](sublayer(normed))\n        return x + branch if i else x + 0 * branch",
            "each_branch_once",
        ),
        (
            "norms are not told what is real", "self.norms[i](x, info.valid, info.positions)", "self.norms[i](x)",
            "norm_arguments",
        ),
        (
            "the branch cut off from the gradient", "self.drops[i](sublayer(normed))",
            "self.drops[i](sublayer(normed.detach()))", "gradients",
        ),
        ("the mean over time added", "return x + ", "return x + x.mean(1, keepdim=True) * 0.1 + ", "causal"),
    ),
    *_of(
        "post",
        ("missing residual", "x + self.drops[i](sublayer(x))", "self.drops[i](sublayer(x))", "identity_path"),
        (
            "a final norm that it does not need", "class Twin(Placement):",
            "class Twin(Placement):\n    final_norm = True", "identity_path",
        ),
        ("one norm shared by all sublayers", "self.norms[i]", "self.norms[-1]", "own_norms"),
    ),
    *_of(
        "own_placement",
        ("norms in a plain list", "self.norms = nn.LayerList(norms)", "self.norms = norms", "registered"),
        ("dropout in evaluation", "if self.training:", "if self.rate:", "evaluation"),
        (
            "only the first sublayer", "for i, sublayer in enumerate(sublayers):",
            "for i, sublayer in enumerate(sublayers[:-1]):", "each_branch_once",
        ),
    ),
]  # fmt: skip

POSITION = [
    *_of(
        "sinusoidal",
        ("one position's vector for all", "positions.unsqueeze(-1)", "positions[:, :1].unsqueeze(-1)", "pure"),
        (
            "positions counted from the tensor's length", "positions.unsqueeze(-1)",
            "paddle.arange(x.shape[1]).unsqueeze([0, -1])", "pure",
        ),
        ("plus sqrt(d_model)", "return x + added", "return x + math.sqrt(self.d_model) * 2 + added", "magnitude"),
        ("returned without being added", "return x + added.astype(x.dtype)", "return x", "order_matters"),
        (
            "constant over positions", "angle = positions.unsqueeze(-1)",
            "angle = paddle.ones_like(positions).unsqueeze(-1)", "positions_differ",
        ),
        (
            "counts its calls", "angle = positions.unsqueeze(-1)",
            "self.calls = getattr(self, 'calls', 0) + 1\n        angle = (positions + self.calls).unsqueeze(-1)",
            "stateless",
        ),
    ),
    *_of(
        "learned",
        ("no end of the table", "positions.clip(0, last)", "positions", "beyond_length"),
        (
            "a table that is no parameter", "self.table = self.create_parameter([max_length, d_model])",
            "self.table = self.create_parameter([max_length, d_model]).detach().clone()", "saved",
        ),
        (
            "indexed from the end of the text", "positions.clip(0, last)",
            "(positions.max() - positions).clip(0, last)", "pure",
        ),
    ),
    *_of(
        "rotary",
        (
            "by the tensor's length", "angle = (positions.unsqueeze(-1)",
            "angle = (paddle.arange(x.shape[2]).unsqueeze([0, -1])", "pure",
        ),
        ("keys turned the other way", "return self.turn(k, positions)", "return self.turn(k, -positions)", "relative"),
        ("keys not turned", "return self.turn(k, positions)", "return k", "relative"),
        ("a reflection instead of a rotation", "a * sin + b * cos], -1)", "a * sin - b * cos], -1)", "relative"),
    ),
    *_of(
        "alibi",
        ("the slope's sign", "return -distance", "return distance", "nearness"),
        (
            "the same for all positions", "(q_positions.unsqueeze(2) - k_positions.unsqueeze(1))",
            "(q_positions.unsqueeze(2) - q_positions.unsqueeze(2)) + 0 * k_positions.unsqueeze(1)", "order_matters",
        ),
        (
            "distances counted from the last key", "(q_positions.unsqueeze(2) - k_positions.unsqueeze(1))",
            "(q_positions.unsqueeze(2) - k_positions.unsqueeze(1) + k_positions.max() * k_positions.unsqueeze(1))",
            "pure",
        ),
    ),
]  # fmt: skip

OTHERS = [
    *_of(
        "feed_forward",
        ("layers in a plain list", "self.layers = nn.LayerList(layers)", "self.layers = layers", "registered"),
        ("no activation", "F.relu(self.layers[0](x))", "self.layers[0](x)", "nonlinear"),
        (
            "a softmax over time", "F.relu(self.layers[0](x))",
            "F.relu(self.layers[0](x)) * F.softmax(self.layers[0](x), 1)", "position_wise",
        ),
        (
            "dropout in evaluation", "hidden = self.dropout(hidden)",
            "hidden = F.dropout(hidden, self.dropout.rate) if self.dropout.rate else hidden", "evaluation",
        ),
        (
            "the mean over the batch added", "return self.layers[1](hidden)",
            "return self.layers[1](hidden + hidden.mean(0, keepdim=True))", "neighbours",
        ),
        (
            "exp that overflows", "F.relu(self.layers[0](x))",
            "self.layers[0](x).exp() / (1.0 + self.layers[0](x).exp())", "extremes",
        ),
    ),
    *_of(
        "head",
        (
            "softmax over time", "paddle.logsumexp(logits, -1, keepdim=True)",
            "paddle.logsumexp(logits, 1, keepdim=True)", "sums_to_one",
        ),
        (
            "the loss of another distribution", "log_probs = self.log_probs(h, memory)",
            "log_probs = F.log_softmax(self.output(h) / 2.0, -1)", "loss_is_log_prob",
        ),
        (
            "probabilities for their logarithms", "return -(1.0 - smoothing) * picked",
            "return -(1.0 - smoothing) * picked.exp()", "loss_is_log_prob",
        ),
        (
            "divided by the padded length", "return -(1.0 - smoothing) * picked - smoothing * spread",
            "return (-(1.0 - smoothing) * picked - smoothing * spread) / target.shape[1]", "padding_in_training",
        ),
        (
            "padding in the loss", "return -(1.0 - smoothing) * picked - smoothing * spread",
            "losses = -(1.0 - smoothing) * picked - smoothing * spread\n"
                "        return losses * 0 + losses.mean(-1, keepdim=True)",
            "padding_in_training",
        ),
        ("smoothing over padding too", "words = 1.0 - F.one_hot", "words = 1.0 - 0.0 * F.one_hot", "smoothing"),
        (
            "exp without a shift", "paddle.logsumexp(logits, -1, keepdim=True)",
            "logits.exp().sum(-1, keepdim=True).log()", "extremes",
        ),
        (
            "minus infinity at padding", "return -(1.0 - smoothing) * picked - smoothing * spread",
            "return paddle.where(target == self.pad_id, picked * float('inf'), -(1.0 - smoothing) * picked - "
                "smoothing * spread)",
            "padded_targets",
        ),
    ),
    *_of(
        "initializer",
        (
            "U(-1, 1)", "return np.float32(rng.normal(size=shape) * scale)",
            "return np.float32(rng.uniform(-1, 1, size=shape))", "initial_loss",
        ),
        ("one value for all", "rng.normal(size=shape) * scale", "np.full(shape, scale)", "differing_values"),
        ("NumPy's own generator", "rng.normal(size=shape)", "np.random.normal(size=shape)", "repeatable"),
        (
            "one stream for every parameter", "return np.float32(rng.normal",
            "rng = np.random.default_rng(1)\n        return np.float32(rng.normal", "differing_values",
        ),
    ),
    *_of(
        "greedy",
        (
            "never stops", "if len(ids[sentence]) == decoding.max_lengths[sentence]:",
            "if len(ids[sentence]) == 10**9:", "stops",
        ),
        ("the begin token taken for the end", "if token == decoding.eos:", "if token == decoding.bos:", "stops"),
        (
            "the end is part of the output",
            "if token == decoding.eos:\n                    continue\n                ids[sentence].append(token)",
            "ids[sentence].append(token)\n                if token == decoding.eos:\n                    continue",
            "stops",
        ),
        (
            "the end is not scored", "scores[sentence] += float(found[row, token])",
            "scores[sentence] += float(found[row, token]) * (token != decoding.eos)", "scores",
        ),
        (
            "one choice for all rows", "best = np.argmax(found, axis=-1)",
            "best = np.full(len(found), np.argmax(found.sum(0)))", "independent",
        ),
        (
            "the second best", "best = np.argmax(found, axis=-1)", "best = np.argsort(found, axis=-1)[:, -2]", "greedy",
        ),
        ("two outputs", "[[Hypothesis(found, score)] for", "[[Hypothesis(found, score)] * 2 for", "counts"),
        (
            "finished rows leave, the others are mixed up", 'decoding.select(paddle.to_tensor(stay, dtype="int64"))',
            'decoding.select(paddle.to_tensor(stay[::-1], dtype="int64"))', "scores",
        ),
    ),
    *_of(
        "optimizer",
        (
            "a decay that knows no rate", "change = moment + self.decay * parameter * float(is_decayed(parameter))",
            "change = moment\n            parameter.set_value(parameter * (1.0 - self.decay))", "follows_the_rate",
        ),
        ("uphill", "parameter - self.get_lr() * change", "parameter + self.get_lr() * change", "lowers"),
        (
            "moments that are not saved", "return dict(self.moments)",
            "return {name: moment * 0 for name, moment in self.moments.items()}", "resumes",
        ),
        (
            "moves what has no gradient", "            if parameter.grad is None:\n                continue\n",
            "            if parameter.grad is None:\n                parameter.set_value(parameter * 0.99)\n"
                "                continue\n",
            "lowers",
        ),
    ),
    *_of(
        "schedule",
        (
            "counts its calls", "return 1e-3 * min(step / self.warmup",
            "self.count = step = self.count + 1\n        return 1e-3 * min(step / self.warmup", "step_alone",
        ),
        ("below zero", "(self.warmup / step) ** 0.5)", "1.0 - step / 900)", "rates"),
        ("nothing in the first step", "min(step / self.warmup", "min((step - 1) / self.warmup", "rates"),
        ("zero at the last step", "(self.warmup / step) ** 0.5)", "1.0 - step / 1000)", "rates"),
        ("a tensor of NumPy", "return 1e-3 * min(", "import numpy\n        return numpy.float32(1e-3) * min(", "rates"),
        ("two peaks that differ", "(self.warmup / step) ** 0.5)", "(self.warmup / step) ** 0.5 + (step > 500))",
         "continuous"),
        ("half of the peak is lost", "(self.warmup / step) ** 0.5)",
         "(self.warmup / step) ** 0.5 if step <= self.warmup else 0.5 * (self.warmup / step) ** 0.5)", "continuous"),
    ),
    *_of(
        "metric",
        ("the wrong direction", "higher_is_better = True", "higher_is_better = False", "prefers_the_reference"),
        (
            "the source taken for the reference", "p.hypothesis == p.reference", "p.hypothesis != p.source",
            "prefers_the_reference",
        ),
        (
            "depends on the order", "return np.array([[float(p.hypothesis == p.reference), 1.0] for p in predictions])",
            "return np.array([[float(p.hypothesis == p.reference) / (i + 1), 1.0] for i, p in enumerate(predictions)])",
            "order",
        ),
        (
            "recall alone: every word there is is right", "p.hypothesis == p.reference",
            "set(p.reference.split()) <= set(p.hypothesis.split())", "length_is_no_merit",
        ),
        (
            "the longer the better", "float(p.hypothesis == p.reference), 1.0]",
            "len(p.hypothesis.split()) * float(p.hypothesis[:5] == p.reference[:5]), 1.0]", "length_is_no_merit",
        ),
        (
            "a row that knows the others", "float(p.hypothesis == p.reference), 1.0]",
            "float(p.hypothesis == p.reference) / len(predictions), 1.0]", "sums",
        ),
        (
            "pieces, not asked for", "p.hypothesis == p.reference", "p.hypothesis_pieces == p.reference_pieces",
            "asks",
        ),
    ),
    *_of(
        "tokenizer",
        ("a space before the text", '.removeprefix(" ")', "", "round_trip"),
        ("the spaces are lost", '.replace("▁", " ")', '.replace("▁", "")', "round_trip"),
        ("what normalize loses is not said", 'self.normalize(text).split()', "self.normalize(text).lower().split()",
         "round_trip"),
        (
            "only ASCII is left", 'text.replace("▁", "_").split()', 'text.encode("ascii", "ignore").decode().split()',
            "keeps_text",
        ),
        ("a piece twice", "return list(self.words)", "return self.words + self.words[:1]", "vocabulary"),
        ("empty pieces", "self.words else word)]", 'self.words else ["", *word])]', "vocabulary"),
        (
            "it learns when it is asked", "self.words else word)]",
            "self.words else (self.words.append(word) or word))]", "same_pieces",
        ),
        (
            "learned from a random half", "for text in texts for", "for text in texts if __import__('random').random() < 0.04 for",
            "same_pieces",
        ),
        ("not all that was learned is saved", "json.dumps(self.words)", "json.dumps(self.words[:9])", "saved"),
        ("NumPy's own draws", "rng.random() < 0.5", "__import__('random').random() < 0.5", "sample"),
        ("a draw that loses a character", "rng.random() < 0.5 else word)", "rng.random() < 0.5 else word[:2])",
         "sample"),
        ("it does not say that it draws", "sampling = True", "sampling = False", "sample"),
    ),
    *_of(
        "task",
        ("one generator for all calls", 'rng, number = generator("twin", split), 0', "rng, number = self.rng, 0",
         "same_examples"),
        ("a split by Python's own hash", 'digest("twin", source)', "hash(source)", "same_examples"),
        ("random draws of the process", "rng.integers(100, size=rng.integers(1, 6))",
         "__import__('numpy').random.randint(100, size=rng.integers(1, 6))", "same_examples"),
        ("every source in every split", 'if split == {0: "test", 1: "valid"}.get(digest("twin", source) % 10, "train"):',
         "if True:", "splits_disjoint"),
        ("targets of no word", '" ".join(reversed(words))', '" ".join(reversed(words[1:]))', "examples"),
        ("sources of no word", "size=rng.integers(1, 6)", "size=rng.integers(0, 6)", "examples"),
        ("a pair that is no example", 'Example(source, " ".join(reversed(words)))', '(source, " ".join(words))',
         "examples"),
        ("nothing to validate", "while number < self.size:", 'while number < self.size * (split != "valid"):',
         "examples"),
    ),
    *_of(
        "dataset",
        ("an address that is a text", '(f"{cls.home}/{name}.tsv",)', 'f"{cls.home}/{name}.tsv"', "files_declared"),
        ("a hash that is cut", '"0" * 64', '"0" * 63', "files_declared"),
        ("one name for two files", 'RemoteFile(f"{name}.tsv"', 'RemoteFile("data.tsv"', "files_declared"),
        ("out of the folder", 'RemoteFile(f"{name}.tsv"', 'RemoteFile(f"../{name}.tsv"', "files_declared"),
        ("a file of its own", "self.catalogue() if self.remote else []",
         'self.catalogue() if self.remote else [RemoteFile("more.tsv", ())]', "files_in_catalogue"),
        ("no licence", '"CC0-1.0"', '""', "described"),
        ("the folder of another", '"twin", "https', '"multi30k", "https', "described"),
        ("targets of no word", "str(2 * number)", '""', "reads"),
        ("other examples at each call", "range(first, 2 * first)",
         "range(first, 2 * first + __import__('random').randint(1, 99))", "reads"),
    ),
]  # fmt: skip

WHOLE = _of(
    "transformer",
    (
        "no causal mask", "paddle.tril(paddle.ones([tgt.shape[1], tgt.shape[1]]))",
        "paddle.ones([tgt.shape[1], tgt.shape[1]])", "causal",
    ),
    (
        "causal mask off by one", "paddle.tril(paddle.ones([tgt.shape[1], tgt.shape[1]]))",
        "paddle.tril(paddle.ones([tgt.shape[1], tgt.shape[1]]), 1)", "causal",
    ),
    ("the causal mask turned around", "paddle.tril(", "paddle.triu(", "causal"),
    ("padding seen by the encoder", "x = layer(x, real)", "x = layer(x, paddle.ones_like(real))", "padding"),
    ("padding seen across", "y = layer(y, past, x, real)", "y = layer(y, past, x, paddle.ones_like(real))", "padding"),
    ("inverted mask", "real = (src != self.pad_idx)", "real = (src == self.pad_idx)", "padding"),
    ("plus sqrt(d_model)", "table(ids) * math.sqrt(self.d_model)", "table(ids) + math.sqrt(self.d_model)", "magnitude"),
    (
        "one position's vector for all", "return x + self.positions(ids.shape[1])",
        "return x + self.positions(ids.shape[1])[-1]", "order_matters",
    ),
    ("no positions", "return x + self.positions(ids.shape[1])", "return x", "order_matters"),
    (
        "missing residual", "norm(x + F.dropout(branch, self.rate, training=self.training))",
        "norm(F.dropout(branch, self.rate, training=self.training))", "residual",
    ),
    (
        "missing residual in the encoder", "norm(x + F.dropout", "norm(x * float(self.across is not None) + F.dropout",
        "residual",
    ),
    (
        "missing residual in the decoder", "norm(x + F.dropout", "norm(x * float(self.across is None) + F.dropout",
        "residual",
    ),
    (
        "one norm shared by three sublayers", "[nn.LayerNorm(d_model) for _ in range(3 if decoder else 2)]",
        "[nn.LayerNorm(d_model)] * 3", "own_norms",
    ),
    (
        "BatchNorm in the decoder", "nn.LayerNorm(d_model) for _",
        "(nn.BatchNorm1D(d_model, data_format='NLC') if decoder else nn.LayerNorm(d_model)) for _",
        "causal_in_training",
    ),
    (
        "BatchNorm that counts padding", "nn.LayerNorm(d_model) for _",
        "nn.BatchNorm1D(d_model, data_format='NLC') for _", "padding_in_training",
    ),
    (
        "cross-attention looks at the target", "self.across(x, memory, memory_mask)", "self.across(x, x, mask)",
        "attends",
    ),
    (
        "the encoder in a plain list", "self.encoder, self.decoder = nn.LayerList(encoder), nn.LayerList(decoder)",
        "self.encoder, self.decoder = encoder, nn.LayerList(decoder)", "registered",
    ),
    ("one layer again and again", "y = layer(y, past, x, real)", "y = self.decoder[0](y, past, x, real)", "trains"),
    ("a softmax before the loss", "return self.output(y)", "return F.softmax(self.output(y), -1)", "shapes"),
    ("dropout in evaluation", "self.rate, training=self.training)", "self.rate)", "evaluation"),
    (
        "U(-1, 1)", "normal = nn.initializer.Normal(0.0, d_model**-0.5)", "normal = nn.initializer.Uniform(-1.0, 1.0)",
        "initial_loss",
    ),
    (
        "time taken for the batch", "x = self.embed(src, self.source)",
        "x = self.embed(src, self.source)\n        x = x + x.mean(0, keepdim=True)", "neighbours",
    ),
    ("minus infinity", "paddle.full_like(scores, -1e9)", "paddle.full_like(scores, float('-inf'))", "masked_rows"),
    ("the output cut off from the gradient", "return self.output(y)", "return self.output(y.detach())", "trains"),
    (
        "statistics of the batch instead of the token",
        "return norm(x + F.dropout(branch, self.rate, training=self.training))",
        "y = x + F.dropout(branch, self.rate, training=self.training)\n"
            "        return norm(y) + y.mean(0, keepdim=True)",
        "neighbours",
    ),
)  # fmt: skip

ZOO = [Mutant(*broken) for broken in OF_THE_ZOO]
PLACED = [Mutant(*broken) for broken in [*PLACES, *ESCAPED, *HALF_PRECISION, *RANGES, *SEVERAL, *CLASSES]]
MUTANTS = [*ATTENTION, *ORDINARY, *NORM, *PLACEMENT, *POSITION, *OTHERS, *WHOLE, *ZOO, *PLACED]


@dataclass(frozen=True)
class Variant:
    """The twin with `changes` is another right component: no check may fail."""

    twin: str
    name: str
    changes: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.twin}: {self.name}"

    def source(self) -> str:
        """Raises ValueError if the twin does not have what is changed, once."""
        text = source(self.twin)
        for was, becomes in self.changes:
            if text.count(was) != 1:
                raise ValueError(f"{self}: the twin has {was!r} {text.count(was)} times")
            text = text.replace(was, becomes)
        return text


RIGHT = [Variant(*variant) for variant in [*VARIANTS, *RIGHT_VARIANTS, *RARE_STEPS, *RIGHT_CLASSES]]
OF_A_FILE = [Mutant(*broken) for broken in ORDERS]
IDLE = {Mutant(*edit, "options"): option for *edit, option in IDLE_OPTIONS}  # → the option that it does not read
