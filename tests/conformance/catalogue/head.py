"""Wrong and right heads."""

from catalogue.rounding import through

_LOGITS = "logits = self.output(h)"
_LOG_PROBS = "        return logits - paddle.logsumexp(logits, -1, keepdim=True)"
_LOSS = "return -(1.0 - smoothing) * picked - smoothing * spread"
_PICKED = "picked = paddle.take_along_axis(log_probs, target.unsqueeze(-1), -1).squeeze(-1)"
_PROBABILITIES = "return logits - paddle.logsumexp(logits, -1, keepdim=True)"


WRONG = {
    "head": [
        (
            "softmax over time", "paddle.logsumexp(logits, -1, keepdim=True)",
            "paddle.logsumexp(logits, 1, keepdim=True)", "sums_to_one",
        ),
        (
            "the loss of another distribution", "log_probs = self.log_probs(h, memory)",
            "log_probs = F.log_softmax(self.output(h) / 2.0, -1)", "loss_is_log_prob",
        ),
        (
            "probabilities for their logarithms", "return -(1.0 - smoothing) * picked",
            "return -(1.0 - smoothing) * picked.exp()", "loss_is_log_prob",
        ),
        (
            "divided by the padded length", "return -(1.0 - smoothing) * picked - smoothing * spread",
            "return (-(1.0 - smoothing) * picked - smoothing * spread) / target.shape[1]", "padding_in_training",
        ),
        (
            "padding in the loss", "return -(1.0 - smoothing) * picked - smoothing * spread",
            "losses = -(1.0 - smoothing) * picked - smoothing * spread\n"
                "        return losses * 0 + losses.mean(-1, keepdim=True)",
            "padding_in_training",
        ),
        ("smoothing over padding too", "words = 1.0 - F.one_hot", "words = 1.0 - 0.0 * F.one_hot", "smoothing"),
        (
            "exp without a shift", "paddle.logsumexp(logits, -1, keepdim=True)",
            "logits.exp().sum(-1, keepdim=True).log()", "extremes",
        ),
        (
            "minus infinity at padding", "return -(1.0 - smoothing) * picked - smoothing * spread",
            "return paddle.where(target == self.pad_id, picked * float('inf'), -(1.0 - smoothing) * picked - "
                "smoothing * spread)",
            "every_word",
        ),
        (
            "adds the state before it", _LOGITS,
            "logits = self.output(h + paddle.concat([paddle.zeros_like(h[:, :1]), h[:, :-1]], 1))", "cached",
        ),
        ("adds the state after it", _LOGITS, "logits = self.output(h + h.roll(-1, 1))", "causal"),
        ("changes what it gets", _LOGITS, "logits = self.output(h.scale_(0.5))", "inputs_unchanged"),
        ("smoothed in training without being asked", "log_probs = self.log_probs(h, memory)",
         "log_probs, smoothing = self.log_probs(h, memory), smoothing or 0.1 * self.training", "loss_is_log_prob"),
        ("the end token costs nothing", _LOSS,
         "return (-(1.0 - smoothing) * picked - smoothing * spread) * (target != 2).astype(picked.dtype)", "loss_is_log_prob"),
        (
            "a gradient of 0 · inf at padding", _LOSS,
            "count = (target != self.pad_id).astype(picked.dtype)\n"
                "        losses = (-(1.0 - smoothing) * picked - smoothing * spread) / count\n"
                "        return paddle.where(target == self.pad_id, paddle.zeros_like(picked), losses)",
            "every_word",
        ),
        ("logits in float16", "logits = self.output(h)",
         f"logits = self.output(h)\n        logits = {through('float16', 'logits')}", "smooth"),
        ("the state in bfloat16", "logits = self.output(h)", f"logits = self.output({through('bfloat16', 'h')})", "smooth"),
        (
            "no loss after the 48th token",
            "return -(1.0 - smoothing) * picked - smoothing * spread",
            "return (-(1.0 - smoothing) * picked - smoothing * spread) * (paddle.arange(h.shape[1]) < 48).astype(h.dtype)",
            "loss_is_log_prob",
        ),
        (
            "after the first of the new tokens", _LOG_PROBS,
            _LOG_PROBS + "\n    def step(self, h, memory, state=()):\n"
            "        return self.log_probs(h[:, :1], memory).squeeze(1), state",
            "several_at_once",
        ),
        (
            "the mean of the new tokens", _LOG_PROBS,
            _LOG_PROBS + "\n    def step(self, h, memory, state=()):\n"
            "        return self.log_probs(h.mean(1, keepdim=True), memory).squeeze(1), state",
            "several_at_once",
        ),
        (
            "a buffer that NumPy's own generator draws", "self.output = Linear(d_model, vocab_size)",
            "self.output = Linear(d_model, vocab_size)\n"
                "        self.register_buffer('noise', paddle.to_tensor(__import__('numpy').random.rand(vocab_size)))",
            "repeatable",
        ),
        ("the unknown word is ruled out", _LOGITS, "logits = self.output(h)\n        logits[..., 3] = -1e9", "every_word"),
        ("the last word is ruled out", _LOGITS, "logits = self.output(h)\n        logits[..., -1] = -1e4", "every_word"),
        ("minus infinity at padding among the logits", _PROBABILITIES,
         "logits[..., self.pad_id] = float('-inf')\n        " + _PROBABILITIES, "extremes"),
        ("the unknown word costs nothing finite", _PICKED,
         _PICKED + "\n        picked = paddle.where(target == 3, paddle.log(paddle.zeros_like(picked)), picked)", "every_word"),
        ("words of the source alone", _LOGITS,
         "logits = self.output(h)\n        seen = paddle.nn.functional.one_hot(memory.copy_ids, self.vocab_size).max(1, "
         "keepdim=True)\n        logits = logits + (1.0 - seen.astype(logits.dtype)) * -1e9", "every_word"),
    ],
    "head/pointer": [
        (
            "copy probabilities of a repeated source word overwrite each other",
            'mass = paddle.put_along_axis(mass, ids, copy, -1, reduce="add", broadcast=False)',
            'mass = paddle.put_along_axis(mass, ids, copy, -1, reduce="assign", broadcast=False)',
            "sums_to_one",
        ),
        ("no column for words beyond the vocabulary", "mass = paddle.zeros([batch, length, words + memory.extra]",
         "memory = __import__('dataclasses').replace(memory, copy_ids=memory.copy_ids.clip(max=words - 1), extra=0)\n"
         "        ids = ids.clip(max=words - 1)\n        mass = paddle.zeros([batch, length, words + memory.extra]",
         "foreign_words"),
        ("words beyond the vocabulary are one place further", "ids = memory.copy_ids.unsqueeze(1).expand(copy.shape)  # [B, S] -> [B, T, S]\n        mass",
         "ids = memory.copy_ids.unsqueeze(1).expand(copy.shape)\n"
         "        ids = paddle.where(ids >= words, (ids + 1).clip(max=words + memory.extra - 1), ids)\n        mass", "foreign_words"),
    ],
    "head/adaptive": [
        (
            "rare targets are all charged with the first cluster's probability in the loss",
            'paddle.full_like(target, self.short + i)',
            'paddle.full_like(target, self.short)',
            "loss_is_log_prob",
        ),
    ],
    "head/pointer_coverage": [
        (
            "coverage kept in the layer", "copy, covered = self._covered(h, memory, *state)",
            "copy, covered = self._covered(h, memory, *((self.so_far[0],) if state else ()))\n        self.so_far = [covered]",
            "beams",
        ),
        (
            "attention of the last token alone is remembered", "squeeze(1), (covered,)",
            "squeeze(1), (self._covered(h[:, -1:], memory, *state)[1],)", "several_at_once",
        ),
    ],
    "other_variants:LowRankHead": [
        ("log-probabilities over the tokens of the sentence",
         "return F.log_softmax(self.up(paddle.tanh(self.down(h))), -1)\n",
         "return F.log_softmax(self.up(paddle.tanh(self.down(h))), 1)\n", "padding"),
        ("smoothing counted with the wrong sign", "- smoothing * others\n", "+ smoothing * others\n", "smoothing"),
    ],
    "other_variants:TwoSoftmaxes": [
        ("shares are 1 and 1: probabilities sum to more than one", "F.log_sigmoid(-weight) + right",
         "F.log_sigmoid(weight) + right", "sums_to_one"),
        ("averages log-probabilities", "return paddle.logsumexp(both, -1)", "return both.mean(-1)", "sums_to_one"),
    ],
}  # fmt: skip

RIGHT = {
    "head": [
        ("a floor of 1e-30 below the unknown word", (
            (_LOGITS, "logits = self.output(h)\n        logits = logits - 60.0 * F.one_hot(paddle.to_tensor(3), "
             "self.vocab_size).astype(logits.dtype)"),
        )),
    ],
}  # fmt: skip
