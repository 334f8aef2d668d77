"""Mistakes by what the report says of them: `HEADLINES` break laws, and words of the first line name the cause; `FORMULAS`
break none, and are told apart from a component of the zoo, by its name; `RIGHT` are right."""

_DROP = "weights = F.dropout(weights, self.rate, training=self.training)"
_SPLIT_Q, _SPLIT_K, _SPLIT_V = (
    f"{n} = {n}.reshape([b, t, self.n_head, c // self.n_head]).transpose([0, 2, 1, 3])" for n in "qkv"
)
_VIEW_Q, _VIEW_K, _VIEW_V = (f"{n} = {n}.reshape([b, self.n_head, t, c // self.n_head])" for n in "qkv")
_MERGE = ".transpose([0, 2, 1, 3]).reshape([b, t, c])"
_SOFTMAX = "weights = F.softmax(scores + mask, -1)"
_SCALE = " * (c // self.n_head) ** -0.5"
_BRANCH = (
    "            if self.training:\n                branch = F.dropout(branch, self.rate) if self.rate else branch\n"
)

HEADLINES = {
    "self_attention": [
        (
            "no mask, and a dropout of its own",
            [(_SOFTMAX, "weights = F.softmax(scores, -1)"), (_DROP, "weights = F.dropout(weights, self.rate)")],
            "`mask` is never read",
        ),
        (
            "heads taken apart by a view",
            [(_SPLIT_Q, _VIEW_Q), (_SPLIT_K, _VIEW_K), (_SPLIT_V, _VIEW_V)],
            "tokens are mixed up",
        ),
        ("heads put together by a view", [(_MERGE, ".reshape([b, t, c])")], "tokens are mixed up"),
        (
            "heads put together by a view, and no scale",
            [(_MERGE, ".reshape([b, t, c])"), (_SCALE, "")],
            "tokens are mixed up",
        ),
        ("a dropout of its own", [(_DROP, "weights = F.dropout(weights, self.rate)")], "a dropout of its own"),
        (
            "masked after the softmax, and no scale",
            [(_SOFTMAX, "weights = F.softmax(scores, -1) * (mask > -1.0).astype(x.dtype)"), (_SCALE, "")],
            "after the softmax",
        ),
        (
            "rows of the batch taken for heads",
            [("reshape([b, t, c])\n", "reshape([t, b, c]).transpose([1, 0, 2])\n")],
            "sentences of a batch are mixed",
        ),
    ],
    "attention": [
        (
            "a count of its calls scales the scores",
            [
                (
                    "scores = scores / math.sqrt(self.head_dim)",
                    "self.calls = getattr(self, 'calls', 0) + 1\n"
                    "        scores = scores / math.sqrt(self.head_dim) / (1.0 + 0.1 * self.calls)",
                )
            ],
            "keeps something from one call to the next",
        ),
        (
            "a mask of its own, too large for a step",
            [
                (
                    "scores = scores / math.sqrt(self.head_dim)",
                    "scores = scores / math.sqrt(self.head_dim)\n"
                    "        if mask.causal:\n"
                    "            past = paddle.ones([x.shape[1]] * 2).tril().astype('bool')\n"
                    "            scores = paddle.where(past.expand(scores.shape), scores, scores * 0.0 - 1e9)",
                )
            ],
            "a step",
        ),
        (
            "no mask in steps, and heads merged by a view",
            [
                ("x.transpose([0, 2, 1, 3]).reshape([x.shape[0], x.shape[2], self.d_model])",
                 "x.reshape([x.shape[0], x.shape[2], self.d_model])"),
                ("math.sqrt(self.head_dim)", "self.head_dim"),
            ],
            "tokens are mixed up",
        ),
    ],
    "ordinary_norm": [
        (
            "divided by the reciprocal root",
            [("/ paddle.sqrt(var + self.eps)", "/ paddle.rsqrt(var + self.eps)")],
            "it does not normalize",
        ),
        (
            "a running mean that evaluation moves too",
            [
                ("        self.eps = eps\n",
                 "        self.eps = eps\n        self.register_buffer('seen', paddle.zeros([d_model]))\n"),
                ("        var = paddle.var(",
                 "        self.seen.set_value(0.9 * self.seen + 0.1 * mean.mean())\n        mean = mean + self.seen\n"
                 "        var = paddle.var("),
            ],
            "keeps something from one call to the next",
        ),
    ],
    "batch_norm": [
        (
            "statistics that evaluation moves too",
            [("if self.training and float(real.sum()) > 1:", "if float(real.sum()) > 1:")],
            "updated, in evaluation too",
        ),
    ],
    "pre": [
        (
            "dropout on the whole sum",
            [("return x + self.drops[i](sublayer(normed))", "return self.drops[i](x + sublayer(normed))")],
            "`x +`",
        ),
        (
            "a residual that is dropped, and none in evaluation",
            [("return x + self.drops[i](sublayer(normed))",
              "return self.drops[i](x) + sublayer(normed) if self.training else sublayer(normed)")],
            "`x +`",
        ),
    ],
    "own_placement": [
        (
            "no residual, and a dropout that never ends",
            [("            if self.training:\n                branch", "            if True:\n                branch"),
             ("x = x + branch", "x = branch")],
            "`x +`",
        ),
    ],
    "learned": [
        (
            "a table that ends, with no word of it",
            [("positions.clip(0, last)", "positions"), ("last = self.table.shape[0] - 1\n        ", "")],
            "indices beyond a table",
        ),
    ],
    "ordinary_position": [
        (
            "a dropout of its own, and ids of the batch",
            [("return x + self.table[: x.shape[1]].astype(x.dtype)",
              "return F.dropout(x + self.table[: x.shape[1]].astype(x.dtype), 0.1)"),
             ("from paddle import nn", "import paddle.nn.functional as F\nfrom paddle import nn")],
            "a dropout of its own",
        ),
    ],
    "rotary": [
        ("keys as they are", [("return self.turn(k, positions)", "return k")], "queries and keys are not turned alike"),
    ],
    "transformer": [
        (
            "no mask of the future, and none of padding",
            [("past = paddle.tril(paddle.ones([tgt.shape[1], tgt.shape[1]])).astype(\"bool\")",
              "past = paddle.ones([tgt.shape[1], tgt.shape[1]]).astype(\"bool\")"),
             ("real = (src != self.pad_idx)", "real = (src != -1)")],
            "attend to masked keys",
        ),
        (
            "heads taken apart by a view",
            [("x.reshape([x.shape[0], x.shape[1], self.h, self.d_k]).transpose([0, 2, 1, 3])",
              "x.reshape([x.shape[0], self.h, x.shape[1], self.d_k])")],
            "tokens are mixed up",
        ),
        (
            "residual behind dropout",
            [("return norm(x + F.dropout(branch, self.rate, training=self.training))",
              "return norm(F.dropout(x + branch, self.rate, training=True))")],
            "a dropout of its own",
        ),
    ],
}  # fmt: skip

