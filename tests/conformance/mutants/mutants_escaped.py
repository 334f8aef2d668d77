"""Bugs that a reader of papers may write and that escaped the kit, each found by an attack on one of its checks, and right
variants that it called wrong."""

_WEIGHTS = "weights = F.softmax(scores + mask.dense(scores.dtype), -1)"
_NORM = """        self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))
        self.bias = self.create_parameter([d_model], is_bias=True)

    def forward(self, x, valid=None, positions=None):
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        return centred / paddle.sqrt(variance + self.eps) * self.weight + """
_DENSE = "scores + mask.dense(scores.dtype)"
_LOSS = "return -(1.0 - smoothing) * picked - smoothing * spread"
_RATE = "        return 1e-3 * min(step / self.warmup, (self.warmup / step) ** 0.5)"

# (twin, what is wrong, the lines as they are, the lines broken, the check that must fail)
ESCAPED = [
    (
        "attention", "a maximum over hidden keys too", _WEIGHTS,
        "weights = paddle.exp(scores - scores.max(-1, keepdim=True)) * mask.allowed().astype(scores.dtype)\n"
            "        weights = weights / weights.sum(-1, keepdim=True).clip(min=1e-30)",
        "precision",
    ),
    ("attention", "hidden scores are lower by a hundred", _DENSE, "scores + mask.dense(scores.dtype).clip(min=-100.0)",
     "precision"),
    (
        "attention", "dropout without its factor", "weights = self.dropout(weights)",
        "weights = self.dropout(weights) * (1.0 - self.dropout.rate if self.training else 1.0)", "dropout",
    ),
    (
        "attention", "one draw of dropout for all sentences", "weights = self.dropout(weights)",
        "weights = weights * self.dropout(paddle.ones_like(weights[:1]))", "dropout",
    ),
    (
        "attention", "one head, whatever is asked for", "self.head_dim = d_model, num_heads, d_model // num_heads",
        "self.head_dim = d_model, 1, d_model", "heads_used",
    ),
    ("attention", "the bias is divided with the scores", _DENSE,
     "scores + mask.dense(scores.dtype) / math.sqrt(self.head_dim)", "hooks_in_place"),
    (
        "attention", "the encoding's scores after the division",
        "        scores = scores if relative is None else scores + relative\n"
            "        scores = scores / math.sqrt(self.head_dim)",
        "        scores = scores / math.sqrt(self.head_dim)\n"
            "        scores = scores if relative is None else scores + relative",
        "hooks_in_place",
    ),
    ("attention", "the mask of all layers changed in place", _DENSE, "mask.dense(scores.dtype).scale_(0.5) + scores",
     "inputs_unchanged"),
    (
        "feed_forward", "a width of its own", "layers = [Linear(d_model, d_ff), Linear(d_ff, d_model)]",
        "layers = [Linear(d_model, 4 * d_model), Linear(4 * d_model, d_model)]", "width",
    ),
    ("feed_forward", "GELU after the last matrix", "return self.layers[1](hidden)", "return F.gelu(self.layers[1](hidden))",
     "both_signs"),
    ("own_placement", "the residual of the first sublayer for all", "            x = x + branch\n        return x",
     "            first = first if i else x\n            x = first + branch\n        return x",
     "each_branch_once"),
    ("initializer", "values that depend on what was drawn before", "return np.float32(rng.normal",
     "rng = self.__dict__.setdefault('kept', rng)\n        return np.float32(rng.normal", "differing_values"),
    ("tokenizer", "texts are gone through twice", "self.words = sorted({word for text in texts for word in self.marked(text)})",
     "seen = {word for text in texts for word in self.marked(text)}\n"
     "        self.words = sorted({word for text in texts for word in self.marked(text)} & seen)", "same_pieces"),
    ("optimizer", "weights stay where they were evaluated", "class Twin(Optimizer):",
     "class Twin(Optimizer):\n    @__import__('contextlib').contextmanager\n    def evaluated(self, optimizer):\n"
     "        yield [p.set_value(0.9 * p) for p in optimizer._parameter_list]", "evaluated"),
    ("tokenizer", "words without their marks", 'return " ".join(text.replace("▁", "_").split())',
     'return " ".join("".join(c for c in __import__("unicodedata").normalize("NFD", text) if __import__("unicodedata")'
     '.category(c) != "Mn").replace("▁", "_").split())', "keeps_text"),
    (
        "feed_forward", "dropout without its factor", "hidden = self.dropout(hidden)",
        "hidden = self.dropout(hidden) * (1.0 - self.dropout.rate if self.training else 1.0)", "dropout",
    ),
    (
        "layer_norm", "not finite at padding, at the end of evaluation",
        "    def __init__(self, d_model: int, eps: float = 1e-6):\n        super().__init__()\n        self.eps = eps\n"
            + _NORM + "self.bias",
        "    def __init__(self, d_model: int, site, eps: float = 1e-6):\n        super().__init__()\n"
            "        self.eps, self.last = eps, (site.stack, site.sublayer) == ('decoder', 'final')\n"
            + _NORM + "self.bias + (0.0 / valid.astype(x.dtype).unsqueeze(-1) if self.last and not self.training and "
            "valid is not None else 0.0)",
        "masked_rows",
    ),
    ("batch_norm", "padding in the running mean", "self.remember(mean.detach(), variance.detach())",
     "self.remember(x.mean([0, 1]).detach(), variance.detach())", "padding_in_training"),
    ("batch_norm", "the running mean is one of all tokens", "self.remember(mean.detach(), variance.detach())",
     "self.remember((mean + (x.mean([0, 1]) - mean)).detach(), variance.detach())", "running_statistics"),
    ("own_placement", "dropout without its factor", "F.dropout(branch, self.rate)",
     "F.dropout(branch, self.rate, mode='downscale_in_infer')", "branch_dropout"),
    (
        "pre", "validity and positions exchanged", "self.norms[i](x, info.valid, info.positions)",
        "self.norms[i](x, info.positions, info.valid)", "norm_arguments",
    ),
    ("rotary", "the first sentence's positions for all", "angle = (positions.unsqueeze(-1)",
     "angle = (positions[:1].unsqueeze(-1)", "pure"),
    ("sinusoidal", "one vector for the first position and one for the others", "angle = positions.unsqueeze(-1)",
     "angle = positions.clip(max=1).unsqueeze(-1)", "order_matters"),
    (
        "learned", "a table that the class keeps for all models",
        "    def __init__(self, d_model: int, max_length: int):\n        super().__init__()\n"
            "        self.table = self.create_parameter([max_length, d_model])",
        "    def __init__(self, d_model: int, max_length: int, site):\n        super().__init__()\n"
            "        type(self).kept = kept = getattr(type(self), 'kept', {})\n"
            "        self.table = kept.setdefault((str(site), d_model), self.create_parameter([max_length, d_model]))",
        "registered",
    ),
    ("position/chain", "positions twice as far apart in training", "x = part.embed(x, positions)",
     "x = part.embed(x, positions * (2 if self.training else 1))", "modes"),
    ("position/nope_hybrid", "shorter queries in training", "return self.encoding.query(q, positions)",
     "return self.encoding.query(q, positions) * (0.5 if self.training else 1.0)", "modes"),
    ("head", "smoothed in training without being asked", "log_probs = self.log_probs(h, memory)",
     "log_probs, smoothing = self.log_probs(h, memory), smoothing or 0.1 * self.training", "loss_is_log_prob"),
    ("head", "the end token costs nothing", _LOSS,
     "return (-(1.0 - smoothing) * picked - smoothing * spread) * (target != 2).astype(picked.dtype)", "loss_is_log_prob"),
    (
        "head", "a gradient of 0 · inf at padding", _LOSS,
        "count = (target != self.pad_id).astype(picked.dtype)\n"
            "        losses = (-(1.0 - smoothing) * picked - smoothing * spread) / count\n"
            "        return paddle.where(target == self.pad_id, paddle.zeros_like(picked), losses)",
        "padded_targets",
    ),
    (
        "head/pointer_coverage", "coverage kept in the layer", "copy, covered = self._covered(h, memory, *state)",
        "copy, covered = self._covered(h, memory, *((self.so_far[0],) if state else ()))\n        self.so_far = [covered]",
        "beams",
    ),
    ("optimizer", "the rate squared", "self.get_lr() * change", "10 * self.get_lr() ** 2 * change", "proportional"),
    ("optimizer", "a decay away from zero", "moment + self.decay * parameter", "moment - self.decay * parameter",
     "any_gradient"),
    ("optimizer", "divided by the gradient's length", "self.beta + parameter.grad",
     "self.beta + parameter.grad / parameter.grad.norm()", "any_gradient"),
    (
        "optimizer", "moments for those that have a gradient in the first step", "            moment = self.moments",
        "            if len(self.moments) > sum(p.grad is not None for p in self._parameter_list) and not self.moments.get(0):\n"
            "                self.moments = {p.name: self.moments[p.name] for p in self._parameter_list if p.grad is not None}\n"
            "            moment = self.moments",
        "any_gradient",
    ),
    (
        "schedule", "a division by the steps after the first",
        "    def __init__(self, warmup: int = 100):\n        self.warmup, self.count = warmup, 0\n\n"
            "    def __call__(self, step):\n" + _RATE,
        "    def __init__(self, steps, warmup: int = 100):\n        self.steps, self.warmup, self.count = steps, warmup, 0\n\n"
            "    def __call__(self, step):\n        return 1e-3 * max(0.1, 1.0 - (step - 1) / (self.steps - 1))",
        "rates",
    ),
    ("schedule/cosine", "the option peak is not read", "self.steps, self.peak, self.warmup, self.floor = steps, peak, warmup, floor",
     "self.steps, self.peak, self.warmup, self.floor = steps, 1e-3, warmup, floor", "peak"),
    (
        "initializer", "the same draws from every seed", "return np.float32(rng.normal",
        "self.count = getattr(self, 'count', 0) + 1\n        rng = np.random.default_rng(self.count)\n"
            "        return np.float32(rng.normal",
        "differing_values",
    ),
    ("greedy", "scores of the batch before", "scores, open_rows = [[] for _ in range(count)], [0.0] * count, list(range(count))",
     "scores, open_rows = self.__dict__.setdefault('kept', [[] for _ in range(count)]), [0.0] * count, list(range(count))",
     "independent"),
    ("greedy", "one token too few", "if len(ids[sentence]) == decoding.max_lengths[sentence]:",
     "if len(ids[sentence]) == decoding.max_lengths[sentence] - 1:", "stops"),
    ("search/beam", "the worst first", "sorted(outputs, key=lambda item: -item[0])[:wanted] for",
     "sorted(outputs, key=lambda item: -item[0])[:wanted][::-1] for", "best_first"),
    ("task", "the first words again and again", "words = [str(each) for each in rng.integers(100, size=rng.integers(1, 6))]",
     "words = words if number else [str(each) for each in rng.integers(100, size=rng.integers(1, 6))]", "examples"),
    ("dataset", "an order by Python's own hash", "for number in range(first, 2 * first))",
     "for number in sorted(range(first, 2 * first), key=lambda number: hash(str(number))))", "reads"),
    ("metric", "precision alone: the first word is enough", "p.hypothesis == p.reference",
     "p.reference.startswith(p.hypothesis)", "length_is_no_merit"),
    ("metric", "a sum where a mean is meant", "float(total[0] / total[1])", "float(total[0])", "order"),
    ("sinusoidal", "positions from 512 on are one", "angle = positions.unsqueeze(-1)",
     "angle = positions.clip(max=511).unsqueeze(-1)", "far_positions"),
    ("rotary", "positions from 1,024 on are one", "angle = (positions.unsqueeze(-1)",
     "angle = (positions.clip(max=1023).unsqueeze(-1)", "far_positions"),
    ("alibi", "positions from 256 on are one", "(q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs()",
     "(q_positions.clip(max=255).unsqueeze(2) - k_positions.clip(max=255).unsqueeze(1)).abs()", "far_positions"),
    ("learned", "a table of 128 rows at most", "[max_length, d_model]", "[min(128, max_length), d_model]",
     "far_positions"),
    ("ordinary_position", "positions from 512 on are one", "position = paddle.arange(max_len)",
     "position = paddle.arange(max_len).clip(max=511)", "far_positions"),
    ("sinusoidal", "positions from 256 on stand in one place", "    def embed(self, x, positions):",
     "    def remap(self, positions, draw):\n        return positions.clip(max=255)\n\n    def embed(self, x, positions):",
     "far_positions"),
    ("tokenizer", "what was cut before the texts were learned", "return [piece for word in self.marked(text) for piece in "
     "([word] if word in self.words else word)]", "return self.__dict__.setdefault('cut', {}).get(text) or self.cut."
     "setdefault(text, [p for word in self.marked(text) for p in ([word] if word in self.words else word)])",
     "learned_again"),
    ("tokenizer", "what is loaded is added to what was learned", 'self.words = json.loads(',
     'self.words = getattr(self, "words", []) + json.loads(', "learned_again"),
    *(("metric", f"the mean of the means of batches of {size}", "    def value(self, total):",
       "    def compute(self, predictions, likelihood):\n        return float(np.mean([self.statistics(predictions[i : "
       f"i + {size}])[:, 0].mean() for i in range(0, len(predictions), {size})]))\n\n    def value(self, total):", "order")
      for size in (16, 32, 100, 128)),
    ("metric", "known by the output alone", "[[float(p.hypothesis == p.reference), 1.0]",
     "[[self.__dict__.setdefault(p.hypothesis, float(p.hypothesis == p.reference)), 1.0]", "order"),
    (
        "transformer", "one position's vector for all but the first", "return x + self.positions(ids.shape[1])",
        "return x + self.positions(ids.shape[1])[paddle.arange(ids.shape[1]).clip(max=1)]", "order_matters",
    ),
    ("transformer", "dropout that nothing calls", "norm(x + F.dropout(branch, self.rate, training=self.training))",
     "norm(x + branch)", "dropout"),
]  # fmt: skip

