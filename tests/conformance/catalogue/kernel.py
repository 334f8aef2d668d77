"""Wrong kernels."""

_CENTRED = "self.centred = x - (x * self.share).sum(1, keepdims=True)"
_PLAIN = "call.plain(Linear, layer.inner, layer.output) and call.plain(Dropout, layer.dropout)"

WRONG = {
    "kernel": [
        ("off by a scale", "self.centred * self.weight + bias)", "self.centred * (1.001 * self.weight) + bias)",
         "same_as_formula"),
        ("forgets the bias", "self.centred * self.weight + bias)", "self.centred * self.weight)", "same_as_formula"),
        ("ignores padding", 'real = valid.numpy()[..., None].astype("float32")',
         'real = np.ones([*valid.shape, 1], "float32")', "same_as_formula"),
        ("wrong in the last rows, behind blocks of four", _CENTRED,
         f"{_CENTRED}\n        if (rest := x.shape[1] % 4) < x.shape[1]:\n"
         "            self.centred[:, x.shape[1] - rest :] = x[:, x.shape[1] - rest :]", "same_as_formula"),
        ("wrong where there is one row", _CENTRED, f"{_CENTRED}\n        self.centred *= 1 + 0.01 * (len(x) == 1)",
         "same_as_formula"),
        ("only the gradient is wrong: the mean has none", "of_x = up - self.share * up.sum(1, keepdims=True)", "of_x = up",
         "same_as_formula"),
        ("the gradient of a bias is that of the last sentence", "g.sum((0, 1))\n", "g[-1].sum(0)\n", "same_as_formula"),
        ("fits one token only", 'call.mode.phase == "step" and', "call.args[1].size == 1 and", "fits"),
        ("keeps the weights of its first call", "*inputs):\n        x, self.weight, bias = (each.numpy() for each in inputs)\n",
         "*inputs, kept={}):\n        x, self.weight, bias = (each.numpy() for each in inputs)\n"
         "        self.weight = kept.setdefault(inputs[1].name, self.weight)\n", "no_stale_weights"),
        ("keeps weights by their version", "*inputs):\n        x, self.weight, bias = (each.numpy() for each in inputs)\n",
         "*inputs, kept={}):\n        x, self.weight, bias = (each.numpy() for each in inputs)\n"
         "        self.weight = kept.setdefault((inputs[1].name, inputs[1].inplace_version), self.weight)\n",
         "no_stale_weights"),
        ("keeps weights in the cache without the tensor", "return function.apply(_Function(valid), x,",
         "computed, weight = _Function(valid), paddle.to_tensor(call.layer.weight.numpy())\n"
         "        computed.forward = lambda x, _, bias: _Function.forward(computed, x, call.cache.setdefault(0, weight), bias)\n"
         "        return function.apply(computed, x,", "no_stale_weights"),
        ("the input is centred in place", "(each.numpy() for each in inputs)\n        self.centred = x - ",
         "(np.from_dlpack(each.detach()) for each in inputs)\n        self.centred = x\n        x -= ",
         "arguments_unchanged"),
        ("the gradient is multiplied in place", "up = g * self.weight", "up = np.from_dlpack(gradient.detach())\n        up *= self.weight",
         "arguments_unchanged"),
    ],
    "kernel_parts": [
        ("draws its own numbers", "survives = draw(0, count).reshape(hidden.shape)",
         "survives = paddle.rand(hidden.shape).numpy() >= layer.dropout.rate", "draws"),
        ("what survives is not divided", " * layer.dropout.factor", "", "draws"),
        ("an adapter in the place of a part is not seen", f"return {_PLAIN}", "return True", "subclass_is_not_caught"),
        ("hooks of parts are not called", _PLAIN,
         "type(layer.inner) is type(layer.output) is Linear and type(layer.dropout) is Dropout", "hooks_are_called"),
    ],
    "kernel_own_draws": [
        ("drops less than it says", ".random(x.shape) >= rate", ".random(x.shape) >= rate / 2", "draws"),
        ("drops whole rows", ".random(x.shape) >= rate", ".random([len(x), 1]) + np.zeros(x.shape) >= rate", "draws"),
    ],
    "kernel_by_address": [
        ("reads beyond its argument", "self.x = _at(x.ctypes.data, x.size)",
         "self.x = _at(x.ctypes.data, x.size + 1)[:-1]", "in_bounds"),
        ("reads before its argument", "self.x = _at(x.ctypes.data, x.size)",
         "self.x = _at(x.ctypes.data - 4, x.size + 1)[1:]", "in_bounds"),
        ("takes a signal for the end of what it waits for", "(self.x**3).reshape(x.shape)",
         "(self.x**3 if _LIBC.poll(None, 0, 1) == 0 else self.x).reshape(x.shape)", "signals"),
        ("computes in a thread that no fork has", "self.x = _at(x.ctypes.data, x.size)",
         "self.x = _POOL.submit(_at, x.ctypes.data, x.size).result()", "forks"),
    ],
}  # fmt: skip
