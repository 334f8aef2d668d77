"""Wrong and right initializers, optimizers and schedules."""

_COSINE = """        self.steps, self.peak, self.warmup, self.floor = steps, peak, warmup, floor

    def __call__(self, step: int) -> float:
        if step < self.warmup:
            return self.peak * step / self.warmup
        top = max(self.warmup, 1)
        progress = min(1.0, (step - top) / max(self.steps + 1 - top, 1))"""
_DRAW_AT = "\n\n    def draw_at(self, site, rng, shape, role):\n        return self.draw({}, shape, role)"
_MOMENT = """            moment = self.moments[parameter.name] * self.beta + parameter.grad
            self.moments[parameter.name] = moment"""
_NORMAL = "return np.float32(rng.normal(size=shape) * scale)"
_RATE = "        return 1e-3 * min(step / self.warmup, (self.warmup / step) ** 0.5)"
_STEP = "parameter.set_value(parameter - self.get_lr() * change)"

WRONG = {
    "initializer": [
        (
            "U(-1, 1)", "return np.float32(rng.normal(size=shape) * scale)",
            "return np.float32(rng.uniform(-1, 1, size=shape))", "initial_loss",
        ),
        ("one value for all", "rng.normal(size=shape) * scale", "np.full(shape, scale)", "differing_values"),
        ("NumPy's own generator", "rng.normal(size=shape)", "np.random.normal(size=shape)", "repeatable"),
        (
            "one stream for every parameter", "return np.float32(rng.normal",
            "rng = np.random.default_rng(1)\n        return np.float32(rng.normal", "differing_values",
        ),
        ("values that depend on what was drawn before", "return np.float32(rng.normal",
         "rng = self.__dict__.setdefault('kept', rng)\n        return np.float32(rng.normal", "differing_values"),
        (
            "the same draws from every seed", "return np.float32(rng.normal",
            "self.count = getattr(self, 'count', 0) + 1\n        rng = np.random.default_rng(self.count)\n"
                "        return np.float32(rng.normal",
            "differing_values",
        ),
        ("tables of deviation one", "shape[-1] ** -0.5 if role", "1.0 if role", "initial_loss"),
        (
            "smaller from draw to draw", "return np.float32(rng.normal",
            "self.count = getattr(self, 'count', 0) + 1\n        scale = scale / (1 + self.count / 8) ** 0.5\n"
                "        return np.float32(rng.normal",
            "own_values",
        ),
        ("a generator by Python's own hash", _NORMAL,
         _NORMAL + _DRAW_AT.format("np.random.default_rng(hash(site.path) % 2**32)"), "repeatable"),
    ],
    "optimizer": [
        (
            "a decay that knows no rate", "change = moment + self.decay * parameter * float(is_decayed(parameter))",
            "change = moment\n            parameter.set_value(parameter * (1.0 - self.decay))", "follows_the_rate",
        ),
        ("uphill", "parameter - self.get_lr() * change", "parameter + self.get_lr() * change", "lowers"),
        (
            "moments that are not saved", "return dict(self.moments)",
            "return {name: moment * 0 for name, moment in self.moments.items()}", "resumes",
        ),
        (
            "moves what has no gradient", "            if parameter.grad is None:\n                continue\n",
            "            if parameter.grad is None:\n                parameter.set_value(parameter * 0.99)\n"
                "                continue\n",
            "lowers",
        ),
        ("what is added to weights, and taken away again, rounds", "class Twin(Optimizer):",
         "class Twin(Optimizer):\n    @__import__('contextlib').contextmanager\n    def evaluated(self, optimizer):\n"
         "        for by in (0.3, -0.3): [p.set_value(p + by) for p in optimizer._parameter_list]; by < 0 or (yield)",
         "evaluated"),
        ("the rate squared", "self.get_lr() * change", "10 * self.get_lr() ** 2 * change", "proportional"),
        ("a decay away from zero", "moment + self.decay * parameter", "moment - self.decay * parameter",
         "any_gradient"),
        ("divided by the gradient's length", "self.beta + parameter.grad",
         "self.beta + parameter.grad / parameter.grad.norm()", "any_gradient"),
        (
            "moments for those that have a gradient in the first step", "            moment = self.moments",
            "            if len(self.moments) > sum(p.grad is not None for p in self._parameter_list) and not self.moments.get(0):\n"
                "                self.moments = {p.name: self.moments[p.name] for p in self._parameter_list if p.grad is not None}\n"
                "            moment = self.moments",
            "any_gradient",
        ),
        (
            "weights decay by the largest rate so far",
            "            parameter.set_value(parameter - self.get_lr() * change)",
            "            self.largest = max(self.get_lr(), getattr(self, 'largest', 0.0))\n"
            "            shrunk = self.largest * self.decay * parameter * float(is_decayed(parameter))\n"
            "            parameter.set_value(parameter - self.get_lr() * moment - shrunk)",
            "falls_to_zero",
        ),
        (
            "moments by shape", _MOMENT,
            "            moment = self.moments.get(str(parameter.shape), 0.0) * self.beta + parameter.grad\n"
                "            self.moments[str(parameter.shape)] = moment",
            "own_state",
        ),
        (
            "moments by the last part of a name", _MOMENT,
            "            moment = self.moments.get(parameter.name[-9:], 0.0) * self.beta + parameter.grad\n"
                "            self.moments[parameter.name[-9:]] = moment",
            "own_state",
        ),
        ("vectors decay", "float(is_decayed(parameter))", "float(not hasattr(parameter, 'no_decay'))",
         "spares_gains"),
        ("marks are not asked for", "float(is_decayed(parameter))", "float(parameter.ndim >= 2)", "spares_gains"),
        ("the rate of the first step for all", _STEP,
         "self.rate = self.__dict__.setdefault('rate', self.get_lr())\n            parameter.set_value(parameter - self.rate * "
         "change)", "later_rate"),
        ("the highest rate so far", _STEP,
         "self.rate = max(self.__dict__.get('rate', 0.0), self.get_lr())\n            parameter.set_value(parameter - "
         "self.rate * change)", "later_rate"),
        ("steps in proportion to 1 / gradient", _STEP,
         "parameter.set_value(parameter - self.get_lr() * change / (parameter.grad ** 2).mean().clip(min=1e-12))", "any_scale"),
        ("divided by a second moment in float16", _STEP,
         "square = (parameter.grad ** 2).astype('float16').astype('float32')\n"
         "            parameter.set_value(parameter - self.get_lr() * moment / (square.sqrt() + 1e-9))", "any_scale"),
    ],
    "schedule": [
        (
            "counts its calls", "return 1e-3 * min(step / self.warmup",
            "self.count = step = self.count + 1\n        return 1e-3 * min(step / self.warmup", "step_alone",
        ),
        ("below zero", "(self.warmup / step) ** 0.5)", "1.0 - step / 900)", "rates"),
        ("nothing in the first step", "min(step / self.warmup", "min((step - 1) / self.warmup", "rates"),
        ("integer division: zero until the end of the warm-up", "min(step / self.warmup,", "min(step // self.warmup,", "rates"),
        ("zero at the last step", "(self.warmup / step) ** 0.5)", "1.0 - step / 1000)", "rates"),
        ("a tensor of NumPy", "return 1e-3 * min(", "import numpy\n        return numpy.float32(1e-3) * min(", "rates"),
        ("two peaks that differ", "(self.warmup / step) ** 0.5)", "(self.warmup / step) ** 0.5 + (step > 500))",
         "continuous"),
        ("half of the peak is lost", "(self.warmup / step) ** 0.5)",
         "(self.warmup / step) ** 0.5 if step <= self.warmup else 0.5 * (self.warmup / step) ** 0.5)", "continuous"),
        (
            "nothing for 99 steps, then everything",
            "return 1e-3 * min(step / self.warmup, (self.warmup / step) ** 0.5)",
            "return 1e-3 * (self.warmup / step) ** 0.5 if step >= self.warmup else 1e-30", "rates",
        ),
        (
            "a division by the steps after the first",
            "    def __init__(self, warmup: int = 100):\n        self.warmup, self.count = warmup, 0\n\n"
                "    def __call__(self, step):\n" + _RATE,
            "    def __init__(self, steps, warmup: int = 100):\n        self.steps, self.warmup, self.count = steps, warmup, 0\n\n"
                "    def __call__(self, step):\n        return 1e-3 * max(0.1, 1.0 - (step - 1) / (self.steps - 1))",
            "rates",
        ),
        ("a warm-up by Python's own hash", "self.warmup, self.count = warmup, 0",
         "self.warmup, self.count = warmup + hash('twin') % 7, 0", "step_alone"),
    ],
    "optimizer/muon": [
        (
            "momentum as a moving average, but the Nesterov step of a sum",
            'momentum = state["momentum"].scale_(self.momentum).add_(gradient)',
            'momentum = state["momentum"].scale_(self.momentum).add_(gradient * (1.0 - self.momentum))',
            "inertia",
        ),
    ],
    "schedule/cosine": [
        ("the option peak is not read", "self.steps, self.peak, self.warmup, self.floor = steps, peak, warmup, floor",
         "self.steps, self.peak, self.warmup, self.floor = steps, 1e-3, warmup, floor", "peak"),
        (
            "it begins where the whole run stands, behind a warm-up of half of a short one", _COSINE,
            _COSINE.replace("self.floor = steps, peak, warmup, floor", "self.floor = steps, peak, min(100, steps // 2), floor")
                .replace("(step - top) / max(self.steps + 1 - top, 1)", "step / self.steps"),
            "continuous",
        ),
        ("the class holds what the newest one was told",
         "self.steps, self.peak, self.warmup, self.floor = steps",
         "type(self).steps, self.peak, self.warmup, self.floor = steps", "step_alone"),
    ],
    "optimizer/lion": [
        ("a decay that is off by default does not go by the rate", "decay_weights(parameter, rate, self.weight_decay)",
         "decay_weights(parameter, 1.0, self.weight_decay)", "follows_the_rate"),
        ("the rate of the schedule for all", "parameter.subtract_(direction * rate)",
         'parameter.subtract_(direction * (rate / parameter.optimize_attr["learning_rate"]))', "own_rate"),
        ("steps as long as the parameter", "parameter.subtract_(direction * rate)",
         "parameter.subtract_(direction * rate * parameter.norm())", "any_gradient"),
    ],
    "optimizer/schedule_free": [
        ("the rate of the schedule for half of the step", "z.subtract_(step * rate)",
         'z.subtract_(step * (rate / parameter.optimize_attr["learning_rate"]))', "own_rate"),
    ],
    "optimizer/radam": [
        ("one clock for all", "rectifier = rectification(self.beta2, t)",
         "self.clock = t = max(t, self.__dict__.get('clock', 0))\n        rectifier = rectification(self.beta2, t)", "late_start"),
    ],
    "optimizer/adafactor": [
        ("a decay by one clock", "beta = 1.0 - t**-self.decay",
         "self.clock = max(t, self.__dict__.get('clock', 0))\n        beta = 1.0 - self.clock**-self.decay", "late_start"),
    ],
    "initializer/mup": [
        (
            "smaller from draw to draw of a model", "std = 1.0 / site.factor",
            "self.count = (site.path[:6] == 'source' or self.count + 1)\n        std = self.count**-0.5 / site.factor",
            "own_values",
        ),
    ],
    "other_variants:Truncated": [
        ("all matrices get the same scale", 'deviation = shape[-1 if role == "embedding" else -2] ** -0.5',
         "deviation = 0.7", "initial_loss"),
    ],
    "other_variants:HeavyBall": [
        ("only the first parameter is handed to the rule",
         "paddle.optimizer.Momentum(0.0, self.momentum, parameters=list(parameters))",
         "paddle.optimizer.Momentum(0.0, self.momentum, parameters=list(parameters)[:1])", "lowers"),
        ("a learning rate of its own", "paddle.optimizer.Momentum(0.0, self.momentum, parameters=list(parameters))",
         "paddle.optimizer.Momentum(paddle.optimizer.lr.NoamDecay(64, 100), self.momentum, parameters=list(parameters))",
         "lowers"),
    ],
    "other_variants:Trapezoid": [
        ("jumps to the peak at the end", "return self.peak * min(1.0, up, down)",
         "return self.peak * (min(1.0, up, down) if step < 0.9 * self.steps else 1.0)", "continuous"),
    ],
}  # fmt: skip