_RATES = "rates = theta ** (-np.arange(0, head_dim, 2) / head_dim)"
_TURNS = [
    (
        f"kv.{part}.repeat_interleave(self.heads // self.groups, 1)",
        f"kv.{part}.tile([1, self.heads // self.groups, 1, 1])",
    )
    for part in ("key", "value")
]

FORMULAS = {
    "known_formulas:Turned": [
        ("an exponent that is doubled", [(_RATES, _RATES.replace("/ head_dim", "* 2 / head_dim"))], "rotary", "channel"),
        ("an exponent of i, not 2i", [(_RATES, _RATES.replace("0, head_dim, 2", "head_dim // 2"))], "rotary", "channel"),
    ],
    "rotary": [
        ("another base", [("rates = 10000.0", "rates = 500.0")], "rotary", "channel"),
    ],
    "known_formulas:RootMeanSquare": [
        ("eps outside of the root",
         [("paddle.sqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)",
           "(paddle.sqrt(x.pow(2).mean(-1, keepdim=True)) + self.eps)")], "rms", "where ε acts"),
        ("eps outside of the mean",
         [("paddle.sqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)",
           "paddle.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-12)")], "rms", "where ε acts"),
    ],
    "ordinary_norm": [
        ("a deviation of n − 1", [("unbiased=False", "unbiased=True")], "layer_std", "where ε acts"),
    ],
    "alibi": [
        ("heads from 0", [("paddle.arange(1, num_heads + 1)", "paddle.arange(num_heads)")], "alibi", "times"),
        ("slopes 2^-h", [("-8.0 * paddle.arange(1, num_heads + 1).astype(\"float64\") / num_heads",
                          "-paddle.arange(1, num_heads + 1).astype(\"float64\")")], "alibi", "a number for each"),
    ],
    "known_formulas:GatedNetwork": [
        ("the other half through the activation",
         [("gate * F.sigmoid(gate) * up", "up * F.sigmoid(up) * gate")], "swiglu", "`up_proj` as its `gate`"),
        ("a sigmoid for the swish", [("gate * F.sigmoid(gate) * up", "F.sigmoid(gate) * up")], "reglu", ""),
    ],
    "known_formulas:Buckets": [
        ("one more bucket for single distances", [("exact = count // 2", "exact = count // 2 + 1")], "t5", "distance"),
        ("borders by base 2", [("math.log(self.max_distance / exact)", "math.log(2.0 * self.max_distance / exact)")],
         "t5", "distance"),
    ],
    "known_formulas:Grouped": [
        ("groups that take turns", _TURNS, "grouped_query", ""),
    ],
    "known_formulas:CosineScores": [
        ("a fixed scale", [("transpose_y=True) * self.g", "transpose_y=True) * q.shape[-1] ** 0.5 + 0.0 * self.g")],
         "cosine", ""),
    ],
    "ordinary_position": [
        ("an exponent that is doubled",
         [("rates = 10000.0 ** (-paddle.arange(0, d_model, 2).astype(\"float32\") / d_model)",
           "rates = 10000.0 ** (-2.0 * paddle.arange(0, d_model, 2).astype(\"float32\") / d_model)")],
         "sinusoidal", "channel"),
        ("cosines of their own rates",
         [("paddle.cos(position * rates)", "paddle.cos(position * rates * 10000.0 ** (-1.0 / d_model))")],
         "sinusoidal", "channel"),
    ],
}  # fmt: skip

