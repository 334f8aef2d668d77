"""Bugs that show only where there are several: parameters, tokens at once, hypotheses, draws, tokenizers."""

_LOG_PROBS = "        return logits - paddle.logsumexp(logits, -1, keepdim=True)"
_MOMENT = """            moment = self.moments[parameter.name] * self.beta + parameter.grad
            self.moments[parameter.name] = moment"""

# (twin, what is wrong, the lines as they are, the lines broken, the check that must fail)
SEVERAL = [
    (
        "head", "after the first of the new tokens", _LOG_PROBS,
        _LOG_PROBS + "\n    def step(self, h, memory, state=()):\n"
        "        return self.log_probs(h[:, :1], memory).squeeze(1), state",
        "several_at_once",
    ),
    (
        "head", "the mean of the new tokens", _LOG_PROBS,
        _LOG_PROBS + "\n    def step(self, h, memory, state=()):\n"
        "        return self.log_probs(h.mean(1, keepdim=True), memory).squeeze(1), state",
        "several_at_once",
    ),
    (
        "head/pointer_coverage", "attention of the last token alone is remembered", "squeeze(1), (covered,)",
        "squeeze(1), (self._covered(h[:, -1:], memory, *state)[1],)", "several_at_once",
    ),
    (
        "optimizer", "moments by shape", _MOMENT,
        "            moment = self.moments.get(str(parameter.shape), 0.0) * self.beta + parameter.grad\n"
            "            self.moments[str(parameter.shape)] = moment",
        "own_state",
    ),
    (
        "optimizer", "moments by the last part of a name", _MOMENT,
        "            moment = self.moments.get(parameter.name[-9:], 0.0) * self.beta + parameter.grad\n"
            "            self.moments[parameter.name[-9:]] = moment",
        "own_state",
    ),
    ("optimizer", "vectors decay", "float(is_decayed(parameter))", "float(not hasattr(parameter, 'no_decay'))",
     "spares_gains"),
    ("optimizer", "marks are not asked for", "float(is_decayed(parameter))", "float(parameter.ndim >= 2)", "spares_gains"),
    ("optimizer/lion", "the rate of the schedule for all", "parameter.subtract_(direction * rate)",
     "parameter.subtract_(direction * self.get_lr())", "own_rate"),
    ("optimizer/schedule_free", "the rate of the schedule for half of the step", "z.subtract_(step * rate)",
     "z.subtract_(step * self.get_lr())", "own_rate"),
    ("optimizer/radam", "one clock for all", "rectifier = rectification(self.beta2, t)",
     "rectifier = rectification(self.beta2, t := max(self._updates.values()))", "late_start"),
    ("optimizer/adafactor", "a decay by one clock", "beta = 1.0 - t**-self.decay",
     "beta = 1.0 - max(self._updates.values()) ** -self.decay", "late_start"),
    ("initializer", "tables of deviation one", "shape[-1] ** -0.5 if role", "1.0 if role", "initial_loss"),
    (
        "initializer", "smaller from draw to draw", "return np.float32(rng.normal",
        "self.count = getattr(self, 'count', 0) + 1\n        scale = scale / (1 + self.count / 8) ** 0.5\n"
            "        return np.float32(rng.normal",
        "own_values",
    ),
    (
        "initializer/mup", "smaller from draw to draw of a model", "std = 1.0 / site.factor",
        "self.count = (site.path[:6] == 'source' or self.count + 1)\n        std = self.count**-0.5 / site.factor",
        "own_values",
    ),
    ("schedule/cosine", "the class holds what the newest one was told",
     "self.steps, self.peak, self.warmup, self.floor = steps",
     "type(self).steps, self.peak, self.warmup, self.floor = steps", "step_alone"),
    ("search/beam", "each output twice",
     "finished[sentence].append((score / self.penalty(len(ids) + 1), Hypothesis(ids, score)))",
     "finished[sentence] += 2 * [(score / self.penalty(len(ids) + 1), Hypothesis(ids, score))]", "differing"),
    (
        "transformer", "the target is shifted a second time", "    def forward(self, src, tgt):",
        "    def forward(self, src, tgt):\n        tgt = paddle.concat([tgt[:, :1], tgt[:, :-1]], 1)", "newest_word",
    ),
    (
        "head", "a buffer that NumPy's own generator draws", "self.output = Linear(d_model, vocab_size)",
        "self.output = Linear(d_model, vocab_size)\n"
            "        self.register_buffer('noise', paddle.to_tensor(__import__('numpy').random.rand(vocab_size)))",
        "repeatable",
    ),
    (
        "attention", "as many rows as before stay where they are", "        return Past(self.key.index_select(rows, 0),",
        "        if len(rows) == len(self.key):\n            return self\n"
            "        return Past(self.key.index_select(rows, 0),",
        "beams",
    ),
    (
        "attention/local", "the first layer's window is that of all", """        self.window = window

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        near = mask.restricted(("window", self.window),""",
        """        self.window = 1 + (site.layer if site else 0)

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        near = mask.restricted("window",""",
        "restricted_by_key",
    ),
    (
        "attention/local", "the first layer's window is that of all, and wider than a scene's texts", """        self.window = window

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        near = mask.restricted(("window", self.window),""",
        """        self.window = 100 * (1 + (site.layer if site else 0))

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        near = mask.restricted("window",""",
        "restricted_by_key",
    ),
    ("attention/multihead", "a norm that is not applied",
     "context = self.inner_norm(context, info.valid, info.positions)", "context = context", "norms_inside"),
    ("optimizer/lion", "steps as long as the parameter", "parameter.subtract_(direction * rate)",
     "parameter.subtract_(direction * rate * parameter.norm())", "any_gradient"),
    (
        "tokenizer", "counts that all of them add to", """    def fit(self, texts):
        self.words = sorted({word for text in texts for word in self.marked(text)})""",
        """    def fit(self, texts, counts=__import__("collections").Counter()):
        counts.update(word for text in texts for word in self.marked(text))
        self.words = sorted(word for word in counts if counts[word] > 1)""",
        "apart",
    ),
]  # fmt: skip
