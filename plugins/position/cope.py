"""Contextual positions: how many words of some kind lie between, by gates."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.language import _
from paddle_tfm.protocols import LayerSite, PositionalEncoding, keep_initial, maps_as
from paddle_tfm.validators import between


class CoPE(PositionalEncoding):
    """Positions that count only the words that a query's gates let through (Golovneva 2024, arXiv:2405.18719).

    g_ik = sigmoid(q_i · k_k / sqrt(D)) says how much word k counts for query i; key j stands at p_ij = Σ g_ik over k
    from j to i, at most `positions` − 1; scores[i, j] += q_i · e[p_ij], where e between two rows of the table is
    interpolated. Each head counts for itself, all with one table [positions, D], and each layer has its own. The table
    starts at zero.

    The authors' released code (facebookresearch/RAM) is followed: the term is divided by sqrt(D) with the rest of the
    score. The listing at the end of their paper adds it after the division.

    q [B, H, Tq, D], k [B, H, Tk, D], positions [B|1, T] → [B, H, Tq, Tk]; keys must stand in the order of their
    positions. Words that are later than the query do not count; padding before a text would.

    Options: `positions` is the number of rows; None: max_length + 1, so that no count is cut off. The paper gets by
        with far fewer than the text has words.

    Raises:
        ValueError: the attention is not causal: what lies between a query and a key behind it is not defined;
            `positions` is not in [2, 1000000].
    """

    per_layer = True

    def __init__(self, head_dim: int, max_length: int, site: LayerSite, positions: int | None = None):
        super().__init__()
        if not site.causal:
            raise ValueError(
                _(
                    "it counts words back from the query, but {stack}.{sublayer} also looks ahead; choose it where "
                    "attention is causal: {{encoder: rotary, decoder: cope}}"
                ).format(stack=site.stack, sublayer=site.sublayer)
            )
        between("[2, 1000000]", positions=positions)
        rows = max_length + 1 if positions is None else positions
        zero = nn.initializer.Constant(0.0)
        self.table = maps_as(keep_initial(self.create_parameter([rows, head_dim], default_initializer=zero)), None)

    def scores(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        q, k = q.astype(self.table.dtype), k.astype(self.table.dtype)
        past = q_positions.unsqueeze([1, 3]) >= k_positions.unsqueeze([1, 2])  # [B|1, 1, Tq, Tk]
        gates = F.sigmoid(paddle.matmul(q, k, transpose_y=True) / q.shape[-1] ** 0.5) * past.astype(q.dtype)
        rows = min(self.table.shape[0], k.shape[2] + 1)  # no count is above the number of keys
        count = gates.flip([-1]).cumsum(-1).flip([-1]).clip(max=rows - 1)  # [B, H, Tq, Tk]
        lower = count.detach().floor().clip(max=rows - 2)  # of two rows, the second at the end of the table
        at_rows = paddle.matmul(q, self.table[:rows], transpose_y=True)  # [B, H, Tq, rows]
        index, share = lower.astype("int64"), count - lower
        below, above = (paddle.take_along_axis(at_rows, at, -1) for at in (index, index + 1))
        return below + (above - below) * share
