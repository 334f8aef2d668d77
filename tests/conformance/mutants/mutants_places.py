"""Bugs that escaped the kit because it looked in too few places, and right variants that it called wrong."""

_LOGITS = "logits = self.output(h)"
_WEIGHTS = "weights = F.softmax(scores + mask.dense(scores.dtype), -1)"

# (twin, what is wrong, the lines as they are, the lines broken, the check that must fail)
PLACES = [
    (
        "head", "adds the state before it", _LOGITS,
        "logits = self.output(h + paddle.concat([paddle.zeros_like(h[:, :1]), h[:, :-1]], 1))", "cached",
    ),
    ("head", "adds the state after it", _LOGITS, "logits = self.output(h + h.roll(-1, 1))", "causal"),
    ("head", "changes what it gets", _LOGITS, "logits = self.output(h.scale_(0.5))", "inputs_unchanged"),
    (
        "attention", "keys from the 33rd on are never seen", _WEIGHTS,
        "far = (mask.k_positions >= 32).astype(scores.dtype).unsqueeze([1, 2]) * -1e9\n"
            "        weights = F.softmax(scores + mask.dense(scores.dtype) + far, -1)",
        "reaches",
    ),
    (
        "attention", "the past is counted modulo 32", _WEIGHTS,
        "wrapped = (info.positions % 32).unsqueeze([1, 3]) < (mask.k_positions % 32).unsqueeze([1, 2])\n"
            "        hidden = wrapped.astype(scores.dtype) * -1e9 if mask.causal else mask.dense(scores.dtype)\n"
            "        weights = F.softmax(scores + hidden, -1)",
        "causal",
    ),
    ("attention", "dropout that nothing calls", "weights = self.dropout(weights)", "weights = weights * 1.0", "dropout"),
    (
        "attention", "keep probability taken for the rate", "self.dropout = Dropout(dropout)",
        "self.dropout = Dropout(1 - dropout if dropout else 0.0)", "dropout",
    ),
    (
        "attention", "noise in evaluation too", "weights = self.dropout(weights)", "weights = F.dropout(weights, 0.1)",
        "deterministic",
    ),
    (
        "attention", "a temperature in training only", "scores = scores / math.sqrt(self.head_dim)",
        "scores = scores / math.sqrt(self.head_dim) * (0.8 if self.training else 1.0)", "modes",
    ),
    (
        "attention", "one head's scores for all", "scores = scores / math.sqrt(self.head_dim)",
        "scores = scores[:, :1].expand(scores.shape) / math.sqrt(self.head_dim)", "heads_differ",
    ),
    (
        "attention", "a maximum over the whole batch", _WEIGHTS,
        "scores = scores + mask.dense(scores.dtype)\n"
            "        weights = paddle.exp(scores - scores.max())\n"
            "        weights = weights / (weights.sum(-1, keepdim=True) + 1e-9)",
        "precision",
    ),
    (
        "attention", "queries scaled in place", "q = info.encoding.query(self.split(self.query(x)), info.positions)",
        "q = info.encoding.query(self.split(self.query(x.scale_(0.9))), info.positions)", "inputs_unchanged",
    ),
    (
        "layer_norm", "a gain that is a plain tensor",
        "self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))",
        "self.weight = paddle.ones([d_model])\n        self.weight.stop_gradient = False", "registered",
    ),
    ("layer_norm", "centred in place", "centred = x - x.mean(-1, keepdim=True)",
     "centred = x.subtract_(x.mean(-1, keepdim=True))", "inputs_unchanged"),
    ("layer_norm", "centred in place in evaluation", "centred = x - x.mean(-1, keepdim=True)",
     "centred = x - x.mean(-1, keepdim=True) if self.training else x.subtract_(x.mean(-1, keepdim=True))",
     "inputs_unchanged"),
    ("feed_forward", "doubled in place in training", "def forward(self, x, info, tap):",
     "def forward(self, x, info, tap):\n        x = x.scale_(2.0) if self.training else x * 2.0",
     "inputs_unchanged"),
    (
        "layer_norm", "an absolute value at the end", "* self.weight + self.bias", "* self.weight.abs() * centred.sign()",
        "both_signs",
    ),
    (
        "batch_norm", "momentum is the weight of the past", "self.mean + self.momentum * (mean - self.mean)",
        "mean + self.momentum * (self.mean - mean)", "momentum",
    ),
    (
        "norm/batch", "a small batch counts as much as a large one", "self._pool.add(mean, variance, count)",
        "self._pool.add(mean, variance, paddle.full_like(count, 2.0))", "population",
    ),
    (
        "norm/power", "half of what was there before stays", "pool.store(self.running_square, pool.mean)",
        "pool.store(self.running_square, (pool.mean + self.running_square) / 2)", "population",
    ),
    ("feed_forward", "an activation at the end", "return self.layers[1](hidden)", "return F.relu(self.layers[1](hidden))",
     "both_signs"),
    ("feed_forward", "dropout that nothing calls", "hidden = self.dropout(hidden)", "hidden = hidden * 1.0", "dropout"),
    (
        "feed_forward", "rounded by the largest number of the batch", "hidden = F.relu(self.layers[0](x))",
        "step = x.abs().max() / 127\n        hidden = F.relu(self.layers[0](x + ((x / step).round() * step - "
            "x).detach()))",
        "precision",
    ),
    (
        "pre", "dropout on the residual", "return x + self.drops[i](sublayer(normed))",
        "return self.drops[i](x + sublayer(normed))", "identity_path",
    ),
    (
        "pre", "a sublayer twice in training", "return x + self.drops[i](sublayer(normed))",
        "x = x + sublayer(normed) * 0.5 if self.training else x\n        return x + self.drops[i](sublayer(normed))",
        "each_branch_once",
    ),
    (
        "own_placement", "backwards in training", "for i, sublayer in enumerate(sublayers):",
        "for i, sublayer in list(enumerate(sublayers))[:: -1 if self.training else 1]:", "each_branch_once",
    ),
    (
        "own_placement", "the rate that nothing uses", "F.dropout(branch, self.rate) if self.rate else branch", "branch",
        "dropout",
    ),
    (
        "alibi", "later keys the louder the farther", ".abs().unsqueeze(1)", ".unsqueeze(1)", "nearness",
    ),
    (
        "learned", "a table that ends at 32", "positions.clip(0, last)", "positions.clip(0, 31)", "rows_reached",
    ),
    (
        "learned", "positions that wrap at 64", "positions.clip(0, last)", "positions.clip(0, last) % 64",
        "positions_differ",
    ),
    (
        "schedule", "nothing for 99 steps, then everything",
        "return 1e-3 * min(step / self.warmup, (self.warmup / step) ** 0.5)",
        "return 1e-3 * (self.warmup / step) ** 0.5 if step >= self.warmup else 1e-30", "rates",
    ),
    (
        "feed_forward/mixture_of_experts", "a router behind the limit that excuses experts",
        "p = affinities(tokens, self.router, F.softmax)", "p = affinities(tokens, self.router, F.softmax).detach()", "trains",
    ),
    (
        "transformer", "one object for all layers", "[Layer(d_model, num_heads, d_ff, dropout, True) for _ in range(num_layers)]",
        "[Layer(d_model, num_heads, d_ff, dropout, True)] * num_layers", "registered",
    ),
    (
        "transformer", "a causal mask of 32",
        "past = paddle.tril(paddle.ones([tgt.shape[1], tgt.shape[1]])).astype(\"bool\")",
        "past = paddle.ones([tgt.shape[1], tgt.shape[1]])\n        past[:32, :32] = "
            "paddle.tril(past[:32, :32])\n        past = past.astype(\"bool\")",
        "causal",
    ),
]  # fmt: skip

