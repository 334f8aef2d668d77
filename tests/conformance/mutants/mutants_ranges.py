"""Bugs that show only out of the usual range: in long texts, far from the beginning, with many heads, under dropout, after a
step too far or a resumed run."""

_SCALE = "scores = scores / math.sqrt(self.head_dim)"
_WEIGHTS = "weights = F.softmax(scores + mask.dense(scores.dtype), -1)"
_SLOPES = """slopes.astype(paddle.get_default_dtype()), persistable=False){more}

    def bias(self, q_positions, k_positions):
        distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs().unsqueeze(1)
        return -{term} * self"""
_SUM = """        self.rate = dropout{more}

    def forward(self, x, sublayers, info):
        for i, sublayer in enumerate(sublayers):
            branch = sublayer(self.norms[i](x, info.valid, info.positions))
            if self.training:
                branch = F.dropout(branch, self.rate) if self.rate else branch
            x = x + branch{scale}"""
_CONTEXT = "context = paddle.matmul(weights, kv.value)"

# (twin, what is wrong, the lines as they are, the lines broken, the check that must fail)
RANGES = [
    (
        "attention", "blocks of 64 keys, each with a maximum of its own", _WEIGHTS,
        "parts = [(scores + mask.dense(scores.dtype))[..., i : i + 64] for i in range(0, scores.shape[-1], 64)]\n"
            "        parts = [paddle.exp(part - part.max(-1, keepdim=True)) for part in parts]\n"
            "        weights = paddle.concat(parts, -1) / sum(part.sum(-1, keepdim=True) for part in parts)",
        "bidirectional",
    ),
    (
        "attention", "a sum of the first 128 keys' weights", _WEIGHTS,
        "weights = paddle.exp(F.log_softmax(scores + mask.dense(scores.dtype), -1))\n"
            "        weights = weights / weights[..., :128].sum(-1, keepdim=True)",
        "averages",
    ),
    ("attention", "scores divided by sqrt(d_model)", _SCALE, "scores = scores / math.sqrt(self.d_model)", "temperature"),
    ("attention", "scores divided by the number of heads too", _SCALE,
     "scores = scores / math.sqrt(self.head_dim) / self.heads", "temperature"),
    (
        "attention", "dropout on the scores", f"{_WEIGHTS}\n        weights = self.dropout(weights)",
        f"scores = self.dropout(scores)\n        {_WEIGHTS}", "dropped_weights",
    ),
    (
        "attention", "one token sees padding", _WEIGHTS,
        "hidden = mask.dense(scores.dtype) if x.shape[1] > 1 else mask.dense(scores.dtype) * 0.0\n"
            "        weights = F.softmax(scores + hidden, -1)",
        "cached",
    ),
    (
        "attention", "the mask of the first batch of a shape", _WEIGHTS,
        "kept = self.__dict__.setdefault('kept', {})\n"
            "        mask_there = kept.setdefault(tuple(scores.shape), mask.dense(scores.dtype))\n"
            "        weights = F.softmax(scores + mask_there, -1)",
        "stateless",
    ),
    (
        "attention", "a gate that is made in forward", _CONTEXT,
        "self.gate = self.gate if hasattr(self, 'gate') else self.create_parameter([self.heads, 1, 1])\n"
            "        context = paddle.matmul(weights, kv.value) * (1.0 + self.gate)",
        "registered",
    ),
    (
        "feed_forward", "nothing of the 129th token and those behind it", "return self.layers[1](hidden)",
        "behind = max(0, hidden.shape[1] - 128)\n"
            "        return self.layers[1](F.pad(hidden[:, :128], [0, 0, 0, behind, 0, 0]))",
        "position_wise",
    ),
    (
        "alibi", "a rate that is trained, in a logarithm", _SLOPES.format(more="", term="distance.astype(self.slopes.dtype)"),
        _SLOPES.format(
            more="\n        self.rate = self.create_parameter([1], default_initializer=paddle.nn.initializer.Constant(0.5))",
            term="paddle.log1p(self.rate * distance.astype(self.slopes.dtype))",
        ),
        "any_sign",
    ),
    ("rotary", "positions in bfloat16", "positions.unsqueeze(-1).astype(\"float64\")",
     "positions.unsqueeze(-1).astype(\"bfloat16\").astype(\"float64\")", "far_positions"),
    ("alibi", "positions in bfloat16", "distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1))",
     "q_positions, k_positions = (each.astype('bfloat16').astype('int64') for each in (q_positions, k_positions))\n"
     "        distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1))", "far_positions"),
    ("sinusoidal", "positions in bfloat16", "positions.unsqueeze(-1)", "positions.astype('bfloat16').unsqueeze(-1)",
     "far_positions"),
    (
        "position/t5", "buckets of both directions where one is seen",
        "per_direction = buckets if site.causal else buckets // 2", "per_direction = buckets // 2", "rows_reached",
    ),
    ("layer_norm", "a variance of two means", "variance = (centred * centred).mean(-1, keepdim=True)",
     "variance = ((x * x).mean(-1, keepdim=True) - x.mean(-1, keepdim=True) ** 2).clip(min=0.0)", "digits"),
    ("batch_norm", "a variance of two means", "variance = (((x - mean) ** 2) * real).sum([0, 1]) / count",
     "variance = ((x * x * real).sum([0, 1]) / count - mean * mean).clip(min=0.0)", "digits"),
    (
        "batch_norm", "a count of batches that no checkpoint holds",
        "        self.mean.set_value(self.mean + self.momentum * (mean - self.mean))",
        "        self.count = getattr(self, 'count', 0) + 1\n"
            "        self.mean.set_value(self.mean + max(self.momentum, 1 / self.count) * (mean - self.mean))",
        "resumed",
    ),
    (
        "own_placement", "a table of scales that the initializer draws again", _SUM.format(more="", scale=""),
        _SUM.format(
            more="\n        self.scales = self.create_parameter([3, d_model], default_initializer=nn.initializer.Constant(0.1))",
            scale=" * self.scales[i]",
        ),
        "own_start",
    ),
    ("transformer", "the encoder's output kept by the shape", "        for layer in self.encoder:\n            x = layer(x, real)",
     "        for layer in self.encoder:\n            x = layer(x, real)\n"
     "        x = x if self.training else self.__dict__.setdefault('kept', {}).setdefault(tuple(src.shape), x)", "stateless"),
    (
        "attention", "sentences from the 17th on under the masks of the first", _WEIGHTS,
        "hidden = mask.dense(scores.dtype)\n"
            "        weights = paddle.concat([F.softmax(part + hidden[: part.shape[0]], -1) for part in scores.split("
            "[min(16, scores.shape[0] - i) for i in range(0, scores.shape[0], 16)])])",
        "neighbours",
    ),
    (
        "feed_forward", "the tokens of a batch after the 200th have no room", "return self.layers[1](hidden)",
        "room = paddle.arange(x.shape[0] * x.shape[1]).reshape(x.shape[:2]) < 200\n"
        "        return self.layers[1](hidden) * room.astype(x.dtype).unsqueeze(-1)",
        "neighbours",
    ),
    (
        "placement/pre", "a branch that is too large is scaled down by sizes of the whole text",
        "return x + self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))",
        "branch = sublayer(self.norms[i](x, info.valid, info.positions))\n"
        "        sizes = [(each * each).mean([1, 2], keepdim=True).sqrt() for each in (x, branch)]\n"
        "        return x + self.drops[i](branch * (5 * sizes[0] / (sizes[1] + 1e-12)).clip(max=1.0).detach())",
        "other_sizes",
    ),
    (
        "position/sinusoidal", "a table of 2,048 rows, read from its beginning again",
        "self.sinusoid.waves(positions, x)", "self.sinusoid.waves(positions % 2048, x)", "far_positions",
    ),
    (
        "position/shaw", "the distances of the first sentence for all",
        "distance = k_positions.unsqueeze(1) - q_positions.unsqueeze(2)",
        "distance = k_positions[:1].unsqueeze(1) - q_positions[:1].unsqueeze(2)", "pure",
    ),
    (
        "rotary", "beyond position 200 the base grows with the longest text of the call",
        "angle = (positions.unsqueeze(-1).astype(\"float64\") * self.rates).unsqueeze(1)",
        "rates = self.rates / max(1.0, float(positions.max()) / 200)\n"
        "        angle = (positions.unsqueeze(-1).astype(\"float64\") * rates).unsqueeze(1)",
        "pure",
    ),
    (
        "feed_forward", "large numbers are clipped in place where nothing is differentiated",
        "hidden = F.relu(self.layers[0](x))",
        "x = x.clip(-4.0, 4.0) if paddle.is_grad_enabled() else x.clip_(-4.0, 4.0)\n"
        "        hidden = F.relu(self.layers[0](x))",
        "inputs_unchanged",
    ),
    (
        "head", "no loss after the 48th token",
        "return -(1.0 - smoothing) * picked - smoothing * spread",
        "return (-(1.0 - smoothing) * picked - smoothing * spread) * (paddle.arange(h.shape[1]) < 48).astype(h.dtype)",
        "loss_is_log_prob",
    ),
    (
        "optimizer", "weights decay by the largest rate so far",
        "            parameter.set_value(parameter - self.get_lr() * change)",
        "            self.largest = max(self.get_lr(), getattr(self, 'largest', 0.0))\n"
        "            shrunk = self.largest * self.decay * parameter * float(is_decayed(parameter))\n"
        "            parameter.set_value(parameter - self.get_lr() * moment - shrunk)",
        "falls_to_zero",
    ),
    (
        "attention", "a gain that starts at one, behind the rotation",
        "q = info.encoding.query(self.split(self.query(x)), info.positions)",
        "q = info.encoding.query(self.split(self.query(x)), info.positions)\n"
        "        q = q * (1.0 + self.output.bias.reshape([1, self.heads, 1, self.head_dim]))",
        "supported_hooks",
    ),
    (
        "norm/batch_per_position", "the positions of the first sentence for all", "positions.clip(0, last)",
        "positions[:1].clip(0, last)", "own_positions",
    ),
    ("optimizer/lion", "a decay that is off by default does not go by the rate", "decay_weights(parameter, rate, self.weight_decay)",
     "decay_weights(parameter, 1.0, self.weight_decay)", "follows_the_rate"),
    ("attention/multihead", "a norm inside that is not told what is padding",
     "self.inner_norm(context, info.valid, info.positions)", "self.inner_norm(context)", "norms_inside"),
    ("norm/rms", "all tokens divided by the largest channel of the batch, lest a square overflow",
     "rows = algebra.flatten(x, self.weight.dtype)",
     "rows = algebra.flatten(x, self.weight.dtype)\n        rows = rows / rows.detach().abs().max().clip(min=1e-6)",
     "loud_neighbour"),
]  # fmt: skip
