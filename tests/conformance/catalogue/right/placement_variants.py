"""Right placements that the zoo does not have, or has in another form."""

import paddle
from paddle import nn

from paddle_tfm.layers import Dropout
from paddle_tfm.protocols import Placement, keep_initial


class BothEnds(Placement):
    """Pre-norm with a second norm on each branch before it is added (Gemma 2, arXiv:2408.00118)."""

    final_norm = True

    def __init__(self, sites, norm, d_model, **parent):
        super().__init__(sites=sites, norm=norm, d_model=d_model, **parent)
        self.after = nn.LayerList([norm(site, d_model) for site in sites])

    def wrap(self, i, x, sublayer, info):
        branch = sublayer(self.norms[i](x, info.valid, info.positions))
        branch = self.after[i](branch, info.valid, info.positions)
        return x + self.drops[i](branch)


class GatedBranches(Placement):
    """x + a_i · drop(f(x)), a_i from zero (ReZero, arXiv:2003.04887), with a norm before each branch."""

    final_norm = True

    def __init__(self, sites, **parent):
        super().__init__(sites=sites, **parent)
        zero = nn.initializer.Constant(0.0)
        self.gates = nn.ParameterList(
            [keep_initial(self.create_parameter([1], default_initializer=zero)) for _ in sites]
        )

    def wrap(self, i, x, sublayer, info):
        normed = self.norms[i](x, info.valid, info.positions)
        return x + self.gates[i] * self.drops[i](sublayer(normed))


class StrongResidual(Placement):
    """Post-norm whose residual weighs more: n(2 x + drop(f(x))) (cf. DeepNorm, arXiv:2203.00555)."""

    def wrap(self, i, x, sublayer, info):
        strong = 2.0 * x + self.drops[i](sublayer(x))
        return self.norms[i](strong, info.valid, info.positions)


class PreThenPost(Placement):
    """Pre-norm before attention, post-norm after the feed-forward (cf. HybridNorm, arXiv:2503.04598)."""

    def wrap(self, i, x, sublayer, info):
        if i < len(self.norms) - 1:
            return x + self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))
        last = x + self.drops[i](sublayer(x))
        return self.norms[i](last, info.valid, info.positions)


class SqrtHalf(Placement):
    """Pre-norm whose sums keep their variance: (x + f(n(x))) sqrt(1/2) (Gehring 2017, arXiv:1705.03122, section 3.5)."""

    final_norm = True

    def wrap(self, i, x, sublayer, info):
        return (x + self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))) * 0.5**0.5


class Halves(Placement):
    """The residual and the branch averaged with a learned weight a channel, sigmoid(w) from 1/2 (highway, fixed gate)."""

    final_norm = True
    expected_failures = {"identity_path": "the residual has a weight below one"}

    def __init__(self, sites, norm, d_model, **parent):
        super().__init__(sites=sites, norm=norm, d_model=d_model, **parent)
        zero = nn.initializer.Constant(0.0)
        self.w = nn.ParameterList([self.create_parameter([d_model], default_initializer=zero) for _ in sites])

    def wrap(self, i, x, sublayer, info):
        share = paddle.nn.functional.sigmoid(self.w[i])
        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))
        return share * x + (1.0 - share) * branch


class MoreDropout(Placement):
    """Pre-norm with dropout of its own rate on the residual path's sum as well."""

    final_norm = True

    def __init__(self, sites, **parent):
        super().__init__(sites=sites, **parent)
        self.more = nn.LayerList([Dropout(0.05) for _ in sites])

    def wrap(self, i, x, sublayer, info):
        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))
        return x + self.more[i](branch)


class Momentum(Placement):
    """v ← v/2 + f(n(x))/2, x ← x + v (arXiv:2102.07870): x moves on after the branches give nothing."""

    final_norm = True

    def enter(self, x, info):
        return paddle.stack([x, paddle.zeros_like(x)], 2)

    def wrap(self, i, x, sublayer, info):
        x, v = x.unbind(2)
        v = (v + self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))) / 2
        return paddle.stack([x + v, v], 2)

    def leave(self, x, info):
        return x[:, :, 0]


