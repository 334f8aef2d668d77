"""Pre-norm that makes its own norms: the twin of mutants of how they are kept."""

import paddle.nn.functional as F
from paddle import nn

from paddle_tfm.protocols import Placement


class Twin(Placement):
    final_norm = True

    def __init__(self, sites, norm, d_model, dropout):
        nn.Layer.__init__(self)
        norms = [norm(site, d_model) for site in sites]
        self.norms = nn.LayerList(norms)
        self.rate = dropout

    def forward(self, x, sublayers, info):
        for i, sublayer in enumerate(sublayers):
            branch = sublayer(self.norms[i](x, info.valid, info.positions))
            if self.training:
                branch = F.dropout(branch, self.rate) if self.rate else branch
            x = x + branch
        return x


Twin.expected_failures = {"repeatable": "its dropout draws from Paddle's generator"}
