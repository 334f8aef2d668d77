"""Pre-norm: the twin of mutants of a placement."""

from paddle_tfm.protocols import Placement


class Twin(Placement):
    final_norm = True

    def wrap(self, i, x, sublayer, info):
        normed = self.norms[i](x, info.valid, info.positions)
        return x + self.drops[i](sublayer(normed))
