"""Wrong and right components of several kinds, written where laws looked in too few places: parameters that nothing
holds, numbers of options, equal sizes, whole models, rates of rotations, groups of heads, windows, gains at the
start."""

_DENSE = "scores + mask.dense(scores.dtype)"
_CONTEXT = "context = paddle.matmul(weights, kv.value)"
_ADD = "        return norm(x + F.dropout(branch, self.rate, training=self.training))"
_SOFTMAX = "context = paddle.matmul(F.softmax(scores, -1), v)"
_TURNED = "return paddle.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)"

WRONG = {
    "attention": [
        ("a gain that each pass makes again", _CONTEXT,
         _CONTEXT + " * paddle.create_parameter([self.heads, 1, 1], scores.dtype, "
         "default_initializer=paddle.nn.initializer.Constant(1.0))", "registered"),
        ("the queries' matrix in a class that is no layer", "self.query = Linear(d_model, d_model)",
         "self.query = type('Bag', (), {'layer': Linear(d_model, d_model), '__call__': lambda self, x: self.layer(x)})()",
         "registered"),
        ("B = T taken for [T, B, C]", "q = info.encoding.query(self.split(self.query(x)), info.positions)",
         "x = x.transpose([1, 0, 2]) if x.shape[0] == x.shape[1] > 1 else x\n"
         "        q = info.encoding.query(self.split(self.query(x)), info.positions)", "neighbours"),
        ("a mask of [T, S] told by its shape", _DENSE,
         "scores + (mask.dense(scores.dtype) if scores.shape[0] != scores.shape[2] else "
         "mask.dense(scores.dtype).transpose([2, 1, 0, 3]))", "neighbours"),
        ("values of [B, S, H, D] told by their shape", _CONTEXT,
         "context = paddle.matmul(weights, kv.value.transpose([0, 2, 1, 3]) if weights.shape[1] == weights.shape[2] == "
         "weights.shape[3] > 3 else kv.value)", "neighbours"),
    ],
    "feed_forward": [
        ("a matrix in the default of a function", "        self.dropout = Dropout(dropout)",
         "        self.dropout = Dropout(dropout)\n        self.mix = lambda h, inner=Linear(d_ff, d_ff): h + inner(h)\n"
         "        self.dropout.forward = lambda h: self.mix(h)", "registered"),
    ],
    "layer_norm": [
        ("1 + w with w = 1", "return centred / paddle.sqrt(variance + self.eps) * self.weight + self.bias",
         "return centred / paddle.sqrt(variance + self.eps) * (1 + self.weight) + self.bias", "gain"),
        ("w in the place of 1 + w, from 0", "default_initializer=nn.initializer.Constant(1.0)", "is_bias=True", "gain"),
        ("times sqrt(d_model) once more", "* self.weight + self.bias",
         "* self.weight * x.shape[-1] ** 0.5 + self.bias", "gain"),
        ("a shift that the first call makes, in a list", "* self.weight + self.bias",
         "* self.weight + self.bias + self.__dict__.setdefault('more', "
         "[self.create_parameter(self.bias.shape, is_bias=True)])[0]", "registered"),
    ],
    "sharp_and_sparse:CapOfScores": [
        ("the cap after the mask", "capped = self.cap * paddle.tanh(scores / self.cap) + mask.dense(scores.dtype)",
         "capped = self.cap * paddle.tanh((scores + mask.dense(scores.dtype)) / self.cap)", "choices"),
        ("the cap a share of the largest score of the batch", "capped = self.cap * paddle.tanh(scores / self.cap) + ",
         "capped = scores * (self.cap / scores.abs().max()).clip(max=1.0) + ", "choices"),
    ],
    "sharp_and_sparse:WindowOfKeys": [
        ("places in the tensor instead of positions",
         'near = mask.restricted(("near", self.window), lambda q, k: (q - k).abs() < self.window) if self.here else mask',
         'near = mask\n        gap = paddle.arange(scores.shape[2]).unsqueeze(1) - paddle.arange(scores.shape[3])\n'
         '        scores = scores - 1e9 * (gap.abs() >= self.window).astype(scores.dtype) * float(self.here)', "choices"),
        ("one key too few", "(q - k).abs() < self.window)", "(q - k).abs() < max(1, self.window - 1))", "window"),
        ("twice as many keys", "(q - k).abs() < self.window)", "(q - k).abs() < 2 * self.window)", "window"),
    ],
    "sharp_and_sparse:BestKeys": [
        ("hidden keys take part in the choice",
         "        scores = scores + mask.dense(scores.dtype)\n"
         "        least = scores.topk(min(self.keep, scores.shape[-1]), -1)[0][..., -1:]",
         "        least = scores.topk(min(self.keep, scores.shape[-1]), -1)[0][..., -1:]\n"
         "        scores = scores + mask.dense(scores.dtype)", "choices"),
    ],
    "known_formulas:Grouped": [
        ("one head with keys of its own, the others share the rest",
         "        key = kv.key.repeat_interleave(self.heads // self.groups, 1)\n"
         "        value = kv.value.repeat_interleave(self.heads // self.groups, 1)\n",
         "        which = paddle.to_tensor([min(head, self.groups - 1) for head in range(self.heads)])\n"
         "        key, value = (each.index_select(which, 1) for each in (kv.key, kv.value))\n", "groups"),
    ],
    "sharp_and_sparse:Chunks": [
        ("the first chunk alone", "return paddle.concat(parts).reshape(x.shape)",
         "parts[1:] = [0.0 * part for part in parts[1:]]\n        return paddle.concat(parts).reshape(x.shape)", "choices"),
    ],
    "sharp_and_sparse:ClippedRMS": [
        ("all numbers smaller by the largest of the batch", "x = x.clip(-self.most, self.most)",
         "x = x + (self.most / x.abs().max()).clip(max=1.0) - 1.0", "choices"),
    ],
    "rotary": [
        ("what does not turn is lost", _TURNED,
         "keep = (paddle.arange(a.shape[-1]) < max(1, a.shape[-1] // 2)).astype(x.dtype)\n"
         "        return paddle.stack([(a * cos - b * sin) * keep, (a * sin + b * cos) * keep], -1).flatten(-2)", "relative"),
        ("the first pair for all", "a, b = x[..., 0::2], x[..., 1::2]",
         "a, b = (each.expand(x[..., 0::2].shape) for each in (x[..., :1], x[..., 1:2]))", "relative"),
    ],
    "position/rotary": [
        ("rates from 1 to 1 / sqrt(base)", "frequencies(self.width, base)", "frequencies(self.width, base**0.5)", "rates"),
        ("rates from 1 to 1 / base²", "frequencies(self.width, base)", "frequencies(self.width, base**2)", "rates"),
    ],
    "position/sinusoidal": [
        ("2i taken for i once more: from 1 to 1 / base²", "Sinusoid(d_model, base, halves)",
         "Sinusoid(d_model, base**2, halves)", "rates"),
    ],
    "transformer": [
        ("across, the first words see the first words only", "y = layer(y, past, x, real)",
         "y = layer(y, past, x, real & paddle.tril(paddle.ones([tgt.shape[1], src.shape[1]])).astype('bool'))", "reaches"),
        ("across, the last source word is hidden", "y = layer(y, past, x, real)",
         "y = layer(y, past, x, real & (paddle.arange(src.shape[1]) < max(1, src.shape[1] - 1)))", "padding"),
        ("the decoder sees the newest word and the one before", "past = past.unsqueeze([0, 1])",
         "past = past & paddle.triu(paddle.ones(past.shape), -1).astype('bool')\n"
         "        past = past.unsqueeze([0, 1])", "reaches"),
        ("the encoder sees words before alone", "x = layer(x, real)",
         "x = layer(x, real & paddle.tril(paddle.ones([src.shape[1], src.shape[1]])).astype('bool'))", "reaches"),
        ("exp without the maximum", _SOFTMAX,
         "weights = scores.exp()\n        context = paddle.matmul(weights / weights.sum(-1, keepdim=True), v)", "extremes"),
        ("a norm without an epsilon", _ADD,
         "        y = x + F.dropout(branch, self.rate, training=self.training)\n"
         "        return (y - y.mean(-1, keepdim=True)) / y.std(-1, keepdim=True) * norm.weight + norm.bias", "extremes"),
        ("embeddings over their length", "x = table(ids) * math.sqrt(self.d_model)",
         "x = table(ids)\n        x = x / x.norm(axis=-1, keepdim=True) * math.sqrt(self.d_model)", "extremes"),
        ("a source as long as the batch is turned around", "    def forward(self, src, tgt):",
         "    def forward(self, src, tgt):\n        src = src.transpose([1, 0]) if src.shape[0] == src.shape[1] else src",
         "neighbours"),
        ("the output layer in a function", "self.output = nn.Linear(d_model, tgt_vocab_size, weight_attr=normal)",
         "layer = nn.Linear(d_model, tgt_vocab_size, weight_attr=normal)\n        self.output = lambda y: layer(y)",
         "registered"),
    ],
}  # fmt: skip

