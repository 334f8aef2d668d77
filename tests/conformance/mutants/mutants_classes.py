"""Classes of bugs that no check looked for, each in several forms, and right variants beside them: hypotheses and their
scores, words without a probability, states that objects share, draws that are not made up for, hashes of texts, half
precision far out, and rates that are read once."""

_BEAMS = 'decoding.select(paddle.to_tensor(rows, dtype="int64"))\n                tokens ='
_ENDED = "finished[sentence].append((score / self.penalty(len(ids) + 1), Hypothesis(ids, score)))"
_SURVIVES = "beams[sentence].append(([*old[i][0], token], score))"
_LOGITS = "logits = self.output(h)"
_PICKED = "picked = paddle.take_along_axis(log_probs, target.unsqueeze(-1), -1).squeeze(-1)"
_PROBABILITIES = "return logits - paddle.logsumexp(logits, -1, keepdim=True)"
_WORDS = "self.words = sorted({word for text in texts for word in self.marked(text)})"
_ANGLE = 'angle = positions.unsqueeze(-1).astype("float64") * self.rates'
_TURN = 'angle = (positions.unsqueeze(-1).astype("float64") * self.rates).unsqueeze(1)'
_NORMAL = "return np.float32(rng.normal(size=shape) * scale)"
_DRAW_AT = "\n\n    def draw_at(self, site, rng, shape, role):\n        return self.draw({}, shape, role)"
_STEP = "parameter.set_value(parameter - self.get_lr() * change)"
_HIDDEN = "hidden = self.dropout(hidden)"

