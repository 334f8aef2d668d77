"""Two matrices with a ReLU between them: the twin of mutants of a feed-forward sublayer."""

import paddle  # noqa: F401  (mutants use it)
import paddle.nn.functional as F
from paddle import nn

from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import FeedForward
from paddle_tfm.validators import one_of  # noqa: F401  (mutants use it)


class Twin(FeedForward):
    def __init__(self, d_model: int, d_ff: int, dropout: float):
        super().__init__()
        layers = [Linear(d_model, d_ff), Linear(d_ff, d_model)]
        self.layers = nn.LayerList(layers)
        self.dropout = Dropout(dropout)

    def forward(self, x, info, tap):
        hidden = F.relu(self.layers[0](x))
        hidden = self.dropout(hidden)
        return self.layers[1](hidden)

    def branch_weights(self):
        return [layer.weight for layer in self.layers]