RIGHT = {
    "transformer": [
        ("F.silu", (("nn.ReLU()", "nn.Silu()"),)),
        ("pre-norm, and a norm behind each stack", (
            ("        return norm(x + F.dropout(branch, self.rate, training=self.training))",
             "        return x + F.dropout(branch(norm(x)), self.rate, training=self.training)"),
            ("self.add(x, self.look(x, x, mask), self.norms[0])",
             "self.add(x, lambda y: self.look(y, y, mask), self.norms[0])"),
            ("self.add(x, self.across(x, memory, memory_mask), self.norms[1])",
             "self.add(x, lambda y: self.across(y, memory, memory_mask), self.norms[1])"),
            ("self.add(x, self.think(x), self.norms[-1])", "self.add(x, self.think, self.norms[-1])"),
            ("        y = self.embed(tgt", "        x = self.last[0](x)\n        y = self.embed(tgt"),
            ("return self.output(y)", "return self.output(self.last[1](y))"),
            ("        self.output = ", "        self.last = nn.LayerList([nn.LayerNorm(d_model), nn.LayerNorm(d_model)])\n        self.output = "),
        )),
        ("windows of four words in the decoder", (
            ("past = past.unsqueeze([0, 1])",
             "past = past & paddle.triu(paddle.ones(past.shape), -3).astype('bool')\n        past = past.unsqueeze([0, 1])"),
        )),
    ],
}  # fmt: skip
