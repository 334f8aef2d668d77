"""Post-norm: the twin of mutants of a placement."""

from paddle_tfm.protocols import Placement


class Twin(Placement):
    def wrap(self, i, x, sublayer, info):
        return self.norms[i](x + self.drops[i](sublayer(x)), info.valid, info.positions)
