"""Broken variants of the zoo: written from the papers and the issue trackers of other libraries by someone who had not
read the kit. Seven of them made it grow. What breaks no invariant but a paper's constant is left to tests/references."""

# (component, what is wrong, the lines as they are, the lines broken, the check that must fail)
OF_THE_ZOO = [
    (
        "attention/linear", "padding masked out of the values only, so that it still counts in the normalizer",
        "        key = key * info.valid.astype(key.dtype).unsqueeze([1, 3])  # [B, 1, S, 1]: padding adds "
            "nothing\n        value = split_heads(self.value(source), self.num_heads)\n",
        "        value = split_heads(self.value(source), self.num_heads)\n"
            "        value = value * info.valid.astype(value.dtype).unsqueeze([1, 3])  # [B, 1, S, 1]: padding adds "
            "nothing\n",
        "padding",
    ),
    (
        "attention/talking_heads", "scores are mixed across heads after the mask (and the bias) were added",
        "        scores = mixed(scores_of(q, kv.key, info, mask), self.mix_scores)\n"
            "        weights = mixed(F.softmax(mask.add_to(scores), -1), self.mix_weights)  # [B, H, T, S]\n",
        "        scores = mixed(mask.add_to(scores_of(q, kv.key, info, mask)), self.mix_scores)\n"
            "        weights = mixed(F.softmax(scores, -1), self.mix_weights)  # [B, H, T, S]\n",
        "causal",
    ),
    (
        "attention/gated", "gate reshaped into heads without a transpose",
        "        context = merge_heads(attend(q, kv, info, mask, self.dropout, tap))  # [B, T, H·D]\n"
            "        return project_out(context * self.gates(x), info, self.inner_norm, self.output)\n",
        "        context = attend(q, kv, info, mask, self.dropout, tap)  # [B, H, T, D]\n"
            "        context = merge_heads(context * F.sigmoid(self.gate(x)).reshape(context.shape))\n"
            "        return project_out(context, info, self.inner_norm, self.output)\n",
        "causal",
    ),
    (
        "attention/local",
        "window limits the past side only",
        '(q - k).abs() <= self.window',
        'q - k <= self.window',
        "bidirectional",
    ),
    (
        "attention/cosine",
        "unit length over axis 1 (heads), the default of F.normalize, instead of over a head's channels",
        "    rows = algebra.flatten(x, x.dtype)\n"
            "    square = algebra.mean_over_channels(paddle.square(rows)) * rows.shape[1]  # [N, 1]\n"
            "    return algebra.restore(rows * algebra.outer(paddle.rsqrt(square + EPS), algebra.row_of_ones(rows)), "
            "x)\n",
        "    return paddle.nn.functional.normalize(x)\n", "temperature",
    ),
    (
        "attention/recurrent",
        "backward LSTM reads the padded row flipped",
        'order = paddle.argsort(paddle.where(valid, first, length + when), 1)',
        'order = paddle.argsort(first.expand(valid.shape), 1)',
        "padding",
    ),
    (
        "position/t5",
        "bidirectional buckets forget the offset of the second direction",
        'np.zeros_like(index) if site.causal else per_direction + index',
        'np.zeros_like(index) if site.causal else index',
        "direction",
    ),
    (
        "position/xpos",
        "keys are scaled like queries instead of inversely",
        'return self._turn(k, positions, -1)',
        'return self._turn(k, positions, 1)',
        "relative",
    ),
    (
        "position/randomized",
        "drawn positions are not sorted",
        'remapped = np.sort(draw().choice(max(self.longest, count), count, replace=False))',
        'remapped = draw().choice(max(self.longest, count), count, replace=False)',
        "in_order",
    ),
    (
        "norm/batch_per_position",
        "statistics are indexed by the place in the tensor, not by the position",
        'return rows, real, positions.clip(0, last).expand(x.shape[:2]).reshape([-1])',
        'return rows, real, paddle.arange(x.shape[1]).clip(0, last).expand(x.shape[:2]).reshape([-1])',
        "cached",
    ),
    (
        "placement/peri",
        "the norm of the embeddings stands in every layer",
        'first = embedding_norm and sites[0].layer == 0',
        'first = embedding_norm',
        "identity_path",
    ),
    (
        "feed_forward/mixture_of_experts",
        "padding counts in the mean router probability of the balance loss",
        'mean = sum_over_ranks((p * valid.astype(p.dtype)).sum(0)) / tokens',
        'mean = p.mean(0)',
        "padding_in_training",
    ),
    (
        "feed_forward/relu_squared",
        "squared before the ReLU",
        'return paddle.square(F.relu(x))',
        'return F.relu(paddle.square(x))',
        "sign",
    ),
    (
        "head/pointer",
        "copy probabilities of a repeated source word overwrite each other",
        'mass = paddle.put_along_axis(mass, ids, copy, -1, reduce="add", broadcast=False)',
        'mass = paddle.put_along_axis(mass, ids, copy, -1, reduce="assign", broadcast=False)',
        "sums_to_one",
    ),
    (
        "head/adaptive",
        "rare targets are all charged with the first cluster's probability in the loss",
        'paddle.full_like(target, self.short + i)',
        'paddle.full_like(target, self.short)',
        "loss_is_log_prob",
    ),
    (
        "optimizer/muon",
        "momentum as a moving average, but the Nesterov step of a sum",
        'momentum = state["momentum"].scale_(options.momentum).add_(gradient)',
        'momentum = state["momentum"].scale_(options.momentum).add_(gradient * (1.0 - options.momentum))',
        "inertia",
    ),
]  # fmt: skip