UNREAD = {
    "schedule": [
        ("a warm-up of its own", "self.warmup, self.count = warmup, 0", "self.warmup, self.count = 100, 0", "warmup"),
        ("a warm-up that only the next line knows", "self.warmup, self.count = warmup, 0",
         "self.asked = warmup\n        self.warmup, self.count = 100, 0", "warmup"),
    ],
    "optimizer": [
        ("a decay of its own", "self.beta, self.decay = beta, decay\n\n    def create",
         "self.beta, self.decay = beta, 0.01\n\n    def create", "decay"),
    ],
    "initializer/normal": [
        ("a size of its own", "self.std = std", "self.std = 0.02", "std"),
    ],
}  # fmt: skip

RIGHT = {
    "schedule/cosine": [
        (
            "no run of 500 steps or fewer",
            (("        positive(steps=steps, peak=peak)\n",
              "        if steps <= 500:\n            raise ValueError(f'`steps` must be above 500, but is {steps}')\n"
              "        positive(steps=steps, peak=peak)\n"),),
        ),
    ],
    "optimizer": [
        ("the rate within the momentum", (
            ("self.beta + parameter.grad", "self.beta + self.get_lr() * parameter.grad"),
            ("change = moment + self.decay", "change = moment + self.get_lr() * self.decay"),
            ("parameter - self.get_lr() * change", "parameter - change"),
        )),
    ],
}  # fmt: skip
