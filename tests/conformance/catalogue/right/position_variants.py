"""Right positional encodings that the zoo does not have, or has in another form."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from paddle_tfm.layers import Linear
from paddle_tfm.protocols import PositionalEncoding, keep_initial


def distance(q_positions, k_positions):
    return k_positions.unsqueeze(1) - q_positions.unsqueeze(2)  # j − i, [B|1, Tq, Tk]


class SinesThenCosines(PositionalEncoding):
    """Sinusoids with all sines before all cosines, as in tensor2tensor's code of arXiv:1706.03762."""

    def __init__(self, d_model):
        super().__init__()
        steps = 10000.0 ** (-np.arange(d_model // 2) / (d_model // 2))
        self.register_buffer("rates", paddle.to_tensor(steps.astype("float32")), persistable=False)

    def embed(self, x, positions):
        angle = positions.unsqueeze(-1).astype("float32") * self.rates
        return x + paddle.concat([paddle.sin(angle), paddle.cos(angle)], -1)


class LogDistance(PositionalEncoding):
    """bias = −r_1 log(1 + r_2 |i − j|), r ≥ 0 learned a head (Kerple, arXiv:2205.09921)."""

    def __init__(self, num_heads):
        super().__init__()
        half = nn.initializer.Constant(0.5)
        self.r1 = keep_initial(self.create_parameter([num_heads, 1, 1], default_initializer=half))
        self.r2 = keep_initial(self.create_parameter([num_heads, 1, 1], default_initializer=half))

    def bias(self, q_positions, k_positions):
        far = distance(q_positions, k_positions).abs().astype("float32").unsqueeze(1)
        return -F.softplus(self.r1) * paddle.log1p(F.softplus(self.r2) * far)


class NearOnly(PositionalEncoding):
    """A learned bias for each distance of −3 … 3, one for all further away on each side (cf. T5, arXiv:1910.10683)."""

    def __init__(self, num_heads):
        super().__init__()
        normal = nn.initializer.Normal(0.0, 0.5)
        self.table = self.create_parameter([9, num_heads], default_initializer=normal)

    def bias(self, q_positions, k_positions):
        bucket = distance(q_positions, k_positions).clip(-4, 4) + 4
        return F.embedding(bucket, self.table).transpose([0, 3, 1, 2])


class BumpAtNeighbour(PositionalEncoding):
    """A bias at the token before only, a learned one a head: it reaches no further, by design."""

    def __init__(self, num_heads):
        super().__init__()
        self.bump = keep_initial(
            self.create_parameter([num_heads, 1, 1], default_initializer=nn.initializer.Constant(1.0))
        )

    def bias(self, q_positions, k_positions):
        before = (distance(q_positions, k_positions) == -1).astype("float32").unsqueeze(1)
        return before * self.bump


class KeyedByDistance(PositionalEncoding):
    """q · a_{j − i} added to q · k, distances clipped at ±8, a table a layer (Shaw, arXiv:1803.02155, keys only)."""

    per_layer = True

    def __init__(self, head_dim):
        super().__init__()
        self.a = self.create_parameter([17, head_dim], default_initializer=nn.initializer.Normal(0.0, 0.2))

    def scores(self, q, k, q_positions, k_positions):
        all_distances = paddle.matmul(q, self.a, transpose_y=True)  # [B, H, Tq, 17]
        index = (distance(q_positions, k_positions).clip(-8, 8) + 8).unsqueeze(1)
        index = index.expand([q.shape[0], q.shape[1], index.shape[2], index.shape[3]])
        return paddle.take_along_axis(all_distances, index, 3)


class Interpolated(PositionalEncoding):
    """A function of |i − j| / max(i, 8) by a small network (FIRE, arXiv:2310.04418, with a fixed threshold)."""

    expected_failures = {"relative": "the distance is divided by the query's position"}

    def __init__(self, num_heads):
        super().__init__()
        self.inner, self.outer = Linear(1, 16), Linear(16, num_heads)

    def bias(self, q_positions, k_positions):
        far = distance(q_positions, k_positions).abs().astype("float32")
        scale = paddle.log1p(paddle.clip(q_positions.astype("float32"), min=8.0)).unsqueeze(-1)
        ratio = (paddle.log1p(far) / scale).unsqueeze(-1).astype(self.inner.weight.dtype)
        return self.outer(F.relu(self.inner(ratio))).transpose([0, 3, 1, 2])


class Ramp(PositionalEncoding):
    """log(1 + p) in the direction of one learned vector, added to the embeddings."""

    def __init__(self, d_model):
        super().__init__()
        self.direction = self.create_parameter([d_model], default_initializer=nn.initializer.Normal(0.0, 0.5))

    def embed(self, x, positions):
        return x + paddle.log1p(positions.astype("float32")).unsqueeze(-1) * self.direction


class PlaceAndSegment(PositionalEncoding):
    """The place in a segment of 8 is added to the embeddings, and a bias falls with the segments between (BiPE,
    arXiv:2401.16421): only both together tell a position."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.places = self.create_parameter([8, d_model], default_initializer=nn.initializer.Normal(0.0, 0.2))
        self.register_buffer("slopes", 2.0 ** -paddle.arange(1.0, num_heads + 1).reshape([1, -1, 1, 1]))

    def embed(self, x, positions):
        return x + F.embedding(positions % 8, self.places)

    def bias(self, q_positions, k_positions):
        return -distance(q_positions // 8, k_positions // 8).abs().unsqueeze(1).astype("float32") * self.slopes


class TwoDigits(PositionalEncoding):
    """A vector for each of the two digits of a position in base 32 (axial, arXiv:2001.04451): up to 1,024."""

    def __init__(self, d_model):
        super().__init__()
        normal = nn.initializer.Normal(0.0, 0.2)
        self.low, self.high = (self.create_parameter([32, d_model], default_initializer=normal) for _ in range(2))

    def embed(self, x, positions):
        return x + F.embedding(positions % 32, self.low) + F.embedding((positions // 32).clip(max=31), self.high)


class ManyDistances(PositionalEncoding):
    """A learned bias for each distance up to 500 (cf. Swin, arXiv:2103.14030), refused beyond."""

    def __init__(self, num_heads):
        super().__init__()
        self.table = self.create_parameter([1001, num_heads], default_initializer=nn.initializer.Normal(0.0, 0.2))

    def bias(self, q_positions, k_positions):
        apart = distance(q_positions, k_positions)
        if int(apart.abs().max()) > 500:
            raise ValueError("distances go up to 500")
        return F.embedding(apart + 500, self.table).transpose([0, 3, 1, 2])


class FewFarBuckets(PositionalEncoding):
    """A learned bias for each power of two of the distance, up to `farthest` (cf. T5, arXiv:1910.10683)."""

    def __init__(self, num_heads, farthest: int = 8192):
        super().__init__()
        self.rows = int(np.log2(farthest)) + 1
        self.table = self.create_parameter([self.rows, num_heads], default_initializer=nn.initializer.Normal(0.0, 0.5))

    def bias(self, q_positions, k_positions):
        far = distance(q_positions, k_positions).abs().clip(min=1).astype("float64")
        bucket = paddle.log2(far).floor().clip(max=self.rows - 1).astype("int64")
        return F.embedding(bucket, self.table).transpose([0, 3, 1, 2])