# (twin, what is wrong, the lines as they are, the lines broken, the check that must fail)
CLASSES = [
    # 1 hypotheses and their scores
    ("search/beam", "caches stay where the number of rows does", _BEAMS,
     _BEAMS.replace("(rows,", "(rows if len(rows) != len(log_probs) else list(range(len(rows))),"), "scores"),
    ("search/beam", "caches in the order of rows, not of beams", _BEAMS, _BEAMS.replace("(rows,", "(sorted(rows),"),
     "scores"),
    ("search/beam", "tokens of one beam behind those of another", _SURVIVES,
     _SURVIVES.replace("old[i]", "old[min(len(survivors), len(old) - 1)]"), "scores"),
    ("search/beam", "the first output's score for all", "return [[hypothesis for _, hypothesis in outputs] for outputs in ranked]",
     "return [[Hypothesis(each.ids, outputs[0][1].score) for _, each in outputs] for outputs in ranked]", "scores"),
    ("search/beam", "the score over its penalty", _ENDED,
     _ENDED.replace("Hypothesis(ids, score)", "Hypothesis(ids, score / self.penalty(len(ids) + 1))"), "scores"),
    ("search/beam", "the worst of what is wanted", "[:wanted] for outputs in finished]", "[-wanted:] for outputs in finished]",
     "wanted"),
    ("search/beam", "the least likely of the candidates grow", "return [list(zip(score, i, token))[:number] for",
     "return [list(zip(score, i, token))[:number][::-1] for", "likelier_than_greedy"),
    # 2 words without a probability
    ("head", "the unknown word is ruled out", _LOGITS, "logits = self.output(h)\n        logits[..., 3] = -1e9", "every_word"),
    ("head", "the last word is ruled out", _LOGITS, "logits = self.output(h)\n        logits[..., -1] = -1e4", "every_word"),
    ("head", "minus infinity at padding", _PROBABILITIES,
     "logits[..., self.pad_id] = float('-inf')\n        " + _PROBABILITIES, "extremes"),
    ("head", "the unknown word costs nothing finite", _PICKED,
     _PICKED + "\n        picked = paddle.where(target == 3, paddle.log(paddle.zeros_like(picked)), picked)", "every_word"),
    ("head", "words of the source alone", _LOGITS,
     "logits = self.output(h)\n        seen = paddle.nn.functional.one_hot(memory.copy_ids, self.vocab_size).max(1, "
     "keepdim=True)\n        logits = logits + (1.0 - seen.astype(logits.dtype)) * -1e9", "every_word"),
    ("head/pointer", "no column for words beyond the vocabulary", "mass = paddle.zeros([batch, length, words + memory.extra]",
     "memory = __import__('dataclasses').replace(memory, copy_ids=memory.copy_ids.clip(max=words - 1), extra=0)\n"
     "        ids = ids.clip(max=words - 1)\n        mass = paddle.zeros([batch, length, words + memory.extra]",
     "foreign_words"),
    ("head/pointer", "words beyond the vocabulary are one place further", "ids = memory.copy_ids.unsqueeze(1).expand(copy.shape)  # [B, S] -> [B, T, S]\n        mass",
     "ids = memory.copy_ids.unsqueeze(1).expand(copy.shape)\n"
     "        ids = paddle.where(ids >= words, (ids + 1).clip(max=words + memory.extra - 1), ids)\n        mass", "foreign_words"),
    # 3 states that objects share, and first texts that stay
    ("tokenizer", "words that all of them have", "    def fit(self, texts):\n        " + _WORDS,
     "    words = []\n\n    def fit(self, texts):\n"
     "        self.words += sorted({w for text in texts for w in self.marked(text)} - {*self.words})", "apart"),
    ("tokenizer", "words kept in a default argument", "    def fit(self, texts):\n        " + _WORDS,
     "    def fit(self, texts, words={}):\n"
     "        words.update(dict.fromkeys(w for text in texts for w in self.marked(text)))\n"
     "        self.words = list(words) if not hasattr(self, 'words') else self.words", "apart"),
    ("tokenizer", "first words stay first", _WORDS,
     "known = {word for text in texts for word in self.marked(text)}\n"
     "        self.words = sorted(known | {*getattr(self, 'words', ())})", "learned_again"),
    ("tokenizer", "learns once only", _WORDS,
     "self.words = getattr(self, 'words', None) or sorted({w for text in texts for w in self.marked(text)})", "learned_again"),
    ("tokenizer", "it says that it draws, and never does", "([word] if rng.random() < 0.5 else word)",
     "([word] if word in self.words else word)", "sample"),
    # 4 draws that are not made up for: in attacks/bugs.py, of classes that draw by themselves
    # 5 hashes of texts
    ("initializer", "a generator by Python's own hash", _NORMAL,
     _NORMAL + _DRAW_AT.format("np.random.default_rng(hash(site.path) % 2**32)"), "repeatable"),
    ("initializer", "a sign by Python's own hash", _NORMAL,
     _NORMAL + _DRAW_AT.format("np.random.default_rng([rng.integers(99), hash(('sign', site.path)) % 97])"), "repeatable"),
    ("attention", "values drawn by Python's own hash", "        context = paddle.matmul(weights, kv.value)",
     "        noise = __import__('random').Random(hash(str(self.full_name())) % 97).random() if self.training else 0.0\n"
     "        context = paddle.matmul(weights, kv.value) * (1.0 + 0.01 * noise)", "repeatable"),
    ("schedule", "a warm-up by Python's own hash", "self.warmup, self.count = warmup, 0",
     "self.warmup, self.count = warmup + hash('twin') % 7, 0", "step_alone"),
    ("tokenizer", "words chosen by Python's own hash", _WORDS,
     "self.words = sorted({w for text in texts for w in self.marked(text) if hash(w) % 3})", "same_pieces"),
    # 6 half precision far out
    ("rotary", "angles in float16", _TURN, _TURN.replace("* self.rates)", "* self.rates).astype('float16').astype('float64')"),
     "far_positions"),
    ("rotary", "rates in float16", _TURN, _TURN.replace("self.rates", "self.rates.astype('float16').astype('float64')")
     .replace("unsqueeze(1)", "astype('float16').astype('float64').unsqueeze(1)"), "far_positions"),
    ("rotary", "angles in bfloat16", _TURN, _TURN.replace("* self.rates)", "* self.rates).astype('bfloat16').astype('float64')"),
     "far_positions"),
    ("sinusoidal", "angles in float16", _ANGLE, _ANGLE + "\n        angle = angle.astype('float16').astype('float64')",
     "far_positions"),
    ("sinusoidal", "positions in float16", "positions.unsqueeze(-1).astype(\"float64\")",
     "positions.unsqueeze(-1).astype(\"float16\").astype(\"float64\")", "far_positions"),
    ("sinusoidal", "angles in bfloat16", _ANGLE, _ANGLE + "\n        angle = angle.astype('bfloat16').astype('float64')",
     "far_positions"),
    # 7 rates that are read once
    ("optimizer", "the rate of the first step for all", _STEP,
     "self.rate = self.__dict__.setdefault('rate', self.get_lr())\n            parameter.set_value(parameter - self.rate * "
     "change)", "later_rate"),
    ("optimizer", "the highest rate so far", _STEP,
     "self.rate = max(self.__dict__.get('rate', 0.0), self.get_lr())\n            parameter.set_value(parameter - "
     "self.rate * change)", "later_rate"),
    # 8 losses that grow with the batch
    ("feed_forward", "a sum where a mean is meant", _HIDDEN,
     _HIDDEN + "\n        tap.add_aux_loss('size', 0.01 * (hidden * hidden * info.valid.astype(hidden.dtype)"
     ".unsqueeze(-1)).sum())", "aux_losses"),
    ("layer_norm", "a sum where a mean is meant", "variance = (centred * centred).mean(-1, keepdim=True)",
     "variance = (centred * centred).mean(-1, keepdim=True)\n"
     "        self.add_aux_loss('spread', 0.01 * (variance.squeeze(-1) * (1.0 if valid is None else "
     "valid.astype(x.dtype))).sum())", "aux_losses"),
    ("attention", "a sum where a mean is meant", "        weights = self.dropout(weights)",
     "        weights = self.dropout(weights)\n"
     "        real = info.valid.astype(weights.dtype).unsqueeze([1, 3])\n"
     "        tap.add_aux_loss('sharp', 0.01 * (weights * weights * real).sum())", "aux_losses"),
]  # fmt: skip

