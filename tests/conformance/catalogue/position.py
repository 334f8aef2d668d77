"""Wrong and right encodings of positions."""

from catalogue.rounding import through

_ANGLE = 'angle = positions.unsqueeze(-1).astype("float64") * self.rates'
_SLOPES = """slopes.astype(paddle.get_default_dtype()), persistable=False){more}

    def bias(self, q_positions, k_positions):
        distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs().unsqueeze(1)
        return -{term} * self"""
_TURN = 'angle = (positions.unsqueeze(-1).astype("float64") * self.rates).unsqueeze(1)'


WRONG = {
    "ordinary_position": [
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
        ("positions from 512 on are one", "position = paddle.arange(max_len)",
         "position = paddle.arange(max_len).clip(max=511)", "far_positions"),
    ],
    "sinusoidal": [
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
        ("one vector for the first position and one for the others", "angle = positions.unsqueeze(-1)",
         "angle = positions.clip(max=1).unsqueeze(-1)", "order_matters"),
        ("positions from 512 on are one", "angle = positions.unsqueeze(-1)",
         "angle = positions.clip(max=511).unsqueeze(-1)", "far_positions"),
        ("positions from 256 on stand in one place", "    def embed(self, x, positions):",
         "    def remap(self, positions, draw):\n        return positions.clip(max=255)\n\n    def embed(self, x, positions):",
         "far_positions"),
        ("embeddings in bfloat16", "return x + added", f"return {through('bfloat16', 'x')} + added", "smooth"),
        ("positions in bfloat16", "positions.unsqueeze(-1)", "positions.astype('bfloat16').unsqueeze(-1)",
         "far_positions"),
        ("angles in float16", _ANGLE, _ANGLE + "\n        angle = angle.astype('float16').astype('float64')",
         "far_positions"),
    ],
    "learned": [
        ("no end of the table", "positions.clip(0, last)", "positions", "beyond_length"),
        (
            "a table that is no parameter", "self.table = self.create_parameter([max_length, d_model])",
            "self.table = self.create_parameter([max_length, d_model]).detach().clone()", "saved",
        ),
        (
            "indexed from the end of the text", "positions.clip(0, last)",
            "(positions.max() - positions).clip(0, last)", "pure",
        ),
        (
            "a table that ends at 32", "positions.clip(0, last)", "positions.clip(0, 31)", "rows_reached",
        ),
        (
            "positions that wrap at 64", "positions.clip(0, last)", "positions.clip(0, last) % 64",
            "positions_differ",
        ),
        (
            "a table that the class keeps for all models",
            "    def __init__(self, d_model: int, max_length: int):\n        super().__init__()\n"
                "        self.table = self.create_parameter([max_length, d_model])",
            "    def __init__(self, d_model: int, max_length: int, site):\n        super().__init__()\n"
                "        type(self).kept = kept = getattr(type(self), 'kept', {})\n"
                "        self.table = kept.setdefault((str(site), d_model), self.create_parameter([max_length, d_model]))",
            "registered",
        ),
        ("a table of 128 rows at most", "[max_length, d_model]", "[min(128, max_length), d_model]",
         "far_positions"),
        ("a table in float16", "self.table)", f"{through('float16', 'self.table')})", "smooth"),
        ("a shift by Python's own hash", "positions.clip(0, last)", "(positions + hash('shift') % 7).clip(0, last)",
         "repeatable"),
    ],
    "rotary": [
        (
            "by the tensor's length", "angle = (positions.unsqueeze(-1)",
            "angle = (paddle.arange(x.shape[2]).unsqueeze([0, -1])", "pure",
        ),
        ("keys turned the other way", "return self.turn(k, positions)", "return self.turn(k, -positions)", "relative"),
        ("keys not turned", "return self.turn(k, positions)", "return k", "relative"),
        ("a reflection instead of a rotation", "a * sin + b * cos], -1)", "a * sin - b * cos], -1)", "relative"),
        ("the first sentence's positions for all", "angle = (positions.unsqueeze(-1)",
         "angle = (positions[:1].unsqueeze(-1)", "pure"),
        ("positions from 1,024 on are one", "angle = (positions.unsqueeze(-1)",
         "angle = (positions.clip(max=1023).unsqueeze(-1)", "far_positions"),
        ("turned in float16", "a, b = x[..., 0::2], x[..., 1::2]",
         f"a, b = {through('float16', 'x')}[..., 0::2], x[..., 1::2]", "smooth"),
        ("positions in bfloat16", "positions.unsqueeze(-1).astype(\"float64\")",
         "positions.unsqueeze(-1).astype(\"bfloat16\").astype(\"float64\")", "far_positions"),
        (
            "beyond position 200 the base grows with the longest text of the call",
            "angle = (positions.unsqueeze(-1).astype(\"float64\") * self.rates).unsqueeze(1)",
            "rates = self.rates / max(1.0, float(positions.max()) / 200)\n"
            "        angle = (positions.unsqueeze(-1).astype(\"float64\") * rates).unsqueeze(1)",
            "pure",
        ),
        ("angles in float16", _TURN, _TURN.replace("* self.rates)", "* self.rates).astype('float16').astype('float64')"),
         "far_positions"),
        ("rates in float16", _TURN, _TURN.replace("self.rates", "self.rates.astype('float16').astype('float64')")
         .replace("unsqueeze(1)", "astype('float16').astype('float64').unsqueeze(1)"), "far_positions"),
    ],
    "alibi": [
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
        (
            "later keys the louder the farther", ".abs().unsqueeze(1)", ".unsqueeze(1)", "nearness",
        ),
        ("positions from 256 on are one", "(q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs()",
         "(q_positions.clip(max=255).unsqueeze(2) - k_positions.clip(max=255).unsqueeze(1)).abs()", "far_positions"),
        (
            "a rate that is trained, in a logarithm", _SLOPES.format(more="", term="distance.astype(self.slopes.dtype)"),
            _SLOPES.format(
                more="\n        self.rate = self.create_parameter([1], default_initializer=paddle.nn.initializer.Constant(0.5))",
                term="paddle.log1p(self.rate * distance.astype(self.slopes.dtype))",
            ),
            "any_sign",
        ),
        ("positions in bfloat16", "distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1))",
         "q_positions, k_positions = (each.astype('bfloat16').astype('int64') for each in (q_positions, k_positions))\n"
         "        distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1))", "far_positions"),
    ],
    "position/t5": [
        (
            "bidirectional buckets forget the offset of the second direction",
            'np.zeros_like(index) if site.causal else per_direction + index',
            'np.zeros_like(index) if site.causal else index',
            "rows_reached",
        ),
        (
            "buckets of both directions where one is seen",
            "per_direction = buckets if site.causal else buckets // 2", "per_direction = buckets // 2", "rows_reached",
        ),
    ],
    "position/xpos": [
        (
            "keys are scaled like queries instead of inversely",
            'return self._turn(k, positions, -1)',
            'return self._turn(k, positions, 1)',
            "relative",
        ),
    ],
    "position/randomized": [
        (
            "drawn positions are not sorted",
            'remapped = np.sort(draw().choice(max(self.longest, count), count, replace=False))',
            'remapped = draw().choice(max(self.longest, count), count, replace=False)',
            "in_order",
        ),
    ],
    "position/chain": [
        ("positions twice as far apart in training", "x = part.embed(x, positions)",
         "x = part.embed(x, positions * (2 if self.training else 1))", "modes"),
    ],
    "position/nope_hybrid": [
        ("shorter queries in training", "return self.encoding.query(q, positions)",
         "return self.encoding.query(q, positions) * (0.5 if self.training else 1.0)", "modes"),
    ],
    "position/learned": [
        ("the table begins again behind its end", "positions.clip(0, self.weight.shape[0] - 1)",
         "(positions % self.weight.shape[0])", "beyond_length"),
    ],
    "position/sinusoidal": [
        (
            "a table of 2,048 rows, read from its beginning again",
            "self.sinusoid.waves(positions, x)", "self.sinusoid.waves(positions % 2048, x)", "far_positions",
        ),
    ],
    "position/shaw": [
        (
            "the distances of the first sentence for all",
            "distance = k_positions.unsqueeze(1) - q_positions.unsqueeze(2)",
            "distance = k_positions[:1].unsqueeze(1) - q_positions[:1].unsqueeze(2)", "pure",
        ),
    ],
    "position_variants:SinesThenCosines": [
        ("positions of the whole batch are those of the first sentence and the newest row",
         'angle = positions.unsqueeze(-1).astype("float32") * self.rates\n        return x +',
         'positions = paddle.arange(x.shape[1]).unsqueeze(0)\n        angle = positions.unsqueeze(-1).astype("float32") * self.rates\n        return x +',
         "cached"),
    ],
    "position_variants:LogDistance": [
        ("the distance is not absolute: the logarithm of negative numbers",
         'k_positions).abs().astype("float32").unsqueeze(1)\n        return -F.softplus',
         'k_positions).astype("float32").unsqueeze(1)\n        return -F.softplus', "learns"),
        ("all heads share the first head's rate", "return -F.softplus(self.r1) *",
         "return -F.softplus(self.r1[:1]) *", "trains"),
    ],
    "position_variants:NearOnly": [
        ("the index runs out of the table on one side: clipped at 0 … 8 without the offset", ".clip(-4, 4) + 4",
         ".clip(0, 8)", "order_matters"),
    ],
    "position_variants:KeyedByDistance": [
        ("the table is indexed by the key's place",
         "index = (distance(q_positions, k_positions).clip(-8, 8) + 8).unsqueeze(1)",
         "index = (k_positions.unsqueeze(1) + q_positions.unsqueeze(2) * 0).clip(0, 16).unsqueeze(1)",
         "positions_differ"),
        ("clipped at 4 in place of 8", ".clip(-8, 8) + 8", ".clip(-4, 4) + 8", "rows_reached"),
    ],
    "position_variants:Interpolated": [
        ("the outer layer in a tuple", "self.inner, self.outer = Linear(1, 16), Linear(16, num_heads)",
         "self.parts = (Linear(1, 16), Linear(16, num_heads))\n        object.__setattr__(self, 'inner', self.parts[0])\n        object.__setattr__(self, 'outer', self.parts[1])",
         "registered"),
    ],
    "position_variants:Ramp": [
        ("log(p) is minus infinity at the first position", 'paddle.log1p(positions.astype("float32"))',
         'paddle.log(positions.astype("float32"))', "learns"),
    ],
}  # fmt: skip