_SELF = "self_attention"
RIGHT = {
    _SELF: [
        ("True where it may look",
         [(_SOFTMAX, "weights = F.softmax(paddle.where(mask, scores, paddle.full_like(scores, -1e9)), -1)")]),
        ("True where it may not look",
         [(_SOFTMAX, "weights = F.softmax(paddle.where(mask, paddle.full_like(scores, -1e9), scores), -1)")]),
        ("a dropout of its output", [("return self.c_proj(y)",
                                      "return F.dropout(self.c_proj(y), self.rate, training=self.training)")]),
        ("scaled queries", [(_SCALE, ""), ("scores = paddle.matmul(q,", "scores = paddle.matmul(q / (c // self.n_head) ** 0.5,")]),
        ("cosines times sqrt(D)", [(f"paddle.matmul(q, k, transpose_y=True){_SCALE}",
                                   "paddle.matmul(F.normalize(q, axis=-1), F.normalize(k, axis=-1), transpose_y=True) * "
                                   "(c // self.n_head) ** 0.5")]),
        ("heads put together by flatten", [(_MERGE, ".transpose([0, 2, 1, 3]).flatten(2)")]),
    ],
    "known_formulas:RootMeanSquare": [
        ("as one rsqrt", [("x / size * self.scale", "x * size.reciprocal() * self.scale")]),
        ("a larger eps", [("eps: float = 1e-6", "eps: float = 1e-5")]),
    ],
    "known_formulas:GatedNetwork": [
        ("a gate of GELU", [("gate * F.sigmoid(gate) * up", "F.gelu(gate) * up")]),
        ("a gate of ReLU", [("gate * F.sigmoid(gate) * up", "F.relu(gate) * up")]),
    ],
    "known_formulas:Gaussian": [
        ("exact", [("0.5 * y * (1.0 + paddle.tanh(math.sqrt(2.0 / math.pi) * (y + 0.044715 * y**3)))", "F.gelu(y)")]),
    ],
    "known_formulas:Turned": [
        ("a larger base", [("theta: float = 10000.0", "theta: float = 500000.0")]),
    ],
    "known_formulas:Grouped": [
        ("one group", [("kv_heads: int = 2", "kv_heads: int = 1")]),
        ("groups that take turns", _TURNS),
    ],
    "pre": [
        ("a branch of half its size", [("self.drops[i](sublayer(normed))", "0.5 * self.drops[i](sublayer(normed))")]),
    ],
    "ordinary_norm": [
        ("without a shift", [(" + self.shift", ""), ("        self.shift = self.create_parameter([d_model], is_bias=True)\n", "")]),
    ],
    "ordinary_position": [
        ("sines before cosines",
         [("table[:, 0::2]", "table[:, : d_model // 2]"), ("table[:, 1::2]", "table[:, d_model // 2 :]")]),
    ],
}  # fmt: skip