# (twin, what is other, the changes)
RIGHT_CLASSES = [
    ("own_placement", "weights of depth that belong to the method", (
        ("        self.rate = dropout",
         "        self.rate = dropout\n        from paddle_tfm.protocols import keep_initial\n"
         "        self.weights = keep_initial(self.create_parameter([2], "
         "default_initializer=nn.initializer.Constant(1.0)))"),
        ("            x = x + branch\n        return x", "            x = self.weights[0] * x + self.weights[1] * branch\n        return x"),
    )),
    ("head", "a floor of 1e-30 below the unknown word", (
        (_LOGITS, "logits = self.output(h)\n        logits = logits - 60.0 * F.one_hot(paddle.to_tensor(3), "
         "self.vocab_size).astype(logits.dtype)"),
    )),
    ("feed_forward", "a loss that is a mean over real tokens", (
        (_HIDDEN, _HIDDEN + "\n        real = info.valid.astype(hidden.dtype).unsqueeze(-1)\n"
         "        size = (hidden * hidden * real).sum() / (hidden.shape[-1] * real.sum()).clip(min=1.0)\n"
         "        tap.add_aux_loss('size', 0.01 * size)"),
    )),
    ("optimizer", "the rate within the momentum", (
        ("self.beta + parameter.grad", "self.beta + self.get_lr() * parameter.grad"),
        ("change = moment + self.decay", "change = moment + self.get_lr() * self.decay"),
        ("parameter - self.get_lr() * change", "parameter - change"),
    )),
]  # fmt: skip
