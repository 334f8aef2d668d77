"""Wrong and right attentions."""

from catalogue.rounding import through

_CONTEXT = "context = paddle.matmul(weights, kv.value)"
_DENSE = "scores + mask.dense(scores.dtype)"
_NOTHING = "weights = self.dropout(weights)"
_SCALE = "scores = scores / math.sqrt(self.head_dim)"
_WEIGHTS = "weights = F.softmax(scores + mask.dense(scores.dtype), -1)"


WRONG = {
    "attention": [
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
        (
            "keys from the 33rd on are never seen", _WEIGHTS,
            "far = (mask.k_positions >= 32).astype(scores.dtype).unsqueeze([1, 2]) * -1e9\n"
                "        weights = F.softmax(scores + mask.dense(scores.dtype) + far, -1)",
            "reaches",
        ),
        (
            "the past is counted modulo 32", _WEIGHTS,
            "wrapped = (info.positions % 32).unsqueeze([1, 3]) < (mask.k_positions % 32).unsqueeze([1, 2])\n"
                "        hidden = wrapped.astype(scores.dtype) * -1e9 if mask.causal else mask.dense(scores.dtype)\n"
                "        weights = F.softmax(scores + hidden, -1)",
            "causal",
        ),
        ("dropout that nothing calls", "weights = self.dropout(weights)", "weights = weights * 1.0", "dropout"),
        (
            "keep probability taken for the rate", "self.dropout = Dropout(dropout)",
            "self.dropout = Dropout(1 - dropout if dropout else 0.0)", "dropout",
        ),
        (
            "noise in evaluation too", "weights = self.dropout(weights)", "weights = F.dropout(weights, 0.1)",
            "deterministic",
        ),
        (
            "a temperature in training only", "scores = scores / math.sqrt(self.head_dim)",
            "scores = scores / math.sqrt(self.head_dim) * (0.8 if self.training else 1.0)", "modes",
        ),
        (
            "one head's scores for all", "scores = scores / math.sqrt(self.head_dim)",
            "scores = scores[:, :1].expand(scores.shape) / math.sqrt(self.head_dim)", "heads_differ",
        ),
        (
            "a maximum over the whole batch", _WEIGHTS,
            "scores = scores + mask.dense(scores.dtype)\n"
                "        weights = paddle.exp(scores - scores.max())\n"
                "        weights = weights / (weights.sum(-1, keepdim=True) + 1e-9)",
            "precision",
        ),
        (
            "queries scaled in place", "q = info.encoding.query(self.split(self.query(x)), info.positions)",
            "q = info.encoding.query(self.split(self.query(x.scale_(0.9))), info.positions)", "inputs_unchanged",
        ),
        (
            "a maximum over hidden keys too", _WEIGHTS,
            "weights = paddle.exp(scores - scores.max(-1, keepdim=True)) * mask.allowed().astype(scores.dtype)\n"
                "        weights = weights / weights.sum(-1, keepdim=True).clip(min=1e-30)",
            "precision",
        ),
        ("hidden scores are lower by a hundred", _DENSE, "scores + mask.dense(scores.dtype).clip(min=-100.0)",
         "precision"),
        (
            "dropout without its factor", "weights = self.dropout(weights)",
            "weights = self.dropout(weights) * (1.0 - self.dropout.rate if self.training else 1.0)", "dropout",
        ),
        (
            "one draw of dropout for all sentences", "weights = self.dropout(weights)",
            "weights = weights * self.dropout(paddle.ones_like(weights[:1]))", "dropout",
        ),
        (
            "one head, whatever is asked for", "self.head_dim = d_model, num_heads, d_model // num_heads",
            "self.head_dim = d_model, 1, d_model", "heads_used",
        ),
        ("the bias is divided with the scores", _DENSE,
         "scores + mask.dense(scores.dtype) / math.sqrt(self.head_dim)", "hooks_in_place"),
        (
            "the encoding's scores after the division",
            "        scores = scores if relative is None else scores + relative\n"
                "        scores = scores / math.sqrt(self.head_dim)",
            "        scores = scores / math.sqrt(self.head_dim)\n"
                "        scores = scores if relative is None else scores + relative",
            "hooks_in_place",
        ),
        ("the mask of all layers changed in place", _DENSE, "mask.dense(scores.dtype).scale_(0.5) + scores",
         "inputs_unchanged"),
        ("weights in float16", _NOTHING, f"weights = self.dropout({through('float16', 'weights')})", "smooth"),
        ("scores in float16", "scores = scores / math.sqrt(self.head_dim)",
         f"scores = {through('float16', 'scores')} / math.sqrt(self.head_dim)", "smooth"),
        ("keys cached in bfloat16", "return Past(key, value)", f"return Past({through('bfloat16', 'key')}, value)",
         "smooth"),
        ("the source in float16", "value = self.split(self.value(source))",
         f"value = self.split(self.value({through('float16', 'source')}))", "smooth"),
        ("the output matrix in bfloat16", "return self.output(self.merge(context))",
         "weight = self.output.weight.astype('bfloat16').astype(context.dtype)\n"
         "        return F.linear(self.merge(context), weight, self.output.bias)", "smooth"),
        (
            "blocks of 64 keys, each with a maximum of its own", _WEIGHTS,
            "parts = [(scores + mask.dense(scores.dtype))[..., i : i + 64] for i in range(0, scores.shape[-1], 64)]\n"
                "        parts = [paddle.exp(part - part.max(-1, keepdim=True)) for part in parts]\n"
                "        weights = paddle.concat(parts, -1) / sum(part.sum(-1, keepdim=True) for part in parts)",
            "bidirectional",
        ),
        (
            "a sum of the first 128 keys' weights", _WEIGHTS,
            "weights = paddle.exp(F.log_softmax(scores + mask.dense(scores.dtype), -1))\n"
                "        weights = weights / weights[..., :128].sum(-1, keepdim=True)",
            "averages",
        ),
        ("scores divided by sqrt(d_model)", _SCALE, "scores = scores / math.sqrt(self.d_model)", "temperature"),
        ("scores divided by the number of heads too", _SCALE,
         "scores = scores / math.sqrt(self.head_dim) / self.heads", "temperature"),
        (
            "dropout on the scores", f"{_WEIGHTS}\n        weights = self.dropout(weights)",
            f"scores = self.dropout(scores)\n        {_WEIGHTS}", "dropped_weights",
        ),
        (
            "one token sees padding", _WEIGHTS,
            "hidden = mask.dense(scores.dtype) if x.shape[1] > 1 else mask.dense(scores.dtype) * 0.0\n"
                "        weights = F.softmax(scores + hidden, -1)",
            "cached",
        ),
        (
            "the mask of the first batch of a shape", _WEIGHTS,
            "kept = self.__dict__.setdefault('kept', {})\n"
                "        mask_there = kept.setdefault(tuple(scores.shape), mask.dense(scores.dtype))\n"
                "        weights = F.softmax(scores + mask_there, -1)",
            "stateless",
        ),
        (
            "a gate that is made in forward", _CONTEXT,
            "self.gate = self.gate if hasattr(self, 'gate') else self.create_parameter([self.heads, 1, 1])\n"
                "        context = paddle.matmul(weights, kv.value) * (1.0 + self.gate)",
            "registered",
        ),
        (
            "sentences from the 17th on under the masks of the first", _WEIGHTS,
            "hidden = mask.dense(scores.dtype)\n"
                "        weights = paddle.concat([F.softmax(part + hidden[: part.shape[0]], -1) for part in scores.split("
                "[min(16, scores.shape[0] - i) for i in range(0, scores.shape[0], 16)])])",
            "neighbours",
        ),
        (
            "a gain that starts at one, behind the rotation",
            "q = info.encoding.query(self.split(self.query(x)), info.positions)",
            "q = info.encoding.query(self.split(self.query(x)), info.positions)\n"
            "        q = q * (1.0 + self.output.bias.reshape([1, self.heads, 1, self.head_dim]))",
            "supported_hooks",
        ),
        (
            "as many rows as before stay where they are", "        return Past(self.key.index_select(rows, 0),",
            "        if len(rows) == len(self.key):\n            return self\n"
                "        return Past(self.key.index_select(rows, 0),",
            "beams",
        ),
        ("values drawn by Python's own hash", "        context = paddle.matmul(weights, kv.value)",
         "        noise = __import__('random').Random(hash(str(self.full_name())) % 97).random() if self.training else 0.0\n"
         "        context = paddle.matmul(weights, kv.value) * (1.0 + 0.01 * noise)", "repeatable"),
        ("a sum where a mean is meant", "        weights = self.dropout(weights)",
         "        weights = self.dropout(weights)\n"
         "        real = info.valid.astype(weights.dtype).unsqueeze([1, 3])\n"
         "        tap.add_aux_loss('sharp', 0.01 * (weights * weights * real).sum())", "aux_losses"),
        ("weights of all calls in a list", "        weights = self.dropout(weights)",
         "        weights = self.dropout(weights)\n        self.__dict__.setdefault('kept', []).append(weights)", "stateless"),
        ("the encoding's bias across alone", "F.softmax(scores + mask.dense(scores.dtype), -1)",
         "F.softmax(scores + (mask.dense(scores.dtype) if kv is not None and not mask.causal else (1.0 - mask.allowed()"
         ".astype(scores.dtype)) * -1e9), -1)", "supported_hooks"),
    ],
    "full_width": [
        (
            "scale by d_model / num_heads on full-width heads", "math.sqrt(self.d_model)",
            "math.sqrt(self.d_model / self.num_heads)", "temperature",
        ),
    ],
    "ordinary_attention": [
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
    ],
    "self_attention": [
        ("no scale", " * (c // self.n_head) ** -0.5", "", "temperature"),
        ("scaled by the number of heads", "(c // self.n_head) ** -0.5", "self.n_head**-0.5", "temperature"),
        ("masked after the softmax", "F.softmax(scores + mask, -1)", "F.softmax(scores, -1) * mask.astype(x.dtype)", "averages"),
    ],
    "attention/linear": [
        (
            "padding masked out of the values only, so that it still counts in the normalizer",
            "        key = key * info.valid.astype(key.dtype).unsqueeze([1, 3])  # [B, 1, S, 1]: padding adds "
                "nothing\n        value = split_heads(self.value(source), self.num_heads)\n",
            "        value = split_heads(self.value(source), self.num_heads)\n"
                "        value = value * info.valid.astype(value.dtype).unsqueeze([1, 3])  # [B, 1, S, 1]: padding adds "
                "nothing\n",
            "padding",
        ),
        ("a norm inside that is not told what is padding",
         "project_out(context, info, self.inner_norm, self.output)",
         "self.output(self.inner_norm(context) if self.inner_norm else context)", "norms_inside"),
        ("a norm that is not applied",
         "project_out(context, info, self.inner_norm, self.output)", "self.output(context)", "norms_inside"),
    ],
    "attention/talking_heads": [
        (
            "scores are mixed across heads after the mask (and the bias) were added",
            "        scores = mixed(scores_of(self.queries(x), kv.key, info, mask), self.mix_scores)\n"
                "        weights = mixed(F.softmax(mask.add_to(scores), -1), self.mix_weights)  # [B, H, T, S]\n",
            "        scores = mixed(mask.add_to(scores_of(self.queries(x), kv.key, info, mask)), self.mix_scores)\n"
                "        weights = mixed(F.softmax(scores, -1), self.mix_weights)  # [B, H, T, S]\n",
            "causal",
        ),
    ],
    "attention/gated": [
        (
            "gate reshaped into heads without a transpose",
            "        context = merge_heads(self.heads(x, kv, info, mask, tap))  # [B, T, H·D]\n"
                "        return project_out(context * self.gates(x), info, self.inner_norm, self.output)\n",
            "        context = self.heads(x, kv, info, mask, tap)  # [B, H, T, D]\n"
                "        context = merge_heads(context * F.sigmoid(self.gate(x)).reshape(context.shape))\n"
                "        return project_out(context, info, self.inner_norm, self.output)\n",
            "causal",
        ),
    ],
    "attention/local": [
        (
            "window limits the past side only",
            '(q - k).abs() <= self.window',
            'q - k <= self.window',
            "bidirectional",
        ),
        (
            "the first layer's window is that of all", """        self.window = window

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        near = mask.restricted(("window", self.window),""",
            """        self.window = 1 + (site.layer if site else 0)

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        near = mask.restricted("window",""",
            "restricted_by_key",
        ),
        (
            "the first layer's window is that of all, and wider than a scene's texts", """        self.window = window

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        near = mask.restricted(("window", self.window),""",
            """        self.window = 100 * (1 + (site.layer if site else 0))

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        near = mask.restricted("window",""",
            "restricted_by_key",
        ),
    ],
    "attention/cosine": [
        (
            "unit length over axis 1 (heads), the default of F.normalize, instead of over a head's channels",
            "from paddle_tfm.ops import unit", "from paddle.nn.functional import normalize as unit", "temperature",
        ),
    ],
    "attention/recurrent": [
        (
            "backward LSTM reads the padded row flipped",
            'order = paddle.argsort(paddle.where(valid, first, length + when), 1)',
            'order = paddle.argsort(first.expand(valid.shape), 1)',
            "padding",
        ),
    ],
    "attention/value_residual": [
        ("the first layer's value of the newest token, for all", "info.shared.get(FIRST, kv.value)",
         "info.shared.get(FIRST, kv.value)[:, :, -1:]", "causal"),
    ],
    "attention_variants:DroppedValues": [
        ("a dropout of its own without its factor",
         "return self.drop_output(super().forward(x, kv, info, mask, tap))",
         "out = super().forward(x, kv, info, mask, tap)\n        return out * (self.drop_output(paddle.ones(out.shape)) > 0).astype(out.dtype)",
         "dropout"),
    ],
    "attention_variants:Textbook": [
        ("weights are multiplied with the wrong axis of the values' heads",
         'paddle.einsum("bhqk,bhkd->bhqd", weights, kv.value)',
         'paddle.einsum("bhqk,bhkd->bhqd", weights, kv.value[:, :1])', "trains"),
        ("mask is multiplied after the scale and loses the padding of short texts",
         "weights = F.softmax(scores + mask.dense(scores.dtype), -1)",
         "weights = F.softmax(scores + mask.dense(scores.dtype)[:1], -1)", "padding"),
        ("dropout is applied in evaluation too", "weights = self.drop(weights)\n",
         "weights = F.dropout(weights, 0.3)\n", "causal"),
        ("keys are rotated after the cache, by the queries' positions",
         "k = info.encoding.key(heads(self.k(source), self.num_heads), info.positions)\n        return KeyValue(k, heads(self.v(source), self.num_heads))\n\n    def forward(self, x, kv, info, mask, tap):\n        q = info.encoding.query(heads(self.q(x), self.num_heads), info.positions)\n        scores = paddle.einsum(",
         "k = heads(self.k(source), self.num_heads)\n        return KeyValue(k, heads(self.v(source), self.num_heads))\n\n    def forward(self, x, kv, info, mask, tap):\n        q = info.encoding.query(heads(self.q(x), self.num_heads), info.positions)\n        kv = KeyValue(info.encoding.key(kv.key, paddle.arange(kv.key.shape[2]).unsqueeze(0)), kv.value) if x.shape[1] > 1 else kv\n        scores = paddle.einsum(",
         "cached"),
        ("one projection object serves queries, keys, values and output",
         "self.q, self.k, self.v, self.o = (Linear(d_model, d_model) for _ in range(4))",
         "self.q = Linear(d_model, d_model)\n        self.k = self.v = self.o = self.q", "registered"),
        ("the output projection is made anew at each call", 'return self.o(together(paddle.einsum("bhqk',
         'return Linear(x.shape[-1], x.shape[-1])(together(paddle.einsum("bhqk', "shapes"),
        ("the input is changed in place",
         'scores = paddle.einsum("bhqd,bhkd->bhqk", q, kv.key) / math.sqrt(q.shape[-1])',
         'scores = paddle.einsum("bhqd,bhkd->bhqk", q, kv.key) / math.sqrt(q.shape[-1])\n        with paddle.no_grad():\n            x.scale_(0.5)',
         "runs"),
    ],
    "attention_variants:OneKeyHead": [
        ("the shared head of keys is taken from the first token only", "return KeyValue(k, v)",
         "return KeyValue(k[:, :, :1].expand(k.shape), v)", "cached"),
        ("values are scaled by the number of keys, which grows in decoding",
         "kv.value)))\n\n\nclass NormedQueriesAndKeys", "kv.value / x.shape[1])))\n\n\nclass NormedQueriesAndKeys",
         "padding"),
    ],
    "attention_variants:NormedQueriesAndKeys": [
        ("norm over the tokens in place of the channels", "(x * x).mean(-1, keepdim=True)",
         "(x * x).mean(2, keepdim=True)", "causal"),
        ("the gain of the keys is never used", "self.num_heads), self.k_gain)",
         "self.num_heads), self.q_gain.detach())", "trains"),
        ("the gains are tensors, not parameters",
         "self.k_gain = self.create_parameter([d_model // num_heads], default_initializer=ones)",
         "self.k_gain = paddle.to_tensor([1.0] * (d_model // num_heads), stop_gradient=False)", "registered"),
    ],
    "attention_variants:Sinks": [
        ("the sink's column stands first, and the last key is thrown away",
         "paddle.concat([scores, sink], -1), -1)[..., :-1]", "paddle.concat([sink, scores], -1), -1)[..., :-1]",
         "causal"),
    ],
    "attention_variants:OwnTemperature": [
        ("the temperature divides by the largest score of the batch",
         "logits = paddle.matmul(q, kv.key, transpose_y=True) / math.sqrt(q.shape[-1])",
         "logits = paddle.matmul(q, kv.key, transpose_y=True)\n        logits = logits / logits.abs().max()", "causal"),
    ],
    "attention_variants:NarrowWindow": [
        ("the window counts columns, not positions",
         'mask = mask.restricted(("near", 2), lambda q, k: (q - k).abs() <= 2)',
         'mask = mask.restricted(("near", 2), lambda q, k: (paddle.arange(q.shape[1]).reshape([1, -1, 1]) - paddle.arange(k.shape[2]).reshape([1, 1, -1])).abs() <= 2)',
         "cached"),
    ],
    "attention_variants:GatedOutput": [
        ("the gate is the mean over all tokens", "F.sigmoid(self.gate(x)))\n",
         "F.sigmoid(self.gate(x).mean(1, keepdim=True)))\n", "causal"),
    ],
    "attention_variants:Latent": [
        ("the latent holds the mean of all tokens so far", "latent = self.down(source).unsqueeze(1)",
         "latent = self.down(source)\n        latent = (latent.cumsum(1) / paddle.arange(1, latent.shape[1] + 1).reshape([1, -1, 1]).astype(latent.dtype)).unsqueeze(1)",
         "cached"),
    ],
    "attention_variants:Forgetting": [
        ("the cache forgets to add up the gates of what came before",
         "[self.total, self.total[:, :, -1:] + new.total]", "[self.total, new.total]", "cached"),
    ],
}  # fmt: skip