# (twin, what is other, the changes)
VARIANTS = [
    (
        "attention", "a dropout rate of its own",
        (("num_heads: int, dropout: float):", "num_heads: int):"), ("Dropout(dropout)", "Dropout(0.1)")),
    ),
    (
        "attention", "a window of one token on either side",
        (
            ("dropout: float):", "dropout: float, site):"),
            ("        super().__init__()", "        super().__init__()\n        self.near = site.sublayer == 'self'"),
            ("def forward(self, x, kv, info, mask, tap):",
             "def forward(self, x, kv, info, mask, tap):\n"
             "        mask = mask.restricted(('near', 1), lambda q, k: (q - k).abs() <= 1) if self.near else mask"),
        ),
    ),
    (
        "attention", "a norm on the context",
        (
            ("context = context if relative is None else context + relative",
             "context = context if relative is None else context + relative\n"
             "        context = context * paddle.rsqrt((context * context).mean(-1, keepdim=True) + 1e-6)"),
            ("    supports = ", "    expected_failures = {'values': 'the context is normalized'}\n    supports = "),
        ),
    ),
    (
        "alibi", "the neighbours only",
        (("distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs().unsqueeze(1)",
          "distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs().clip(max=2).unsqueeze(1)"),),
    ),
    ("ordinary_position", "a short table of its own", (("max_len=200", "max_len=50"),)),
    ("ordinary_position", "tokens times sqrt(d_model), as some tutorials have it in this layer",
     (("return x + self.table", "return x * x.shape[-1] ** 0.5 + self.table"),)),
    (
        "ordinary_attention", "cosines times a trained scale of each head [1, 1, 1]",
        (
            ("        self.d_k = d_k", "        self.scale = self.create_parameter([1, 1, 1], "
                "default_initializer=nn.initializer.Constant(math.log(4.0)))"),
            ("paddle.matmul(q, k, transpose_y=True) / math.sqrt(self.d_k)",
             "paddle.matmul(F.normalize(q, axis=-1), F.normalize(k, axis=-1), transpose_y=True) * self.scale.exp()"),
        ),
    ),
    (
        "layer_norm", "its output is kept for a plot",
        (("        centred = x - x", "        self.seen = x\n        centred = x - x"),),
    ),
    (
        "ordinary_attention", "The Annotated Transformer's weights, kept for a plot",
        (("        self.d_k = d_k", "        self.d_k, self.attn = d_k, None"),
         ("        return paddle.matmul(F.softmax(scores, -1), v)",
          "        self.attn = F.softmax(scores, -1)\n        return paddle.matmul(self.attn, v)")),
    ),
    (
        "ordinary_attention", "lengths for a mask, and names of sizes, as d2l.ai has them",
        (("query, key, value, mask):\n        q =", "query, key, value, valid_lens):\n        q ="),
         ("        scores = paddle.where(mask, ",
          "        mask = paddle.arange(scores.shape[-1]) < valid_lens.unsqueeze(-1)\n        scores = paddle.where(mask, "),
         ("def __init__(self, d_model, num_heads):", "def __init__(self, num_hiddens, num_heads):"),
         ("        heads = [", "        d_model = num_hiddens\n        heads = ["),
         ("query, key, value, mask):\n        found", "query, key, value, valid_lens):\n        found"),
         ("head(query, key, value, mask)", "head(query, key, value, valid_lens)")),
    ),
    (
        "ordinary_attention", "input_Q, input_K, input_V, as in wmathor's tutorial",
        (("query, key, value, mask):\n        found", "input_Q, input_K, input_V, attn_mask):\n        found"),
         ("head(query, key, value, mask)", "head(input_Q, input_K, input_V, attn_mask)")),
    ),
    (
        "ordinary_attention", "a bias for each distance inside, other ones before than after, as T5's",
        (("        self.query = nn.Linear", "        self.bias = self.create_parameter([7])\n        self.query = nn.Linear"),
         ("        scores = paddle.where(mask, ",
          "        places = paddle.arange(scores.shape[-1])\n"
          "        places = paddle.clip(places - paddle.arange(scores.shape[-2]).unsqueeze(1), -3, 3) + 3\n"
          "        scores = scores + self.bias[places]\n        scores = paddle.where(mask, ")),
    ),
    (
        "ordinary_attention", "no token sees a later one, whatever the mask, as in GPT-J's code",
        (("query, key, value, mask):\n        found = []",
          "hidden_states, attention_mask=None):\n        length = hidden_states.shape[1]\n"
          "        mask = paddle.tril(paddle.ones([length, length], 'bool'))\n"
          "        mask = mask if attention_mask is None else mask & attention_mask\n        found = []"),
         ("head(query, key, value, mask)", "head(hidden_states, hidden_states, hidden_states, mask)")),
    ),
    (
        "ordinary_feed_forward", "in_features and hidden_features, and GELU",
        (("dim, hidden_dim, multiple_of=256, dropout=0.0", "in_features, hidden_features, drop=0.0"),
         ("        hidden_dim = multiple_of * ((hidden_dim + multiple_of - 1) // multiple_of)\n",
          "        dim, hidden_dim, dropout = in_features, hidden_features, drop\n"),
         ("        hidden = gate * self.w3(x)", "        hidden = F.gelu(self.w3(x)) + 0.1 * gate")),
    ),
    (
        "ordinary_position", "fairseq's: ids, of which those of padding have no position",
        (("d_model, max_len=200", "embedding_dim, padding_idx, init_size=200"),
         ("        super().__init__()\n", "        super().__init__()\n        d_model, max_len, self.pad = embedding_dim, init_size + 1, padding_idx\n"),
         ("    def forward(self, x):", "    def forward(self, input):\n        real = (input != self.pad).astype('int64')\n"
          "        return F.embedding(paddle.cumsum(real, axis=1) * real + self.pad, self.table.astype(paddle.get_default_dtype()))\n\n    def unused(self, x):"),
         ("from paddle import nn\n", "import paddle.nn.functional as F\nfrom paddle import nn\n")),
    ),
    (
        "ordinary_norm", "a gain of float32, whatever the rest is",
        (("self.gain = self.create_parameter([d_model], default", "self.gain = self.create_parameter([d_model], dtype='float32', default"),),
    ),
    (
        "ordinary_attention", "forward(x, context, mask), and F.dropout at a rate of its own",
        (("query, key, value, mask):\n        q =", "x, context, mask):\n        query, key, value = x, context, context\n        q ="),
         ("query, key, value, mask):\n        found", "x, context, mask):\n        found"),
         ("head(query, key, value, mask)", "head(x, context, mask)"),
         ("F.softmax(scores, -1), v)", "F.dropout(F.softmax(scores, -1), 0.1, training=self.training), v)")),
    ),
    (
        "ordinary_position", "ids, of which it asks how many they are, as hyunwoongko's has them",
        (("return x + self.table[: x.shape[1]].astype(x.dtype)",
          "rows, length = x.shape\n        return self.table[:length].astype(paddle.get_default_dtype())"),),
    ),
    (
        "ordinary_position", "nn.Dropout at a rate of its own, as in minGPT",
        (("        self.register_buffer", "        self.drop = nn.Dropout(0.1)\n        self.register_buffer"),
         ("return x + self.table[: x.shape[1]].astype(x.dtype)",
          "return self.drop(x + self.table[: x.shape[1]].astype(x.dtype))")),
    ),
    (
        "transformer", "its last matrix begins at zero, and F.dropout has a rate of its own",
        (("tgt_vocab_size, weight_attr=normal)\n\n", "tgt_vocab_size, weight_attr=nn.initializer.Constant(0.0))\n\n"),
         ("F.dropout(branch, self.rate, training", "F.dropout(branch, 0.1, training"),
         (", d_ff, dropout=0.1, pad_idx=0)", ", d_ff, pad_idx=0)"),
         ("        self.d_model, self.pad_idx", "        dropout = 0.1\n        self.d_model, self.pad_idx")),
    ),
    (
        "transformer", "gates that begin shut, as ReZero's",
        (("        self.rate = dropout", "        self.gate, self.rate = self.create_parameter([1], is_bias=True), dropout"),
         ("return norm(x + F.dropout(branch, self.rate, training=self.training))",
          "return x + self.gate * F.dropout(norm(branch), self.rate, training=self.training)")),
    ),
    (
        "transformer", "a causal mask that is kept, and logits [B · T, V]",
        (("past = past.unsqueeze", "self.past = past\n        past = past.unsqueeze"),
         ("return self.output(y)", "return self.output(y).flatten(0, 1)")),
    ),
    (
        "transformer", "an output matrix of variance 1.3 / width",
        (("tgt_vocab_size, weight_attr=normal)\n\n", "tgt_vocab_size, weight_attr=nn.initializer.Normal(0.0, 0.2))\n\n"),),
    ),
    (
        "ordinary_position", "Hugging Face's name of the length, and a norm of the sum",
        (("max_len=200", "max_position_embeddings"), ("max_len)", "max_position_embeddings)"),
         ("zeros([max_len,", "zeros([max_position_embeddings,"),
         ("return x + self.table[: x.shape[1]].astype(x.dtype)",
          "return nn.functional.layer_norm(x + self.table[: x.shape[1]].astype(x.dtype), x.shape[-1:])")),
    ),
]  # fmt: skip