class StochasticDepth(Placement):
    """In training a sentence leaves each branch out with probability 1/2 (arXiv:1603.09382)."""

    final_norm = True

    def __init__(self, sites, **parent):
        super().__init__(sites=sites, **parent)
        self.paths = nn.LayerList([Dropout(0.5) for _ in sites])

    def wrap(self, i, x, sublayer, info):
        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))
        return x + branch * self.paths[i](paddle.ones([x.shape[0], 1, 1], x.dtype))


class GatesFromZero(Placement):
    """x + a · drop(f(n(x))), a from 0 (SkipInit, arXiv:2002.10444), not marked by `keep_initial`: of one dimension,
    nothing draws it."""

    final_norm = True

    def __init__(self, sites, **parent):
        super().__init__(sites=sites, **parent)
        zero = nn.initializer.Constant(0.0)
        self.gains = nn.ParameterList([self.create_parameter([1], default_initializer=zero) for _ in sites])

    def wrap(self, i, x, sublayer, info):
        return x + self.gains[i] * self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))


class DepthAverages(Placement):
    """DenseFormer (arXiv:2402.02622): each layer gives a weighted average of the embeddings and of what all layers so
    far gave; between layers travels all of that, one stream more after each."""

    final_norm = True

    def __init__(self, *, sites, **parent):
        super().__init__(sites=sites, **parent)
        before = sites[0].layer + 1
        weights = paddle.to_tensor([0.0] * before + [1.0], dtype="float32")
        self.weights = self.create_parameter([before + 1], default_initializer=nn.initializer.Assign(weights))

    def enter(self, x, info):
        return paddle.stack([x, x], 2)  # the newest average stands last

    def forward(self, x, sublayers, info):
        outputs, y = x[:, :, :-1], x[:, :, -1]
        for i, sublayer in enumerate(sublayers):
            y = y + self.drops[i](sublayer(self.norms[i](y, info.valid, info.positions)))
        outputs = paddle.concat([outputs, y.unsqueeze(2)], 2)
        average = (outputs * self.weights.unsqueeze(-1)).sum(2, keepdim=True)
        return paddle.concat([outputs, average], 2)

    def leave(self, x, info):
        return x[:, :, -1]


class ScaledInEvaluation(Placement):
    """Stochastic depth as in its paper (arXiv:1603.09382): a branch that is kept with probability p counts p times in
    evaluation; p falls with depth, from 1 to 0.8."""

    final_norm = True

    def __init__(self, sites, **parent):
        super().__init__(sites=sites, **parent)
        rate = 0.2 * sites[0].layer / max(1, sites[0].depth - 1)
        self.paths = nn.LayerList([Dropout(rate) for _ in sites])

    def wrap(self, i, x, sublayer, info):
        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))
        if not self.training:
            return x + branch * (1.0 - self.paths[i].rate)
        return x + branch * (self.paths[i](paddle.ones([x.shape[0], 1, 1])) > 0).astype(x.dtype)


class WholeBatchDepth(Placement):
    """In training a branch is left out for the whole batch with probability 0.1; else it is divided by 0.9."""

    final_norm = True

    def __init__(self, sites, **parent):
        super().__init__(sites=sites, **parent)
        self.path = Dropout(0.1)

    def wrap(self, i, x, sublayer, info):
        normed = self.norms[i](x, info.valid, info.positions)
        return x + self.drops[i](sublayer(normed)) * self.path(paddle.ones([1, 1, 1], x.dtype))


class MarkedDepthAverages(DepthAverages):
    """DenseFormer whose weights of depth are marked as values that belong to the method."""

    def __init__(self, *, sites, **parent):
        super().__init__(sites=sites, **parent)
        keep_initial(self.weights)
