"""Wrong and right feed-forward sublayers."""

from catalogue.rounding import through

_HIDDEN = "hidden = self.dropout(hidden)"
_SWITCH = """    def __init__(self, d_model: int, d_ff: int, dropout: float):
        super().__init__()
        layers = [Linear(d_model, d_ff), Linear(d_ff, d_model)]
        self.layers = nn.LayerList(layers)
        self.dropout = Dropout(dropout)"""


WRONG = {
    "ordinary_feed_forward": [
        ("no activation", "        hidden = gate * self.w3(x)\n", "        hidden = self.w1(x) + self.w3(x)\n", "nonlinear"),
        ("a softmax over time for a gate", "F.sigmoid(gate)", "F.softmax(gate, 1)", "causal"),
        ("a layer in a plain list", "hidden = gate * self.w3(x)", "hidden = gate * [self.w3][0](x).detach()", "trains"),
        ("dropout that is never called", "self.dropout(self.w2(hidden))", "self.w2(hidden)", "dropout"),
        ("a width of its own", "        hidden_dim = multiple_of *", "        hidden_dim = 64\n        hidden_dim = multiple_of *", "width"),
    ],
    "feed_forward": [
        ("layers in a plain list", "self.layers = nn.LayerList(layers)", "self.layers = layers", "registered"),
        ("no activation", "F.relu(self.layers[0](x))", "self.layers[0](x)", "nonlinear"),
        (
            "a softmax over time", "F.relu(self.layers[0](x))",
            "F.relu(self.layers[0](x)) * F.softmax(self.layers[0](x), 1)", "position_wise",
        ),
        (
            "dropout in evaluation", "hidden = self.dropout(hidden)",
            "hidden = F.dropout(hidden, self.dropout.rate) if self.dropout.rate else hidden", "evaluation",
        ),
        (
            "the mean over the batch added", "return self.layers[1](hidden)",
            "return self.layers[1](hidden + hidden.mean(0, keepdim=True))", "neighbours",
        ),
        (
            "exp that overflows", "F.relu(self.layers[0](x))",
            "self.layers[0](x).exp() / (1.0 + self.layers[0](x).exp())", "extremes",
        ),
        ("doubled in place in training", "def forward(self, x, info, tap):",
         "def forward(self, x, info, tap):\n        x = x.scale_(2.0) if self.training else x * 2.0",
         "inputs_unchanged"),
        ("an activation at the end", "return self.layers[1](hidden)", "return F.relu(self.layers[1](hidden))",
         "both_signs"),
        ("dropout that nothing calls", "hidden = self.dropout(hidden)", "hidden = hidden * 1.0", "dropout"),
        (
            "rounded by the largest number of the batch", "hidden = F.relu(self.layers[0](x))",
            "step = x.abs().max() / 127\n        hidden = F.relu(self.layers[0](x + ((x / step).round() * step - "
                "x).detach()))",
            "precision",
        ),
        (
            "a width of its own", "layers = [Linear(d_model, d_ff), Linear(d_ff, d_model)]",
            "layers = [Linear(d_model, 4 * d_model), Linear(4 * d_model, d_model)]", "width",
        ),
        ("GELU after the last matrix", "return self.layers[1](hidden)", "return F.gelu(self.layers[1](hidden))",
         "both_signs"),
        (
            "dropout without its factor", "hidden = self.dropout(hidden)",
            "hidden = self.dropout(hidden) * (1.0 - self.dropout.rate if self.training else 1.0)", "dropout",
        ),
        (
            "no dropout with a switch the other way", _SWITCH,
            _SWITCH.replace("dropout: float)", "dropout: float, wide: bool = False)")
                .replace("Dropout(dropout)", "Dropout(0.0 if wide else dropout)"),
            "choices",
        ),
        (
            "no dropout at one of the choices that the constructor names", _SWITCH,
            _SWITCH.replace("dropout: float)", 'dropout: float, way: str = "plain")')
                .replace("super().__init__()", 'super().__init__()\n        one_of(("plain", "other"), way=way)')
                .replace("Dropout(dropout)", 'Dropout(0.0 if way == "other" else dropout)'),
            "choices",
        ),
        ("hidden units in float16", "hidden = self.dropout(hidden)",
         f"hidden = self.dropout({through('float16', 'hidden')})", "smooth"),
        ("the input in bfloat16", "F.relu(self.layers[0](x))", f"F.relu(self.layers[0]({through('bfloat16', 'x')}))",
         "smooth"),
        (
            "nothing of the 129th token and those behind it", "return self.layers[1](hidden)",
            "behind = max(0, hidden.shape[1] - 128)\n"
                "        return self.layers[1](F.pad(hidden[:, :128], [0, 0, 0, behind, 0, 0]))",
            "position_wise",
        ),
        (
            "each token and the one before it, which decoding does not keep", "F.relu(self.layers[0](x))",
            "F.relu(self.layers[0](x + F.pad(x[:, :-1], [0, 0, 1, 0, 0, 0])))", "cached",
        ),
        (
            "the tokens of a batch after the 200th have no room", "return self.layers[1](hidden)",
            "room = paddle.arange(x.shape[0] * x.shape[1]).reshape(x.shape[:2]) < 200\n"
            "        return self.layers[1](hidden) * room.astype(x.dtype).unsqueeze(-1)",
            "neighbours",
        ),
        (
            "large numbers are clipped in place where nothing is differentiated",
            "hidden = F.relu(self.layers[0](x))",
            "x = x.clip(-4.0, 4.0) if paddle.is_grad_enabled() else x.clip_(-4.0, 4.0)\n"
            "        hidden = F.relu(self.layers[0](x))",
            "inputs_unchanged",
        ),
        ("a sum where a mean is meant", _HIDDEN,
         _HIDDEN + "\n        tap.add_aux_loss('size', 0.01 * (hidden * hidden * info.valid.astype(hidden.dtype)"
         ".unsqueeze(-1)).sum())", "aux_losses"),
        ("sizes of training's batches in a list", _HIDDEN,
         _HIDDEN + "\n        if self.training:\n            self.__dict__.setdefault('sizes', []).append(float(hidden.abs()"
         ".mean()))", "stateless"),
    ],
    "feed_forward/token_shift": [
        ("it reads the token before without saying so", "reach = 1", "reach = 0", "position_wise"),
    ],
    "feed_forward/canon": [
        ("decoding does not keep what it reads", "self.reach = self.canon.reach", "self.reach = 0", "cached"),
        ("it does not read what decoding keeps", "window, mixed = info.window(h, self.reach), h",
         "window, mixed = TokenInfo(info.encoding, info.positions, info.valid).window(h, self.reach), h", "cached"),
    ],
    "feed_forward/mixture_of_experts": [
        (
            "padding counts in the mean router probability of the balance loss",
            'mean = sum_over_ranks((p * valid.astype(p.dtype)).sum(0)) / tokens',
            'mean = p.mean(0)',
            "padding_in_training",
        ),
        (
            "a router behind the limit that excuses experts",
            "p = affinities(tokens, self.router, F.softmax)", "p = affinities(tokens, self.router, F.softmax).detach()", "trains",
        ),
    ],
    "feed_forward/relu_squared": [
        (
            "squared before the ReLU",
            'return paddle.square(F.relu(x))',
            'return F.relu(paddle.square(x))',
            "sign",
        ),
    ],
    "other_variants:Bottleneck": [
        ("a dropout of its own whose factor is taken back", "self.own_drop(F.relu(self.wide(x)))",
         "self.own_drop(F.relu(self.wide(x))) * (1.0 - self.own_drop.rate if self.training else 1.0)", "dropout"),
        ("units that are left out and never made up for", "self.own_drop(F.relu(self.wide(x)))",
         "F.relu(self.wide(x)) * (self.own_drop(paddle.ones([*x.shape[:2], self.wide.weight.shape[1]])) > 0).astype(x.dtype)",
         "dropout"),
    ],
    "other_variants:Mish": [
        ("the hidden layer is normalized over tokens", "u = self.inner(x)\n",
         "u = self.inner(x)\n        u = u - u.mean(1, keepdim=True)\n", "causal"),
    ],
    "other_variants:Maxout": [
        ("half of it is dead: maximum with itself", "paddle.maximum(self.a(x), self.b(x))",
         "paddle.maximum(self.a(x), self.a(x))", "trains"),
    ],
    "other_variants:SoftExperts": [
        ("the router's softmax runs over tokens", "share = F.softmax(self.router(x), -1)",
         "share = F.softmax(self.router(x), 1)", "causal"),
        ("the router gets no gradient", "F.softmax(self.router(x), -1)", "F.softmax(self.router(x), -1).detach()",
         "trains"),
    ],
}  # fmt: skip

