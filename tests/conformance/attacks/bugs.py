"""Bugs of the kinds that readers of papers write, each an edit of a right variant of this folder, with the check that
must fail."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edits import edited

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Bug:
    """`was` in the file becomes `becomes`, which breaks the class `cls`; the check `caught_by` must fail. "": no
    invariant is broken, only a reference can tell (a constant, an exponent, an order that is as good as another)."""

    file: str
    cls: str
    name: str
    was: str
    becomes: str
    caught_by: str

    def __str__(self) -> str:
        return f"{self.cls}: {self.name}"

    def source(self) -> str:
        """The file with the bug."""
        text = (HERE / f"right_{self.file}.py").read_text(encoding="utf-8")
        return edited(text, self.was, self.becomes, self)


def _of(file: str, *bugs: tuple[str, str, str, str, str]) -> list[Bug]:
    return [Bug(file, *bug) for bug in bugs]


ATTENTION = _of(
    "attention",
    (
        "DroppedValues",
        "a dropout of its own without its factor",
        "return self.drop_output(super().forward(x, kv, info, mask, tap))",
        "out = super().forward(x, kv, info, mask, tap)\n        return out * (self.drop_output(paddle.ones(out.shape)) > 0).astype(out.dtype)",
        "dropout",
    ),
    (
        "Textbook",
        "weights are multiplied with the wrong axis of the values' heads",
        'paddle.einsum("bhqk,bhkd->bhqd", weights, kv.value)',
        'paddle.einsum("bhqk,bhkd->bhqd", weights, kv.value[:, :1])',
        "trains",
    ),
    (
        "Textbook",
        "mask is multiplied after the scale and loses the padding of short texts",
        "weights = F.softmax(scores + mask.dense(scores.dtype), -1)",
        "weights = F.softmax(scores + mask.dense(scores.dtype)[:1], -1)",
        "padding",
    ),
    (
        "Textbook",
        "divided by sqrt(d_model) in place of sqrt(d_head)",
        '"bhqd,bhkd->bhqk", q, kv.key) / math.sqrt(q.shape[-1])',
        '"bhqd,bhkd->bhqk", q, kv.key) / math.sqrt(x.shape[-1])',
        "",
    ),
    (
        "Textbook",
        "dropout is stored and never used",
        "weights = self.drop(weights)\n",
        "weights = weights * 1.0\n",
        "dropout",
    ),
    (
        "Textbook",
        "dropout is applied in evaluation too",
        "weights = self.drop(weights)\n",
        "weights = F.dropout(weights, 0.3)\n",
        "causal",
    ),
    (
        "Textbook",
        "keys are rotated after the cache, by the queries' positions",
        "k = info.encoding.key(heads(self.k(source), self.num_heads), info.positions)\n        return KeyValue(k, heads(self.v(source), self.num_heads))\n\n    def forward(self, x, kv, info, mask, tap):\n        q = info.encoding.query(heads(self.q(x), self.num_heads), info.positions)\n        scores = paddle.einsum(",
        "k = heads(self.k(source), self.num_heads)\n        return KeyValue(k, heads(self.v(source), self.num_heads))\n\n    def forward(self, x, kv, info, mask, tap):\n        q = info.encoding.query(heads(self.q(x), self.num_heads), info.positions)\n        kv = KeyValue(info.encoding.key(kv.key, paddle.arange(kv.key.shape[2]).unsqueeze(0)), kv.value) if x.shape[1] > 1 else kv\n        scores = paddle.einsum(",
        "cached",
    ),
    (
        "Textbook",
        "one projection object serves queries, keys, values and output",
        "self.q, self.k, self.v, self.o = (Linear(d_model, d_model) for _ in range(4))",
        "self.q = Linear(d_model, d_model)\n        self.k = self.v = self.o = self.q",
        "registered",
    ),
    (
        "Textbook",
        "the output projection is made anew at each call",
        'return self.o(together(paddle.einsum("bhqk',
        'return Linear(x.shape[-1], x.shape[-1])(together(paddle.einsum("bhqk',
        "shapes",
    ),
    (
        "Textbook",
        "the input is changed in place",
        'scores = paddle.einsum("bhqd,bhkd->bhqk", q, kv.key) / math.sqrt(q.shape[-1])',
        'scores = paddle.einsum("bhqd,bhkd->bhqk", q, kv.key) / math.sqrt(q.shape[-1])\n        with paddle.no_grad():\n            x.scale_(0.5)',
        "runs",
    ),
    (
        "OneKeyHead",
        "the shared head of keys is taken from the first token only",
        "return KeyValue(k, v)",
        "return KeyValue(k[:, :, :1].expand(k.shape), v)",
        "cached",
    ),
    (
        "OneKeyHead",
        "values are scaled by the number of keys, which grows in decoding",
        "kv.value)))\n\n\nclass NormedQueriesAndKeys",
        "kv.value / x.shape[1])))\n\n\nclass NormedQueriesAndKeys",
        "padding",
    ),
    (
        "NormedQueriesAndKeys",
        "norm over the tokens in place of the channels",
        "(x * x).mean(-1, keepdim=True)",
        "(x * x).mean(2, keepdim=True)",
        "causal",
    ),
    (
        "NormedQueriesAndKeys",
        "the gain of the keys is never used",
        "self.num_heads), self.k_gain)",
        "self.num_heads), self.q_gain.detach())",
        "trains",
    ),
    (
        "NormedQueriesAndKeys",
        "the gains are tensors, not parameters",
        "self.k_gain = self.create_parameter([d_model // num_heads], default_initializer=ones)",
        "self.k_gain = paddle.to_tensor([1.0] * (d_model // num_heads), stop_gradient=False)",
        "registered",
    ),
    (
        "Sinks",
        "the sink's column stands first, and the last key is thrown away",
        "paddle.concat([scores, sink], -1), -1)[..., :-1]",
        "paddle.concat([sink, scores], -1), -1)[..., :-1]",
        "causal",
    ),
    (
        "Sinks",
        "the sink is a fixed number of zero",
        "sink = self.sink.reshape([1, -1, 1, 1])",
        "sink = (self.sink * 0.0).reshape([1, -1, 1, 1])",
        "trains",
    ),
    (
        "Capped",
        "the mask is added before the cap, so that what is hidden has weight",
        "capped_scores = mask.add_to(50.0 * paddle.tanh(capped_scores / 50.0))",
        "capped_scores = 50.0 * paddle.tanh(mask.add_to(capped_scores) / 50.0)",
        "",
    ),
    (
        "Capped",
        "a cap of 5 in place of 50",
        "mask.add_to(50.0 * paddle.tanh(capped_scores / 50.0))",
        "mask.add_to(5.0 * paddle.tanh(capped_scores / 5.0))",
        "",
    ),
    (
        "OwnTemperature",
        "the temperature divides by the largest score of the batch",
        "logits = paddle.matmul(q, kv.key, transpose_y=True) / math.sqrt(q.shape[-1])",
        "logits = paddle.matmul(q, kv.key, transpose_y=True)\n        logits = logits / logits.abs().max()",
        "causal",
    ),
    (
        "OwnTemperature",
        "the temperature is exp of a number without gradient",
        "* paddle.exp(self.t)",
        "* paddle.exp(self.t.detach())",
        "trains",
    ),
    (
        "NarrowWindow",
        "the window counts columns, not positions",
        'mask = mask.restricted(("near", 2), lambda q, k: (q - k).abs() <= 2)',
        'mask = mask.restricted(("near", 2), lambda q, k: (paddle.arange(q.shape[1]).reshape([1, -1, 1]) - paddle.arange(k.shape[2]).reshape([1, 1, -1])).abs() <= 2)',
        "cached",
    ),
    (
        "NarrowWindow",
        "a window of three in place of two",
        "(q - k).abs() <= 2",
        "(q - k).abs() <= 3",
        "",
    ),
    (
        "Dilated",
        "in the causal stack even and odd are taken from the place in the cache",
        "lambda q, k: (q - k) % 2 == 0",
        "lambda q, k: (paddle.arange(q.shape[1]).reshape([1, -1, 1]) - k) % 2 == 0",
        "cached",
    ),
    (
        "GatedOutput",
        "the gate is the mean over all tokens",
        "F.sigmoid(self.gate(x)))\n",
        "F.sigmoid(self.gate(x).mean(1, keepdim=True)))\n",
        "causal",
    ),
    (
        "GatedOutput",
        "heads are merged without the transpose",
        "context = together(paddle.matmul(self.drop(gated), kv.value))",
        "context = paddle.matmul(self.drop(gated), kv.value).reshape(x.shape)",
        "causal",
    ),
    (
        "DroppedValues",
        "the dropout is not a layer: it drops in evaluation",
        "self.drop_output(super().forward(x, kv, info, mask, tap))",
        "F.dropout(super().forward(x, kv, info, mask, tap), 0.2)",
        "causal",
    ),
    (
        "Latent",
        "keys and values are not separated",
        "k, v = paddle.split(self.up(kv.key.squeeze(1)), 2, -1)",
        "k, v = paddle.split(self.up(kv.key.squeeze(1)), 2, -1)\n        v = k",
        "trains",
    ),
    (
        "Latent",
        "the latent holds the mean of all tokens so far",
        "latent = self.down(source).unsqueeze(1)",
        "latent = self.down(source)\n        latent = (latent.cumsum(1) / paddle.arange(1, latent.shape[1] + 1).reshape([1, -1, 1]).astype(latent.dtype)).unsqueeze(1)",
        "cached",
    ),
    (
        "Forgetting",
        "the cache forgets to add up the gates of what came before",
        "[self.total, self.total[:, :, -1:] + new.total]",
        "[self.total, new.total]",
        "cached",
    ),
    (
        "Forgetting",
        "a beam's gates are not reordered",
        "_Forgotten(both.key, both.value, self.total.index_select(rows, 0))",
        "_Forgotten(both.key, both.value, self.total)",
        "beams",
    ),
    (
        "Forgetting",
        "the decay has the wrong sign: old tokens weigh more",
        "decay = now - kv.total.transpose([0, 1, 3, 2])",
        "decay = kv.total.transpose([0, 1, 3, 2]) - now",
        "",
    ),
)

NORM = _of(
    "norm",
    (
        "PlainLayerNorm",
        "statistics over tokens and channels",
        "centred = x - x.mean(-1, keepdim=True)",
        "centred = x - x.mean([1, 2], keepdim=True)",
        "causal",
    ),
    (
        "PlainLayerNorm",
        "no square root",
        "centred / paddle.sqrt(variance + 1e-5)",
        "centred / (variance + 1e-5)",
        "invariances",
    ),
    (
        "PlainLayerNorm",
        "eps of 1e-1",
        "paddle.sqrt(variance + 1e-5)",
        "paddle.sqrt(variance + 1e-1)",
        "invariances",
    ),
    (
        "PlainLayerNorm",
        "gain and shift exchanged",
        "* self.gain + self.shift\n\n\nclass UnitLength",
        "* self.shift + self.gain\n\n\nclass UnitLength",
        "both_signs",
    ),
    (
        "UnitLength",
        "the length over the batch",
        "x.norm(axis=-1, keepdim=True)",
        "x.norm()",
        "causal",
    ),
    (
        "UnitLength",
        "the gain is a Python number",
        "self.g = self.create_parameter([1], default_initializer=nn.initializer.Constant(d_model**0.5))",
        "self.g = d_model**0.5",
        "",
    ),
    (
        "PartialRMS",
        "the root mean square of the last token's channels",
        "(x[..., : self.part] ** 2).mean(-1, keepdim=True)",
        "(x[:, -1:, : self.part] ** 2).mean(-1, keepdim=True)",
        "causal",
    ),
    (
        "PartialRMS",
        "a quarter of the channels in place of an eighth",
        "d_model // 8",
        "d_model // 4",
        "",
    ),
    (
        "OnePlusGain",
        "eps is forgotten",
        "paddle.rsqrt((x**2).mean(-1, keepdim=True) + 1e-6) * (1.0 + self.w)",
        "paddle.rsqrt((x**2).mean(-1, keepdim=True)) * (1.0 + self.w)",
        "extremes",
    ),
    (
        "OnePlusGain",
        "the gain is w alone, from zero",
        "(1.0 + self.w)",
        "self.w",
        "both_signs",
    ),
    (
        "MeanOnly",
        "the mean of real tokens of the sentence, not of the channels",
        "(x - x.mean(-1, keepdim=True)) * self.gain",
        "(x - x.mean(1, keepdim=True)) * self.gain",
        "causal",
    ),
    (
        "Arctangent",
        "alpha is a plain tensor that Paddle files as a buffer",
        "self.alpha = self.create_parameter([1], default_initializer=nn.initializer.Constant(0.5))",
        "self.alpha = paddle.to_tensor([0.5], stop_gradient=False)",
        "registered",
    ),
    (
        "MaskedBatchNorm",
        "padding counts in the statistics",
        'if valid is None else valid.astype("float32")',
        "if True else valid",
        "padding_in_training",
    ),
    (
        "MaskedBatchNorm",
        "running statistics are plain attributes and not saved",
        'self.register_buffer("variance", paddle.ones([d_model]))',
        'self.register_buffer("variance", paddle.ones([d_model]), persistable=False)',
        "saved",
    ),
    (
        "MaskedBatchNorm",
        "running statistics move in evaluation too",
        "mean, variance = self.mean, self.variance\n        if self.training:",
        "mean, variance = self.mean, self.variance\n        if True:",
        "causal",
    ),
    (
        "MaskedBatchNorm",
        "momentum is the weight of the old statistics",
        "self.mean * (1 - self.momentum) + mean * self.momentum",
        "self.mean * self.momentum + mean * (1 - self.momentum)",
        "momentum",
    ),
)

PLACEMENT = _of(
    "placement",
    (
        "BothEnds",
        "one norm object for all sublayers",
        "nn.LayerList([norm(site, d_model) for site in sites])",
        "nn.LayerList([norm(sites[0], d_model)] * len(sites))",
        "registered",
    ),
    (
        "BothEnds",
        "the residual comes from the normed input",
        "return x + self.drops[i](branch)\n\n\nclass GatedBranches",
        "x = self.norms[i](x, info.valid, info.positions)\n        return x + self.drops[i](branch)\n\n\nclass GatedBranches",
        "own_norms",
    ),
    (
        "GatedBranches",
        "the gates are in a plain list",
        "self.gates = nn.ParameterList(\n            [keep_initial(self.create_parameter([1], default_initializer=zero)) for _ in sites]\n        )",
        "self.gates = [keep_initial(self.create_parameter([1], default_initializer=zero)) for _ in sites]",
        "registered",
    ),
    (
        "GatedBranches",
        "the residual is forgotten",
        "return x + self.gates[i] *",
        "return self.gates[i] *",
        "each_branch_once",
    ),
    (
        "StrongResidual",
        "the sublayer runs twice in training",
        "strong = 2.0 * x + self.drops[i](sublayer(x))",
        "strong = 2.0 * x + self.drops[i](sublayer(sublayer(x) if self.training else x))",
        "modes",
    ),
    (
        "StrongResidual",
        "the branch is not dropped",
        "strong = 2.0 * x + self.drops[i](sublayer(x))",
        "strong = 2.0 * x + sublayer(x)",
        "dropout",
    ),
    (
        "PreThenPost",
        "cross-attention is skipped in training",
        "if i < len(self.norms) - 1:\n",
        "if self.training and i == 1 and len(self.norms) == 3:\n            return x\n        if i < len(self.norms) - 1:\n",
        "trains",
    ),
    (
        "PreThenPost",
        "dropout on the residual in place of the branch",
        "last = x + self.drops[i](sublayer(x))",
        "last = self.drops[i](x) + sublayer(x)",
        "identity_path",
    ),
    (
        "SqrtHalf",
        "a mean in the place of a sum",
        "info.positions)))) * 0.5**0.5",
        "info.positions)))) * 0.5",
        "identity_path",
    ),
    (
        "SqrtHalf",
        "branches alone keep their variance, and the residual is of the norm",
        "return (x + self.drops",
        "return (self.norms[i](x, info.valid, info.positions) + self.drops",
        "identity_path",
    ),
    (
        "Halves",
        "the gate's gradient is cut off",
        "sigmoid(self.w[i])",
        "sigmoid(self.w[i].detach())",
        "trains",
    ),
    (
        "MoreDropout",
        "the same norm for each sublayer",
        "branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n        return x + self.more[i](branch)",
        "branch = self.drops[i](sublayer(self.norms[0](x, info.valid, info.positions)))\n        return x + self.more[i](branch)",
        "trains",
    ),
    (
        "StochasticDepth",
        "branches of a tenth of the sentences are left out, and never made up for",
        "self.paths = nn.LayerList([Dropout(0.5) for _ in sites])\n\n    def wrap(self, i, x, sublayer, info):\n        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n        return x + branch * self.paths[i](paddle.ones([x.shape[0], 1, 1], x.dtype))",
        "self.paths = nn.LayerList([Dropout(0.1) for _ in sites])\n\n    def wrap(self, i, x, sublayer, info):\n        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n        return x + branch * (self.paths[i](paddle.ones([x.shape[0], 1, 1])) > 0).astype(x.dtype)",
        "left_out",
    ),
    (
        "StochasticDepth",
        "branches of half of the sentences are left out, and never made up for",
        "self.paths = nn.LayerList([Dropout(0.5) for _ in sites])\n\n    def wrap(self, i, x, sublayer, info):\n        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n        return x + branch * self.paths[i](paddle.ones([x.shape[0], 1, 1], x.dtype))",
        "self.paths = nn.LayerList([Dropout(0.5) for _ in sites])\n\n    def wrap(self, i, x, sublayer, info):\n        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n        return x + branch * (self.paths[i](paddle.ones([x.shape[0], 1, 1])) > 0).astype(x.dtype)",
        "left_out",
    ),
    (
        "StochasticDepth",
        "a branch is left out for the whole batch, and never made up for",
        "self.paths = nn.LayerList([Dropout(0.5) for _ in sites])\n\n    def wrap(self, i, x, sublayer, info):\n        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n        return x + branch * self.paths[i](paddle.ones([x.shape[0], 1, 1], x.dtype))",
        "self.paths = nn.LayerList([Dropout(0.1) for _ in sites])\n\n    def wrap(self, i, x, sublayer, info):\n        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n        return x + branch * (self.paths[i](paddle.ones([1, 1, 1])) > 0).astype(x.dtype)",
        "left_out",
    ),
    (
        "StochasticDepth",
        "channels are left out, and never made up for",
        "self.paths = nn.LayerList([Dropout(0.5) for _ in sites])\n\n    def wrap(self, i, x, sublayer, info):\n        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n        return x + branch * self.paths[i](paddle.ones([x.shape[0], 1, 1], x.dtype))",
        "self.paths = nn.LayerList([Dropout(0.2) for _ in sites])\n\n    def wrap(self, i, x, sublayer, info):\n        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n        return x + branch * (self.paths[i](paddle.ones(x.shape)) > 0).astype(x.dtype)",
        "left_out",
    ),
    (
        "StochasticDepth",
        "made up for twice",
        "self.paths = nn.LayerList([Dropout(0.5) for _ in sites])\n\n    def wrap(self, i, x, sublayer, info):\n        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n        return x + branch * self.paths[i](paddle.ones([x.shape[0], 1, 1], x.dtype))",
        "self.paths = nn.LayerList([Dropout(0.2) for _ in sites])\n\n    def wrap(self, i, x, sublayer, info):\n        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n        return x + branch * self.paths[i](paddle.ones([x.shape[0], 1, 1], x.dtype)) / (1.0 - self.paths[i].rate if self.training else 1.0)",
        "left_out",
    ),
    (
        "StochasticDepth",
        "made up for in training and in evaluation",
        "self.paths = nn.LayerList([Dropout(0.5) for _ in sites])\n\n    def wrap(self, i, x, sublayer, info):\n        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n        return x + branch * self.paths[i](paddle.ones([x.shape[0], 1, 1], x.dtype))",
        "self.paths = nn.LayerList([Dropout(0.2) for _ in sites])\n\n    def wrap(self, i, x, sublayer, info):\n        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n        return x + branch * self.paths[i](paddle.ones([x.shape[0], 1, 1], x.dtype)) * (1.0 if self.training else 1.0 - self.paths[i].rate)",
        "left_out",
    ),
    (
        "StochasticDepth",
        "the rate taken for the share that stays",
        "self.paths = nn.LayerList([Dropout(0.5) for _ in sites])\n\n    def wrap(self, i, x, sublayer, info):\n        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n        return x + branch * self.paths[i](paddle.ones([x.shape[0], 1, 1], x.dtype))",
        "self.paths = nn.LayerList([Dropout(0.1) for _ in sites])\n\n    def wrap(self, i, x, sublayer, info):\n        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n        return x + branch * (self.paths[i](paddle.ones([x.shape[0], 1, 1])) > 0).astype(x.dtype) / (self.paths[i].rate if self.training and self.paths[i].rate else 1.0)",
        "left_out",
    ),
)

POSITION = _of(
    "position",
    (
        "SinesThenCosines",
        "positions of the whole batch are those of the first sentence and the newest row",
        'angle = positions.unsqueeze(-1).astype("float32") * self.rates\n        return x +',
        'positions = paddle.arange(x.shape[1]).unsqueeze(0)\n        angle = positions.unsqueeze(-1).astype("float32") * self.rates\n        return x +',
        "cached",
    ),
    (
        "SinesThenCosines",
        "rates of 10000^(+i)",
        "10000.0 ** (-np.arange(d_model // 2)",
        "10000.0 ** (np.arange(d_model // 2)",
        "",
    ),
    (
        "SinesThenCosines",
        "the table wraps after 32 positions",
        'positions.unsqueeze(-1).astype("float32") * self.rates',
        '(positions % 32).unsqueeze(-1).astype("float32") * self.rates',
        "positions_differ",
    ),
    (
        "HalfSplitRotary",
        "keys turn the other way",
        "return self.turn(k, positions)",
        "return self.turn(k, -positions)",
        "relative",
    ),
    (
        "HalfSplitRotary",
        "sign of the rotation's second half",
        "right * cos + left * sin",
        "right * cos - left * sin",
        "relative",
    ),
    (
        "HalfSplitRotary",
        "values of the queries are not turned",
        "return self.turn(q, positions)",
        "return q",
        "relative",
    ),
    (
        "HalfSplitRotary",
        "base 1000",
        "10000.0 ** (-np.arange(0, head_dim, 2) / head_dim)",
        "1000.0 ** (-np.arange(0, head_dim, 2) / head_dim)",
        "",
    ),
    (
        "LogDistance",
        "the distance is not absolute: the logarithm of negative numbers",
        'k_positions).abs().astype("float32").unsqueeze(1)\n        return -F.softplus',
        'k_positions).astype("float32").unsqueeze(1)\n        return -F.softplus',
        "learns",
    ),
    (
        "LogDistance",
        "all heads share the first head's rate",
        "return -F.softplus(self.r1) *",
        "return -F.softplus(self.r1[:1]) *",
        "trains",
    ),
    (
        "NearOnly",
        "the index runs out of the table on one side: clipped at 0 … 8 without the offset",
        ".clip(-4, 4) + 4",
        ".clip(0, 8)",
        "order_matters",
    ),
    (
        "NearOnly",
        "rows of the table that no distance reaches",
        "create_parameter([9, num_heads]",
        "create_parameter([64, num_heads]",
        "rows_reached",
    ),
    (
        "KeyedByDistance",
        "the table is indexed by the key's place",
        "index = (distance(q_positions, k_positions).clip(-8, 8) + 8).unsqueeze(1)",
        "index = (k_positions.unsqueeze(1) + q_positions.unsqueeze(2) * 0).clip(0, 16).unsqueeze(1)",
        "positions_differ",
    ),
    (
        "KeyedByDistance",
        "clipped at 4 in place of 8",
        ".clip(-8, 8) + 8",
        ".clip(-4, 4) + 8",
        "rows_reached",
    ),
    (
        "Interpolated",
        "the outer layer in a tuple",
        "self.inner, self.outer = Linear(1, 16), Linear(16, num_heads)",
        "self.parts = (Linear(1, 16), Linear(16, num_heads))\n        object.__setattr__(self, 'inner', self.parts[0])\n        object.__setattr__(self, 'outer', self.parts[1])",
        "registered",
    ),
    (
        "Ramp",
        "log(p) is minus infinity at the first position",
        'paddle.log1p(positions.astype("float32"))',
        'paddle.log(positions.astype("float32"))',
        "learns",
    ),
)

OTHERS = _of(
    "others",
    (
        "Bottleneck",
        "a dropout of its own whose factor is taken back",
        "self.own_drop(F.relu(self.wide(x)))",
        "self.own_drop(F.relu(self.wide(x))) * (1.0 - self.own_drop.rate if self.training else 1.0)",
        "dropout",
    ),
    (
        "Bottleneck",
        "units that are left out and never made up for",
        "self.own_drop(F.relu(self.wide(x)))",
        "F.relu(self.wide(x)) * (self.own_drop(paddle.ones([*x.shape[:2], self.wide.weight.shape[1]])) > 0).astype(x.dtype)",
        "dropout",
    ),
    (
        "Mish",
        "the hidden layer is normalized over tokens",
        "u = self.inner(x)\n",
        "u = self.inner(x)\n        u = u - u.mean(1, keepdim=True)\n",
        "causal",
    ),
    (
        "Mish",
        "the output layer is created outside the class's parameters",
        "self.inner, self.outer, self.drop = Linear(d_model, d_ff), Linear(d_ff, d_model), Dropout(dropout)",
        "self.inner, self.drop = Linear(d_model, d_ff), Dropout(dropout)\n        self.__dict__['outer'] = Linear(d_ff, d_model)",
        "registered",
    ),
    (
        "Bottleneck",
        "a ReLU after the last layer: outputs of one sign",
        "return self.back(self.narrow(self.own_drop(F.relu(self.wide(x)))))",
        "return F.relu(self.back(self.narrow(self.own_drop(F.relu(self.wide(x))))))",
        "both_signs",
    ),
    (
        "Maxout",
        "half of it is dead: maximum with itself",
        "paddle.maximum(self.a(x), self.b(x))",
        "paddle.maximum(self.a(x), self.a(x))",
        "trains",
    ),
    (
        "SoftExperts",
        "the router's softmax runs over tokens",
        "share = F.softmax(self.router(x), -1)",
        "share = F.softmax(self.router(x), 1)",
        "causal",
    ),
    (
        "SoftExperts",
        "the router gets no gradient",
        "F.softmax(self.router(x), -1)",
        "F.softmax(self.router(x), -1).detach()",
        "trains",
    ),
    (
        "LowRankHead",
        "log-probabilities over the tokens of the sentence",
        "return F.log_softmax(self.up(paddle.tanh(self.down(h))), -1)\n",
        "return F.log_softmax(self.up(paddle.tanh(self.down(h))), 1)\n",
        "padding",
    ),
    (
        "LowRankHead",
        "adds the state of the token before",
        "return F.log_softmax(self.up(paddle.tanh(self.down(h))), -1)\n",
        "h = h + F.pad(h, [1, 0], data_format='NLC')[:, :-1]\n        return F.log_softmax(self.up(paddle.tanh(self.down(h))), -1)\n",
        "cached",
    ),
    (
        "LowRankHead",
        "smoothing counts padding",
        "others = (log_probs.sum(-1) - log_probs[..., self.pad_id]) / (self.words - 1)",
        "others = log_probs.mean(-1)",
        "smoothing",
    ),
    (
        "LowRankHead",
        "smoothing counted with the wrong sign",
        "- smoothing * others\n",
        "+ smoothing * others\n",
        "smoothing",
    ),
    (
        "TwoSoftmaxes",
        "shares are 1 and 1: probabilities sum to more than one",
        "F.log_sigmoid(-weight) + right",
        "F.log_sigmoid(weight) + right",
        "sums_to_one",
    ),
    (
        "TwoSoftmaxes",
        "averages log-probabilities",
        "return paddle.logsumexp(both, -1)",
        "return both.mean(-1)",
        "sums_to_one",
    ),
    (
        "CappedHead",
        "a cap of 3 in place of 30",
        "30.0 * paddle.tanh(self.up(self.down(h)) / 30.0)",
        "3.0 * paddle.tanh(self.up(self.down(h)) / 3.0)",
        "",
    ),
    (
        "Truncated",
        "all matrices get the same scale",
        'deviation = shape[-1 if role == "embedding" else -2] ** -0.5',
        "deviation = 0.7",
        "initial_loss",
    ),
    (
        "Orthogonal",
        "draws from NumPy's own generator",
        "np.linalg.qr(rng.standard_normal([",
        "np.linalg.qr(np.random.standard_normal([",
        "repeatable",
    ),
    (
        "HeavyBall",
        "only the first parameter is handed to the rule",
        "paddle.optimizer.Momentum(0.0, self.momentum, parameters=list(parameters))",
        "paddle.optimizer.Momentum(0.0, self.momentum, parameters=list(parameters)[:1])",
        "lowers",
    ),
    (
        "HeavyBall",
        "a learning rate of its own",
        "paddle.optimizer.Momentum(0.0, self.momentum, parameters=list(parameters))",
        "paddle.optimizer.Momentum(paddle.optimizer.lr.NoamDecay(64, 100), self.momentum, parameters=list(parameters))",
        "lowers",
    ),
    (
        "Warm",
        "integer division: zero until the end of the warm-up",
        "min(step / self.warmup,",
        "min(step // self.warmup,",
        "rates",
    ),
    (
        "Warm",
        "counts its calls",
        "return self.peak * min(step / self.warmup,",
        "self.calls = getattr(self, 'calls', 0) + 1\n        step = self.calls\n        return self.peak * min(step / self.warmup,",
        "step_alone",
    ),
    (
        "Trapezoid",
        "jumps to the peak at the end",
        "return self.peak * min(1.0, up, down)",
        "return self.peak * (min(1.0, up, down) if step < 0.9 * self.steps else 1.0)",
        "continuous",
    ),
    (
        "WordF1",
        "repeated words count each time",
        "both = sum(min(ours.count(word), theirs.count(word)) for word in set(ours))",
        "both = sum(word in theirs for word in ours)",
        "length_is_no_merit",
    ),
    (
        "PrefixRate",
        "longer output costs nothing",
        "max(len(ours), len(theirs), 1)",
        "max(len(theirs), 1)",
        "length_is_no_merit",
    ),
)

TOKENIZER = _of(
    "tokenizer",
    (
        "BytePairs",
        "pairs are saved in the order of the alphabet",
        "json.dumps(list(self.ranks))",
        "json.dumps(sorted(self.ranks))",
        "saved_order",
    ),
    (
        "BytePairs",
        "the last pair of a word goes first once loaded",
        "rank for rank, pair in enumerate(pairs)}, {}",
        "-rank for rank, pair in enumerate(pairs)}, {}",
        "saved_order",
    ),
    (
        "BytePairs",
        "words that all of them know",
        "def cut(self, word):",
        "def cut(self, word, known={}):\n        self.known = known",
        "apart",
    ),
    (
        "BytePairs",
        "pairs that the class holds",
        "pieces, self.ranks, self.known =",
        "pieces, type(self).ranks, self.known =",
        "apart",
    ),
    (
        "Cased",
        "a capital says that the rest is small",
        "elif word != lower and word == lower[:1].upper() + lower[1:]:",
        "elif word[0].isupper():",
        "round_trip",
    ),
    (
        "Cased",
        "the last mark stays",
        '                mark = ""\n        return',
        "        return",
        "round_trip",
    ),
)

BUGS = [*ATTENTION, *NORM, *PLACEMENT, *POSITION, *OTHERS, *TOKENIZER]