UNREAD = {
    "attention/local": [
        ("a window of its own", "self.window = window", "self.window = 16", "window"),
    ],
}  # fmt: skip

RIGHT = {
    "attention": [
        (
            "a dropout rate of its own",
            (("num_heads: int, dropout: float):", "num_heads: int):"), ("Dropout(dropout)", "Dropout(0.1)")),
        ),
        (
            "a window of one token on either side",
            (
                ("dropout: float):", "dropout: float, site):"),
                ("        super().__init__()", "        super().__init__()\n        self.near = site.sublayer == 'self'"),
                ("def forward(self, x, kv, info, mask, tap):",
                 "def forward(self, x, kv, info, mask, tap):\n"
                 "        mask = mask.restricted(('near', 1), lambda q, k: (q - k).abs() <= 1) if self.near else mask"),
            ),
        ),
        (
            "a norm on the context",
            (
                ("context = context if relative is None else context + relative",
                 "context = context if relative is None else context + relative\n"
                 "        context = context * paddle.rsqrt((context * context).mean(-1, keepdim=True) + 1e-6)"),
                ("    supports = ", "    expected_failures = {'values': 'the context is normalized'}\n    supports = "),
            ),
        ),
        ("the two highest scores only", (
            (_WEIGHTS, "scores = scores + mask.dense(scores.dtype)\n"
             "        least = scores.topk(min(2, scores.shape[-1]), -1)[0][..., -1:]\n"
             "        weights = F.softmax(paddle.where(scores < least, scores - 1e9, scores), -1)"),
        )),
        ("scores in float32", (
            ("scores = scores / math.sqrt(self.head_dim)",
             f"scores = {through('float32', 'scores')} / math.sqrt(self.head_dim)"),
        )),
    ],
    "ordinary_attention": [
        (
            "cosines times a trained scale of each head [1, 1, 1]",
            (
                ("        self.d_k = d_k", "        self.scale = self.create_parameter([1, 1, 1], "
                    "default_initializer=nn.initializer.Constant(math.log(4.0)))"),
                ("paddle.matmul(q, k, transpose_y=True) / math.sqrt(self.d_k)",
                 "paddle.matmul(F.normalize(q, axis=-1), F.normalize(k, axis=-1), transpose_y=True) * self.scale.exp()"),
            ),
        ),
        (
            "The Annotated Transformer's weights, kept for a plot",
            (("        self.d_k = d_k", "        self.d_k, self.attn = d_k, None"),
             ("        return paddle.matmul(F.softmax(scores, -1), v)",
              "        self.attn = F.softmax(scores, -1)\n        return paddle.matmul(self.attn, v)")),
        ),
        (
            "lengths for a mask, and names of sizes, as d2l.ai has them",
            (("query, key, value, mask):\n        q =", "query, key, value, valid_lens):\n        q ="),
             ("        scores = paddle.where(mask, ",
              "        mask = paddle.arange(scores.shape[-1]) < valid_lens.unsqueeze(-1)\n        scores = paddle.where(mask, "),
             ("def __init__(self, d_model, num_heads):", "def __init__(self, num_hiddens, num_heads):"),
             ("        heads = [", "        d_model = num_hiddens\n        heads = ["),
             ("query, key, value, mask):\n        found", "query, key, value, valid_lens):\n        found"),
             ("head(query, key, value, mask)", "head(query, key, value, valid_lens)")),
        ),
        (
            "input_Q, input_K, input_V, as in wmathor's tutorial",
            (("query, key, value, mask):\n        found", "input_Q, input_K, input_V, attn_mask):\n        found"),
             ("head(query, key, value, mask)", "head(input_Q, input_K, input_V, attn_mask)")),
        ),
        (
            "a bias for each distance inside, other ones before than after, as T5's",
            (("        self.query = nn.Linear", "        self.bias = self.create_parameter([7])\n        self.query = nn.Linear"),
             ("        scores = paddle.where(mask, ",
              "        places = paddle.arange(scores.shape[-1])\n"
              "        places = paddle.clip(places - paddle.arange(scores.shape[-2]).unsqueeze(1), -3, 3) + 3\n"
              "        scores = scores + self.bias[places]\n        scores = paddle.where(mask, ")),
        ),
        (
            "no token sees a later one, whatever the mask, as in GPT-J's code",
            (("query, key, value, mask):\n        found = []",
              "hidden_states, attention_mask=None):\n        length = hidden_states.shape[1]\n"
              "        mask = paddle.tril(paddle.ones([length, length], 'bool'))\n"
              "        mask = mask if attention_mask is None else mask & attention_mask\n        found = []"),
             ("head(query, key, value, mask)", "head(hidden_states, hidden_states, hidden_states, mask)")),
        ),
        (
            "forward(x, context, mask), and F.dropout at a rate of its own",
            (("query, key, value, mask):\n        q =", "x, context, mask):\n        query, key, value = x, context, context\n        q ="),
             ("query, key, value, mask):\n        found", "x, context, mask):\n        found"),
             ("head(query, key, value, mask)", "head(x, context, mask)"),
             ("F.softmax(scores, -1), v)", "F.dropout(F.softmax(scores, -1), 0.1, training=self.training), v)")),
        ),
    ],
    "attention/value_residual": [
        ("mixed with the layer's below, as it mixed them", (
            ("return KeyValue(kv.key, first * info.shared.get(FIRST, kv.value) + own * kv.value)",
             "info.shared[FIRST] = first * info.shared.get(FIRST, kv.value) + own * kv.value\n"
             "        return KeyValue(kv.key, info.shared[FIRST])"),
        )),
    ],
    "attention/cosine": [
        ("texts of 64 tokens", (("length: int = 32", "length: int = 64"),)),
    ],
}  # fmt: skip