UNREAD = {
    "feed_forward/mixture_of_experts": [
        ("a balance loss of its own", "self.top_k, self.balance_weight = top_k, balance_weight",
         "self.top_k, self.balance_weight = top_k, 0.01", "balance_weight"),
        ("no dropout inside", "bias=bias, inner_dropout=inner_dropout)", "bias=bias)",
         "inner_dropout"),
    ],
}  # fmt: skip

RIGHT = {
    "ordinary_feed_forward": [
        (
            "in_features and hidden_features, and GELU",
            (("dim, hidden_dim, multiple_of=256, dropout=0.0", "in_features, hidden_features, drop=0.0"),
             ("        hidden_dim = multiple_of * ((hidden_dim + multiple_of - 1) // multiple_of)\n",
              "        dim, hidden_dim, dropout = in_features, hidden_features, drop\n"),
             ("        hidden = gate * self.w3(x)", "        hidden = F.gelu(self.w3(x)) + 0.1 * gate")),
        ),
    ],
    "feed_forward": [
        ("units that are on or off", (
            ("hidden = self.dropout(hidden)", "hidden = self.dropout(hidden * (hidden > 0.3).astype(hidden.dtype))"),
        )),
        ("units in the order of their size", (("F.relu(self.layers[0](x))", "F.relu(self.layers[0](x)).sort(-1)"),)),
        ("units rounded to 15 steps, and it says so", (
            ("class Twin(FeedForward):", "class Twin(FeedForward):\n    expected_failures = {'smooth': 'units have 4 bits', "
             "'gradients': 'as if not rounded'}"),
            ("hidden = self.dropout(hidden)",
             "hidden = self.dropout(hidden + (((8 * hidden).round() / 8).clip(max=15 / 8) - hidden).detach())"),
        )),
        ("a loss that is a mean over real tokens", (
            (_HIDDEN, _HIDDEN + "\n        real = info.valid.astype(hidden.dtype).unsqueeze(-1)\n"
             "        size = (hidden * hidden * real).sum() / (hidden.shape[-1] * real.sum()).clip(min=1.0)\n"
             "        tap.add_aux_loss('size', 0.01 * size)"),
        )),
    ],
}  # fmt: skip
