"""Wrong norms."""

from catalogue.rounding import through

_NORM = """        self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))
        self.bias = self.create_parameter([d_model], is_bias=True)

    def forward(self, x, valid=None, positions=None):
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        return centred / paddle.sqrt(variance + self.eps) * self.weight + """


WRONG = {
    "ordinary_norm": [
        (
            "over the time axis", "mean = paddle.mean(x, axis=-1, keepdim=True)",
            "mean = paddle.mean(x, axis=1, keepdim=True)", "causal",
        ),
        (
            "over the batch", "mean = paddle.mean(x, axis=-1, keepdim=True)",
            "mean = paddle.mean(x, axis=0, keepdim=True)", "neighbours",
        ),
        (
            "gain that is no parameter",
            "self.gain = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))",
            "self.gain = [paddle.create_parameter([d_model], paddle.get_default_dtype(), "
                "default_initializer=nn.initializer.Constant(1.0))][0:1]\n        self.__dict__['gain'] = self.gain[0]",
            "registered",
        ),
    ],
    "layer_norm": [
        ("the mean is not taken off", "centred = x - x.mean(-1, keepdim=True)", "centred = x * 1.0", "invariances"),
        (
            "not divided", "centred / paddle.sqrt(variance + self.eps) * self.weight", "centred * self.weight",
            "invariances",
        ),
        ("divided by the variance", "paddle.sqrt(variance + self.eps)", "(variance + self.eps)", "invariances"),
        ("eps of 1e-1", "eps: float = 1e-6", "eps: float = 1e-1", "invariances"),
        ("gain and shift exchanged", "* self.weight + self.bias", "* self.bias + self.weight", "both_signs"),
        ("no eps", "paddle.sqrt(variance + self.eps)", "paddle.sqrt(variance)", "extremes"),
        ("statistics over time", "x.mean(-1, keepdim=True)", "x.mean(1, keepdim=True)", "causal"),
        (
            "statistics cut off from the gradient", "(centred * centred).mean(-1, keepdim=True)",
            "(centred * centred).mean(-1, keepdim=True).detach()", "gradients",
        ),
        ("a gain that nothing uses", "* self.weight + self.bias", "+ self.bias", "trains"),
        (
            "a gain that is a plain tensor",
            "self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))",
            "self.weight = paddle.ones([d_model])\n        self.weight.stop_gradient = False", "registered",
        ),
        ("centred in place", "centred = x - x.mean(-1, keepdim=True)",
         "centred = x.subtract_(x.mean(-1, keepdim=True))", "inputs_unchanged"),
        ("centred in place in evaluation", "centred = x - x.mean(-1, keepdim=True)",
         "centred = x - x.mean(-1, keepdim=True) if self.training else x.subtract_(x.mean(-1, keepdim=True))",
         "inputs_unchanged"),
        (
            "an absolute value at the end", "* self.weight + self.bias", "* self.weight.abs() * centred.sign()",
            "both_signs",
        ),
        (
            "not finite at padding, at the end of evaluation",
            "    def __init__(self, d_model: int, eps: float = 1e-6):\n        super().__init__()\n        self.eps = eps\n"
                + _NORM + "self.bias",
            "    def __init__(self, d_model: int, site, eps: float = 1e-6):\n        super().__init__()\n"
                "        self.eps, self.last = eps, (site.stack, site.sublayer) == ('decoder', 'final')\n"
                + _NORM + "self.bias + (0.0 / valid.astype(x.dtype).unsqueeze(-1) if self.last and not self.training and "
                "valid is not None else 0.0)",
            "masked_rows",
        ),
        ("the mean stays where 8 does not divide the channels", "centred = x - x.mean(-1, keepdim=True)",
         "centred = x - x.mean(-1, keepdim=True) * float(x.shape[-1] % 8 == 0)", "invariances"),
        ("the variance in float16", "variance = (centred * centred).mean(-1, keepdim=True)",
         "variance = (centred * centred).mean(-1, keepdim=True)\n"
         f"        variance = {through('float16', 'variance')}", "smooth"),
        ("all of it in bfloat16", "centred = x - x.mean(-1, keepdim=True)",
         f"x = {through('bfloat16', 'x')}\n        centred = x - x.mean(-1, keepdim=True)", "smooth"),
        ("a variance of two means", "variance = (centred * centred).mean(-1, keepdim=True)",
         "variance = ((x * x).mean(-1, keepdim=True) - x.mean(-1, keepdim=True) ** 2).clip(min=0.0)", "digits"),
        ("a sum where a mean is meant", "variance = (centred * centred).mean(-1, keepdim=True)",
         "variance = (centred * centred).mean(-1, keepdim=True)\n"
         "        self.add_aux_loss('spread', 0.01 * (variance.squeeze(-1) * (1.0 if valid is None else "
         "valid.astype(x.dtype))).sum())", "aux_losses"),
        ("a place in a dict for each call", "variance = (centred * centred).mean(-1, keepdim=True)",
         "variance = (centred * centred).mean(-1, keepdim=True)\n        kept = self.__dict__.setdefault('kept', {})\n"
         "        kept[len(kept)] = float(variance.mean())", "stateless"),
    ],
    "batch_norm": [
        (
            "padding is counted", "real = valid.astype(x.dtype).unsqueeze(-1)",
            "real = paddle.ones_like(valid).astype(x.dtype).unsqueeze(-1)", "padding_in_training",
        ),
        (
            "running statistics never updated", "self.remember(mean.detach(), variance.detach())", "pass",
            "momentum",
        ),
        (
            "the running mean moves away", "self.momentum * (mean - self.mean)", "self.momentum * (self.mean - mean)",
            "momentum",
        ),
        (
            "the running variance is a standard deviation", "(variance - self.variance))",
            "(variance.sqrt() - self.variance))", "momentum",
        ),
        (
            "batch statistics in evaluation", "if self.training and float(real.sum()) > 1:",
            "if float(real.sum()) > 1:", "neighbours",
        ),
        (
            "updated in evaluation", "mean, variance = self.mean, self.variance",
            "mean, variance = self.mean.clone(), self.variance.clone()\n"
                "        self.mean.set_value(self.mean * 0.9 + 0.1 * x.mean([0, 1]))",
            "stateless",
        ),
        (
            "buffers that are not saved", 'self.register_buffer("mean", paddle.zeros([d_model], self.weight.dtype))',
            'self.register_buffer("mean", paddle.zeros([d_model], self.weight.dtype), persistable=False)', "saved",
        ),
        (
            "an RMS norm hidden in front", "mean, variance = self.mean, self.variance",
            "x = x / paddle.sqrt((x * x).mean(-1, keepdim=True) + self.eps)\n"
                "        mean, variance = self.mean, self.variance",
            "invariances",
        ),
        (
            "momentum is the weight of the past", "self.mean + self.momentum * (mean - self.mean)",
            "mean + self.momentum * (self.mean - mean)", "momentum",
        ),
        ("padding in the running mean", "self.remember(mean.detach(), variance.detach())",
         "self.remember(x.mean([0, 1]).detach(), variance.detach())", "padding_in_training"),
        ("the running mean is one of all tokens", "self.remember(mean.detach(), variance.detach())",
         "self.remember((mean + (x.mean([0, 1]) - mean)).detach(), variance.detach())", "momentum"),
        (
            "a count of batches that no checkpoint holds",
            "        self.mean.set_value(self.mean + self.momentum * (mean - self.mean))",
            "        self.count = getattr(self, 'count', 0) + 1\n"
                "        self.mean.set_value(self.mean + max(self.momentum, 1 / self.count) * (mean - self.mean))",
            "saved",
        ),
    ],
    "norm/batch_per_position": [
        (
            "statistics are indexed by the place in the tensor, not by the position",
            'return rows, real, positions.clip(0, last).expand(x.shape[:2]).reshape([-1])',
            'return rows, real, paddle.arange(x.shape[1]).clip(0, last).expand(x.shape[:2]).reshape([-1])',
            "cached",
        ),
        (
            "the positions of the first sentence for all", "positions.clip(0, last)",
            "positions[:1].clip(0, last)", "own_positions",
        ),
    ],
    "norm/batch": [
        (
            "a small batch counts as much as a large one", "self._remember(mean, variance, count)",
            "self._remember(mean, variance, paddle.full_like(count, 2.0) if self._pool else count)", "population",
        ),
    ],
    "norm/power": [
        (
            "half of what was there before stays", "pool.store(self.running_square, pool.mean)",
            "pool.store(self.running_square, (pool.mean + self.running_square) / 2)", "population",
        ),
    ],
    "norm/rms": [
        ("all tokens divided by the largest channel of the batch, lest a square overflow",
         "rows = ops.flatten(x, self.weight.dtype)",
         "rows = ops.flatten(x, self.weight.dtype)\n        rows = rows / rows.detach().abs().max().clip(min=1e-6)",
         "precision"),
    ],
    "norm_variants:UnitLength": [
        ("the length over the batch", "x.norm(axis=-1, keepdim=True)", "x.norm()", "causal"),
    ],
    "norm_variants:PartialRMS": [
        ("the root mean square of the last token's channels", "(x[..., : self.part] ** 2).mean(-1, keepdim=True)",
         "(x[:, -1:, : self.part] ** 2).mean(-1, keepdim=True)", "causal"),
    ],
    "norm_variants:OnePlusGain": [
        ("the gain is w alone, from zero", "(1.0 + self.w)", "self.w", "both_signs"),
    ],
}  # fmt: skip

UNREAD = {
    "layer_norm": [
        ("an epsilon of its own", "self.eps = eps", "self.eps = 1e-6", "eps"),
        ("an epsilon that is kept", "paddle.sqrt(variance + self.eps)", "paddle.sqrt(variance + 1e-6)", "eps"),
        ("an epsilon that is only compared with zero, under another name", "    def forward(self, x, valid=None, positions=None):",
         "        self.eps = 1e-6 if eps > 0 else 1e-6\n\n    def forward(self, x, valid=None, positions=None):", "eps"),
    ],
    "norm/power": [
        ("a warm-up of its own", "self.warmup = warmup", "self.warmup = 200", "warmup"),
    ],
}  # fmt: skip

RIGHT = {
    "layer_norm": [
        (
            "its output is kept for a plot",
            (("        centred = x - x", "        self.seen = x\n        centred = x - x"),),
        ),
    ],
    "ordinary_norm": [
        (
            "a gain of float32, whatever the rest is",
            (("self.gain = self.create_parameter([d_model], default", "self.gain = self.create_parameter([d_model], dtype='float32', default"),),
        ),
    ],
}  # fmt: skip
