"""Wrong and right placements."""

from catalogue.rounding import through

_SUM = """        self.rate = dropout{more}

    def forward(self, x, sublayers, info):
        for i, sublayer in enumerate(sublayers):
            branch = sublayer(self.norms[i](x, info.valid, info.positions))
            if self.training:
                branch = F.dropout(branch, self.rate) if self.rate else branch
            x = x + branch{scale}"""


def _paths(rate: float, kept: str) -> str:
    """Stochastic depth's layers of such a rate, and its branches times what is `kept`."""
    return (
        f"self.paths = nn.LayerList([Dropout({rate}) for _ in sites])\n\n    def wrap(self, i, x, sublayer, info):\n"
        "        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n"
        f"        return x + branch * {kept}"
    )


_PATHS = _paths(0.5, "self.paths[i](paddle.ones([x.shape[0], 1, 1], x.dtype))")

WRONG = {
    "pre": [
        ("one norm shared by all sublayers", "self.norms[i]", "self.norms[0]", "own_norms"),
        (
            "missing residual", "return x + self.drops[i](sublayer(normed))", "return self.drops[i](sublayer(normed))",
            "identity_path",
        ),
        ("the residual is the normalized input", "return x + ", "return normed + ", "identity_path"),
        (
            "post under the name pre", "return x + self.drops[i](sublayer(normed))",
            "return self.norms[i](x + self.drops[i](sublayer(x)), info.valid, info.positions)", "identity_path",
        ),
        ("no final norm", "final_norm = True", "final_norm = False", "output_normalized"),
        (
            "a sublayer called twice", "self.drops[i](sublayer(normed))",
            "self.drops[i](sublayer(normed) + sublayer(normed))", "each_branch_once",
        ),
        (
            "a sublayer's output thrown away", "return x + self.drops[i](sublayer(normed))",
            "branch = self.drops[i](sublayer(normed))\n        return x + branch if i else x + 0 * branch",
            "each_branch_once",
        ),
        (
            "norms are not told what is real", "self.norms[i](x, info.valid, info.positions)", "self.norms[i](x)",
            "norm_arguments",
        ),
        (
            "the branch cut off from the gradient", "self.drops[i](sublayer(normed))",
            "self.drops[i](sublayer(normed.detach()))", "gradients",
        ),
        ("the mean over time added", "return x + ", "return x + x.mean(1, keepdim=True) * 0.1 + ", "causal"),
        (
            "dropout on the residual", "return x + self.drops[i](sublayer(normed))",
            "return self.drops[i](x + sublayer(normed))", "identity_path",
        ),
        (
            "a sublayer twice in training", "return x + self.drops[i](sublayer(normed))",
            "x = x + sublayer(normed) * 0.5 if self.training else x\n        return x + self.drops[i](sublayer(normed))",
            "each_branch_once",
        ),
        (
            "validity and positions exchanged", "self.norms[i](x, info.valid, info.positions)",
            "self.norms[i](x, info.positions, info.valid)", "norm_arguments",
        ),
        ("the residual in bfloat16", "return x + ", f"return {through('bfloat16', 'x')} + ", "smooth"),
    ],
    "post": [
        (
            "a final norm that it does not need", "class Twin(Placement):",
            "class Twin(Placement):\n    final_norm = True", "identity_path",
        ),
    ],
    "own_placement": [
        ("norms in a plain list", "self.norms = nn.LayerList(norms)", "self.norms = norms", "registered"),
        ("dropout in evaluation", "if self.training:", "if self.rate:", "evaluation"),
        (
            "only the first sublayer", "for i, sublayer in enumerate(sublayers):",
            "for i, sublayer in enumerate(sublayers[:-1]):", "each_branch_once",
        ),
        (
            "backwards in training", "for i, sublayer in enumerate(sublayers):",
            "for i, sublayer in list(enumerate(sublayers))[:: -1 if self.training else 1]:", "each_branch_once",
        ),
        (
            "the rate that nothing uses", "F.dropout(branch, self.rate) if self.rate else branch", "branch",
            "dropout",
        ),
        ("the residual of the first sublayer for all", "            x = x + branch\n        return x",
         "            first = first if i else x\n            x = first + branch\n        return x",
         "each_branch_once"),
        ("dropout without its factor", "F.dropout(branch, self.rate)",
         "F.dropout(branch, self.rate, mode='downscale_in_infer')", "left_out"),
        ("branches in float16", "            x = x + branch", f"            x = x + {through('float16', 'branch')}",
         "smooth"),
        (
            "a table of scales that the initializer draws again", _SUM.format(more="", scale=""),
            _SUM.format(
                more="\n        self.scales = self.create_parameter([3, d_model], default_initializer=nn.initializer.Constant(0.1))",
                scale=" * self.scales[i]",
            ),
            "own_start",
        ),
    ],
    "placement/peri": [
        (
            "the norm of the embeddings stands in every layer",
            'norm(sites[0], d_model) if sites[0].layer == 0 else None',
            'norm(sites[0], d_model)',
            "identity_path",
        ),
    ],
    "placement/pre": [
        (
            "a branch that is too large is scaled down by sizes of the whole text",
            "return x + self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))",
            "branch = sublayer(self.norms[i](x, info.valid, info.positions))\n"
            "        sizes = [(each * each).mean([1, 2], keepdim=True).sqrt() for each in (x, branch)]\n"
            "        return x + self.drops[i](branch * (5 * sizes[0] / (sizes[1] + 1e-12)).clip(max=1.0).detach())",
            "other_sizes",
        ),
    ],
    "placement/attention_residuals": [
        ("a softmax over tokens", "* scale, 2)", "* scale, 1)", "causal"),
        ("the embedded token alone is kept", "past = [x[:, :, 1:], new] if", "past = [x[:, :, 1:2], new] if",
         "each_branch_once"),
    ],
    "placement_variants:BothEnds": [
        ("the residual comes from the normed input", "return x + self.drops[i](branch)\n\n\nclass GatedBranches",
         "x = self.norms[i](x, info.valid, info.positions)\n        return x + self.drops[i](branch)\n\n\nclass GatedBranches",
         "own_norms"),
    ],
    "placement_variants:GatedBranches": [
        ("the residual is forgotten", "return x + self.gates[i] *", "return self.gates[i] *", "each_branch_once"),
    ],
    "placement_variants:StrongResidual": [
        ("the sublayer runs twice in training", "strong = 2.0 * x + self.drops[i](sublayer(x))",
         "strong = 2.0 * x + self.drops[i](sublayer(sublayer(x) if self.training else x))", "modes"),
        ("the branch is not dropped", "strong = 2.0 * x + self.drops[i](sublayer(x))",
         "strong = 2.0 * x + sublayer(x)", "dropout"),
    ],
    "placement_variants:PreThenPost": [
        ("cross-attention is skipped in training", "if i < len(self.norms) - 1:\n",
         "if self.training and i == 1 and len(self.norms) == 3:\n            return x\n        if i < len(self.norms) - 1:\n",
         "trains"),
    ],
    "placement_variants:SqrtHalf": [
        ("a mean in the place of a sum", "info.positions)))) * 0.5**0.5", "info.positions)))) * 0.5", "identity_path"),
        ("branches alone keep their variance, and the residual is of the norm", "return (x + self.drops",
         "return (self.norms[i](x, info.valid, info.positions) + self.drops", "identity_path"),
    ],
    "placement_variants:Halves": [
        ("the gate's gradient is cut off", "sigmoid(self.w[i])", "sigmoid(self.w[i].detach())", "trains"),
    ],
    "placement_variants:MoreDropout": [
        ("the same norm for each sublayer",
         "branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))\n        return x + self.more[i](branch)",
         "branch = self.drops[i](sublayer(self.norms[0](x, info.valid, info.positions)))\n        return x + self.more[i](branch)",
         "trains"),
    ],
    "placement_variants:StochasticDepth": [
        ("branches of a tenth of the sentences are left out, and never made up for",
         _PATHS,
         _paths(0.1, "(self.paths[i](paddle.ones([x.shape[0], 1, 1])) > 0).astype(x.dtype)"),
         "left_out"),
        ("a branch is left out for the whole batch, and never made up for",
         _PATHS,
         _paths(0.1, "(self.paths[i](paddle.ones([1, 1, 1])) > 0).astype(x.dtype)"),
         "left_out"),
        ("channels are left out, and never made up for",
         _PATHS,
         _paths(0.2, "(self.paths[i](paddle.ones(x.shape)) > 0).astype(x.dtype)"),
         "left_out"),
        ("made up for twice",
         _PATHS,
         _paths(0.2, "self.paths[i](paddle.ones([x.shape[0], 1, 1], x.dtype)) / (1.0 - self.paths[i].rate if self.training else 1.0)"),
         "left_out"),
        ("made up for in training and in evaluation",
         _PATHS,
         _paths(0.2, "self.paths[i](paddle.ones([x.shape[0], 1, 1], x.dtype)) * (1.0 if self.training else 1.0 - self.paths[i].rate)"),
         "left_out"),
        ("the rate taken for the share that stays",
         _PATHS,
         _paths(0.1, "(self.paths[i](paddle.ones([x.shape[0], 1, 1])) > 0).astype(x.dtype) / (self.paths[i].rate if self.training and self.paths[i].rate else 1.0)"),
         "left_out"),
    ],
}  # fmt: skip

RIGHT = {
    "placement/attention_residuals": [
        ("sigmoids, which do not compete", (("F.softmax(paddle.matmul(outputs, self.queries[i]) * scale, 2)",
                                             "F.sigmoid(paddle.matmul(outputs, self.queries[i]) * scale)"),)),
    ],
    "own_placement": [
        ("weights of depth that belong to the method", (
            ("        self.rate = dropout",
             "        self.rate = dropout\n        from paddle_tfm.protocols import keep_initial\n"
             "        self.weights = keep_initial(self.create_parameter([2], "
             "default_initializer=nn.initializer.Constant(1.0)))"),
            ("            x = x + branch\n        return x", "            x = self.weights[0] * x + self.weights[1] * branch\n        return x"),
        )),
    ],
}  # fmt: skip
