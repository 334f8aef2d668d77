"""A feed-forward as LLaMA's code has it, with its names of sizes."""

import paddle.nn.functional as F
from paddle import nn


class Twin(nn.Layer):
    def __init__(self, dim, hidden_dim, multiple_of=256, dropout=0.0):
        super().__init__()
        hidden_dim = multiple_of * ((hidden_dim + multiple_of - 1) // multiple_of)
        self.w1 = nn.Linear(dim, hidden_dim, bias_attr=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias_attr=False)
        self.w3 = nn.Linear(dim, hidden_dim, bias_attr=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        gate = self.w1(x)
        gate = gate * F.sigmoid(gate)
        hidden = gate * self.w3(x)
        return self.dropout(self.w2(hidden))
