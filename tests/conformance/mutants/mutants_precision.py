"""Components that go to half precision inside and back, right ones that go in steps now and then, and options that are
stored and not read."""

_WEIGHTS = "weights = F.softmax(scores + mask.dense(scores.dtype), -1)"
_NOTHING = "weights = self.dropout(weights)"


def _through(dtype: str, value: str) -> str:
    return f"{value}.astype('{dtype}').astype({value}.dtype)"


# (twin, what is wrong, the lines as they are, the lines broken, the check that must fail)
HALF_PRECISION = [
    ("attention", "weights in float16", _NOTHING, f"weights = self.dropout({_through('float16', 'weights')})", "smooth"),
    ("attention", "weights in bfloat16", _NOTHING, f"weights = self.dropout({_through('bfloat16', 'weights')})", "smooth"),
    ("attention", "scores in float16", "scores = scores / math.sqrt(self.head_dim)",
     f"scores = {_through('float16', 'scores')} / math.sqrt(self.head_dim)", "smooth"),
    ("attention", "values cached in float16", "return Past(key, value)", f"return Past(key, {_through('float16', 'value')})",
     "smooth"),
    ("attention", "keys cached in bfloat16", "return Past(key, value)", f"return Past({_through('bfloat16', 'key')}, value)",
     "smooth"),
    ("attention", "the source in float16", "value = self.split(self.value(source))",
     f"value = self.split(self.value({_through('float16', 'source')}))", "smooth"),
    ("attention", "the output matrix in bfloat16", "return self.output(self.merge(context))",
     "weight = self.output.weight.astype('bfloat16').astype(context.dtype)\n"
     "        return F.linear(self.merge(context), weight, self.output.bias)", "smooth"),
    ("layer_norm", "the variance in float16", "variance = (centred * centred).mean(-1, keepdim=True)",
     "variance = (centred * centred).mean(-1, keepdim=True)\n"
     f"        variance = {_through('float16', 'variance')}", "smooth"),
    ("layer_norm", "all of it in bfloat16", "centred = x - x.mean(-1, keepdim=True)",
     f"x = {_through('bfloat16', 'x')}\n        centred = x - x.mean(-1, keepdim=True)", "smooth"),
    ("feed_forward", "hidden units in float16", "hidden = self.dropout(hidden)",
     f"hidden = self.dropout({_through('float16', 'hidden')})", "smooth"),
    ("feed_forward", "the input in bfloat16", "F.relu(self.layers[0](x))", f"F.relu(self.layers[0]({_through('bfloat16', 'x')}))",
     "smooth"),
    ("own_placement", "branches in float16", "            x = x + branch", f"            x = x + {_through('float16', 'branch')}",
     "smooth"),
    ("pre", "the residual in bfloat16", "return x + ", f"return {_through('bfloat16', 'x')} + ", "smooth"),
    ("rotary", "turned in float16", "a, b = x[..., 0::2], x[..., 1::2]",
     f"a, b = {_through('float16', 'x')}[..., 0::2], x[..., 1::2]", "smooth"),
    ("learned", "a table in float16", "self.table)", f"{_through('float16', 'self.table')})", "smooth"),
    ("sinusoidal", "embeddings in bfloat16", "return x + added", f"return {_through('bfloat16', 'x')} + added", "smooth"),
    ("head", "logits in float16", "logits = self.output(h)",
     f"logits = self.output(h)\n        logits = {_through('float16', 'logits')}", "smooth"),
    ("head", "the state in bfloat16", "logits = self.output(h)", f"logits = self.output({_through('bfloat16', 'h')})", "smooth"),
]  # fmt: skip

# (twin, what is other, the changes)
RARE_STEPS = [
    ("attention", "the two highest scores only", (
        (_WEIGHTS, "scores = scores + mask.dense(scores.dtype)\n"
         "        least = scores.topk(min(2, scores.shape[-1]), -1)[0][..., -1:]\n"
         "        weights = F.softmax(paddle.where(scores < least, scores - 1e9, scores), -1)"),
    )),
    ("attention", "scores in float32", (
        ("scores = scores / math.sqrt(self.head_dim)",
         f"scores = {_through('float32', 'scores')} / math.sqrt(self.head_dim)"),
    )),
    ("feed_forward", "units that are on or off", (
        ("hidden = self.dropout(hidden)", "hidden = self.dropout(hidden * (hidden > 0.3).astype(hidden.dtype))"),
    )),
    ("feed_forward", "units in the order of their size", (("F.relu(self.layers[0](x))", "F.relu(self.layers[0](x)).sort(-1)"),)),
    ("feed_forward", "units rounded to 15 steps, and it says so", (
        ("class Twin(FeedForward):", "class Twin(FeedForward):\n    expected_failures = {'smooth': 'units have 4 bits', "
         "'gradients': 'as if not rounded'}"),
        ("hidden = self.dropout(hidden)",
         "hidden = self.dropout(hidden + (((8 * hidden).round() / 8).clip(max=15 / 8) - hidden).detach())"),
    )),
]  # fmt: skip

# (twin, what is wrong, the lines as they are, the lines broken, the option that then changes nothing)
IDLE_OPTIONS = [
    ("layer_norm", "an epsilon of its own", "self.eps = eps", "self.eps = 1e-6", "eps"),
    ("schedule", "a warm-up of its own", "self.warmup, self.count = warmup, 0", "self.warmup, self.count = 100, 0", "warmup"),
    ("optimizer", "a decay of its own", "self.beta, self.decay = beta, decay\n\n    def create",
     "self.beta, self.decay = beta, 0.01\n\n    def create", "decay"),
    ("attention/local", "a window of its own", "self.window = window", "self.window = 16", "window"),
    ("feed_forward/mixture_of_experts", "a balance loss of its own", "self.top_k, self.balance_weight = top_k, balance_weight",
     "self.top_k, self.balance_weight = top_k, 0.01", "balance_weight"),
    ("feed_forward/mixture_of_experts", "no dropout inside", "bias=bias, inner_dropout=inner_dropout)", "bias=bias)",
     "inner_dropout"),
    ("norm/power", "a warm-up of its own", "self.warmup, self.eps = warmup, eps", "self.warmup, self.eps = 200, eps", "warmup"),
    ("position/t5", "a last bucket of its own, under another name", "self.max_distance, self.causal = max_distance, site.causal",
     "max_distance = 128\n        self.max_distance, self.causal = max_distance, site.causal", "max_distance"),
    ("initializer/normal", "a size of its own", "self.std = std", "self.std = 0.02", "std"),
    ("layer_norm", "an epsilon that is kept", "paddle.sqrt(variance + self.eps)", "paddle.sqrt(variance + 1e-6)", "eps"),
    ("layer_norm", "an epsilon that is only compared with zero, under another name", "    def forward(self, x, valid=None, positions=None):",
     "        self.eps = 1e-6 if eps > 0 else 1e-6\n\n    def forward(self, x, valid=None, positions=None):", "eps"),
    ("schedule", "a warm-up that only the next line knows", "self.warmup, self.count = warmup, 0",
     "self.asked = warmup\n        self.warmup, self.count = 100, 0", "warmup"),
]  # fmt: skip