UNREAD = {
    "position/t5": [
        ("a last bucket of its own, under another name", "self.max_distance, self.causal = max_distance, site.causal",
         "max_distance = 128\n        self.max_distance, self.causal = max_distance, site.causal", "max_distance"),
    ],
}  # fmt: skip

RIGHT = {
    "alibi": [
        (
            "the neighbours only",
            (("distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs().unsqueeze(1)",
              "distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs().clip(max=2).unsqueeze(1)"),),
        ),
        (
            "far words only",
            (("distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs().unsqueeze(1)",
              "distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs().clip(min=6).unsqueeze(1)"),),
        ),
        (
            "the fourth word to either side only",
            (("distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs().unsqueeze(1)",
              "distance = ((q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs() == 4).unsqueeze(1)"),),
        ),
    ],
    "ordinary_position": [
        ("a short table of its own", (("max_len=200", "max_len=50"),)),
        ("tokens times sqrt(d_model), as some tutorials have it in this layer",
         (("return x + self.table", "return x * x.shape[-1] ** 0.5 + self.table"),)),
        (
            "fairseq's: ids, of which those of padding have no position",
            (("d_model, max_len=200", "embedding_dim, padding_idx, init_size=200"),
             ("        super().__init__()\n", "        super().__init__()\n        d_model, max_len, self.pad = embedding_dim, init_size + 1, padding_idx\n"),
             ("    def forward(self, x):", "    def forward(self, input):\n        real = (input != self.pad).astype('int64')\n"
              "        return F.embedding(paddle.cumsum(real, axis=1) * real + self.pad, self.table.astype(paddle.get_default_dtype()))\n\n    def unused(self, x):"),
             ("from paddle import nn\n", "import paddle.nn.functional as F\nfrom paddle import nn\n")),
        ),
        (
            "ids, of which it asks how many they are, as hyunwoongko's has them",
            (("return x + self.table[: x.shape[1]].astype(x.dtype)",
              "rows, length = x.shape\n        return self.table[:length].astype(paddle.get_default_dtype())"),),
        ),
        (
            "nn.Dropout at a rate of its own, as in minGPT",
            (("        self.register_buffer", "        self.drop = nn.Dropout(0.1)\n        self.register_buffer"),
             ("return x + self.table[: x.shape[1]].astype(x.dtype)",
              "return self.drop(x + self.table[: x.shape[1]].astype(x.dtype))")),
        ),
        (
            "Hugging Face's name of the length, and a norm of the sum",
            (("max_len=200", "max_position_embeddings"), ("max_len)", "max_position_embeddings)"),
             ("zeros([max_len,", "zeros([max_position_embeddings,"),
             ("return x + self.table[: x.shape[1]].astype(x.dtype)",
              "return nn.functional.layer_norm(x + self.table[: x.shape[1]].astype(x.dtype), x.shape[-1:])")),
        ),
    ],
}  # fmt: skip
