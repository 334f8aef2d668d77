"""Wrong and right whole models."""

WRONG = {
    "transformer": [
        (
            "no causal mask", "paddle.tril(paddle.ones([tgt.shape[1], tgt.shape[1]]))",
            "paddle.ones([tgt.shape[1], tgt.shape[1]])", "causal",
        ),
        (
            "causal mask off by one", "paddle.tril(paddle.ones([tgt.shape[1], tgt.shape[1]]))",
            "paddle.tril(paddle.ones([tgt.shape[1], tgt.shape[1]]), 1)", "causal",
        ),
        ("the causal mask turned around", "paddle.tril(", "paddle.triu(", "causal"),
        ("padding seen by the encoder", "x = layer(x, real)", "x = layer(x, paddle.ones_like(real))", "padding"),
        ("padding seen across", "y = layer(y, past, x, real)", "y = layer(y, past, x, paddle.ones_like(real))", "padding"),
        ("inverted mask", "real = (src != self.pad_idx)", "real = (src == self.pad_idx)", "padding"),
        ("plus sqrt(d_model)", "table(ids) * math.sqrt(self.d_model)", "table(ids) + math.sqrt(self.d_model)", "magnitude"),
        (
            "one position's vector for all", "return x + self.positions(ids.shape[1])",
            "return x + self.positions(ids.shape[1])[-1]", "order_matters",
        ),
        ("no positions", "return x + self.positions(ids.shape[1])", "return x", "order_matters"),
        (
            "missing residual", "norm(x + F.dropout(branch, self.rate, training=self.training))",
            "norm(F.dropout(branch, self.rate, training=self.training))", "residual",
        ),
        (
            "missing residual in the encoder", "norm(x + F.dropout", "norm(x * float(self.across is not None) + F.dropout",
            "residual",
        ),
        (
            "missing residual in the decoder", "norm(x + F.dropout", "norm(x * float(self.across is None) + F.dropout",
            "residual",
        ),
        (
            "one norm shared by three sublayers", "[nn.LayerNorm(d_model) for _ in range(3 if decoder else 2)]",
            "[nn.LayerNorm(d_model)] * 3", "own_norms",
        ),
        (
            "BatchNorm in the decoder", "nn.LayerNorm(d_model) for _",
            "(nn.BatchNorm1D(d_model, data_format='NLC') if decoder else nn.LayerNorm(d_model)) for _",
            "causal_in_training",
        ),
        (
            "BatchNorm that counts padding", "nn.LayerNorm(d_model) for _",
            "nn.BatchNorm1D(d_model, data_format='NLC') for _", "padding_in_training",
        ),
        (
            "cross-attention looks at the target", "self.across(x, memory, memory_mask)", "self.across(x, x, mask)",
            "attends",
        ),
        (
            "the encoder in a plain list", "self.encoder, self.decoder = nn.LayerList(encoder), nn.LayerList(decoder)",
            "self.encoder, self.decoder = encoder, nn.LayerList(decoder)", "registered",
        ),
        ("one layer again and again", "y = layer(y, past, x, real)", "y = self.decoder[0](y, past, x, real)", "trains"),
        ("a softmax before the loss", "return self.output(y)", "return F.softmax(self.output(y), -1)", "shapes"),
        ("dropout in evaluation", "self.rate, training=self.training)", "self.rate)", "evaluation"),
        (
            "U(-1, 1)", "normal = nn.initializer.Normal(0.0, d_model**-0.5)", "normal = nn.initializer.Uniform(-1.0, 1.0)",
            "initial_loss",
        ),
        (
            "time taken for the batch", "x = self.embed(src, self.source)",
            "x = self.embed(src, self.source)\n        x = x + x.mean(0, keepdim=True)", "neighbours",
        ),
        ("minus infinity", "paddle.full_like(scores, -1e9)", "paddle.full_like(scores, float('-inf'))", "masked_rows"),
        ("the output cut off from the gradient", "return self.output(y)", "return self.output(y.detach())", "trains"),
        (
            "statistics of the batch instead of the token",
            "return norm(x + F.dropout(branch, self.rate, training=self.training))",
            "y = x + F.dropout(branch, self.rate, training=self.training)\n"
                "        return norm(y) + y.mean(0, keepdim=True)",
            "neighbours",
        ),
        (
            "one object for all layers", "[Layer(d_model, num_heads, d_ff, dropout, True) for _ in range(num_layers)]",
            "[Layer(d_model, num_heads, d_ff, dropout, True)] * num_layers", "registered",
        ),
        (
            "a causal mask of 32",
            "past = paddle.tril(paddle.ones([tgt.shape[1], tgt.shape[1]])).astype(\"bool\")",
            "past = paddle.ones([tgt.shape[1], tgt.shape[1]])\n        past[:32, :32] = "
                "paddle.tril(past[:32, :32])\n        past = past.astype(\"bool\")",
            "causal",
        ),
        (
            "one position's vector for all but the first", "return x + self.positions(ids.shape[1])",
            "return x + self.positions(ids.shape[1])[paddle.arange(ids.shape[1]).clip(max=1)]", "order_matters",
        ),
        ("dropout that nothing calls", "norm(x + F.dropout(branch, self.rate, training=self.training))",
         "norm(x + branch)", "dropout"),
        ("the encoder's output kept by the shape", "        for layer in self.encoder:\n            x = layer(x, real)",
         "        for layer in self.encoder:\n            x = layer(x, real)\n"
         "        x = x if self.training else self.__dict__.setdefault('kept', {}).setdefault(tuple(src.shape), x)", "stateless"),
        (
            "the target is shifted a second time", "    def forward(self, src, tgt):",
            "    def forward(self, src, tgt):\n        tgt = paddle.concat([tgt[:, :1], tgt[:, :-1]], 1)", "newest_word",
        ),
    ],
}  # fmt: skip

RIGHT = {
    "transformer": [
        (
            "its last matrix begins at zero, and F.dropout has a rate of its own",
            (("tgt_vocab_size, weight_attr=normal)\n\n", "tgt_vocab_size, weight_attr=nn.initializer.Constant(0.0))\n\n"),
             ("F.dropout(branch, self.rate, training", "F.dropout(branch, 0.1, training"),
             (", d_ff, dropout=0.1, pad_idx=0)", ", d_ff, pad_idx=0)"),
             ("        self.d_model, self.pad_idx", "        dropout = 0.1\n        self.d_model, self.pad_idx")),
        ),
        (
            "gates that begin shut, as ReZero's",
            (("        self.rate = dropout", "        self.gate, self.rate = self.create_parameter([1], is_bias=True), dropout"),
             ("return norm(x + F.dropout(branch, self.rate, training=self.training))",
              "return x + self.gate * F.dropout(norm(branch), self.rate, training=self.training)")),
        ),
        (
            "a causal mask that is kept, and logits [B · T, V]",
            (("past = past.unsqueeze", "self.past = past\n        past = past.unsqueeze"),
             ("return self.output(y)", "return self.output(y).flatten(0, 1)")),
        ),
        (
            "an output matrix of variance 1.3 / width",
            (("tgt_vocab_size, weight_attr=normal)\n\n", "tgt_vocab_size, weight_attr=nn.initializer.Normal(0.0, 0.2))\n\n"),),
        ),
    ],
}  # fmt: skip