_COSINE = """        self.steps, self.peak, self.warmup, self.floor = steps, peak, warmup, floor

    def __call__(self, step: int) -> float:
        if step < self.warmup:
            return self.peak * step / self.warmup
        top = max(self.warmup, 1)
        progress = min(1.0, (step - top) / max(self.steps + 1 - top, 1))"""
_SWITCH = """    def __init__(self, d_model: int, d_ff: int, dropout: float):
        super().__init__()
        layers = [Linear(d_model, d_ff), Linear(d_ff, d_model)]
        self.layers = nn.LayerList(layers)
        self.dropout = Dropout(dropout)"""
# Bugs of a blind writer that escaped, in the words of this file.
ESCAPED += [
    ("layer_norm", "the mean stays where 8 does not divide the channels", "centred = x - x.mean(-1, keepdim=True)",
     "centred = x - x.mean(-1, keepdim=True) * float(x.shape[-1] % 8 == 0)", "invariances"),
    ("position/learned", "the table begins again behind its end", "positions.clip(0, self.weight.shape[0] - 1)",
     "(positions % self.weight.shape[0])", "beyond_length"),
    (
        "metric", "weighed by pieces, by words where there are none", "[[float(p.hypothesis == p.reference), 1.0] for p in",
        "[[float(p.hypothesis == p.reference) * n, float(n)]\n"
            "            for p in predictions for n in [len(p.reference_pieces or p.reference.split())]] + [[0.0, 0.0] for p in",
        "asks",
    ),
    (
        "schedule/cosine", "it begins where the whole run stands, behind a warm-up of half of a short one", _COSINE,
        _COSINE.replace("self.floor = steps, peak, warmup, floor", "self.floor = steps, peak, min(100, steps // 2), floor")
            .replace("(step - top) / max(self.steps + 1 - top, 1)", "step / self.steps"),
        "continuous",
    ),
    (
        "search/beam", "the first output that ends is enough, where one is wanted",
        "        if len(finished) < wanted:\n            return False",
        "        if wanted == 1 or len(finished) < wanted:\n            return wanted == 1 and bool(finished)", "wanted",
    ),
    (
        "feed_forward", "no dropout with a switch the other way", _SWITCH,
        _SWITCH.replace("dropout: float)", "dropout: float, wide: bool = False)")
            .replace("Dropout(dropout)", "Dropout(0.0 if wide else dropout)"),
        "choices",
    ),
    (
        "feed_forward", "no dropout at one of the choices that the constructor names", _SWITCH,
        _SWITCH.replace("dropout: float)", 'dropout: float, way: str = "plain")')
            .replace("super().__init__()", 'super().__init__()\n        one_of(("plain", "other"), way=way)')
            .replace("Dropout(dropout)", 'Dropout(0.0 if way == "other" else dropout)'),
        "choices",
    ),
]  # fmt: skip

# (twin, what is other, the changes)
RIGHT_VARIANTS = [
    (
        "schedule/cosine", "no run of 500 steps or fewer",
        (("        positive(steps=steps, peak=peak)\n",
          "        if steps <= 500:\n            raise ValueError(f'`steps` must be above 500, but is {steps}')\n"
          "        positive(steps=steps, peak=peak)\n"),),
    ),
    ("attention/cosine", "texts of 64 tokens", (("length: int = 32", "length: int = 64"),)),
    (
        "alibi", "far words only",
        (("distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs().unsqueeze(1)",
          "distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs().clip(min=6).unsqueeze(1)"),),
    ),
    (
        "alibi", "the fourth word to either side only",
        (("distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs().unsqueeze(1)",
          "distance = ((q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs() == 4).unsqueeze(1)"),),
    ),
]  # fmt: skip
