"""What holds for a placement by itself: with sublayers and norms that count their calls."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm.protocols import LayerSite, PositionalEncoding, TokenInfo
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.model_under_test import same_draws
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result, distance

WIDTH, NUM_LAYERS = 12, 3
POSITIONS = [[2, 3, 4, 5]]
VALID = [[True] * 4, [True, True, True, False]]
DRAWS = 48
GATE, SHUT = 0.5, 0.05  # what is given to gates that start at less

Branch = Callable[[int, Tensor], Tensor]


def _like(tensor: Tensor | None, expected: list[list]) -> bool:
    """Whether it holds what `expected` does, each as often as any; a placement may let several streams stand side by
    side."""
    if tensor is None:
        return False
    numbers, counts = np.unique(tensor.numpy(), return_counts=True)
    usual, shares = np.unique(np.array(expected), return_counts=True)
    return numbers.dtype == usual.dtype and np.array_equal(numbers, usual) and len(set(counts / shares)) == 1


def _nearly_shut(parameter: Tensor) -> bool:
    """Whether it starts as a gate that hides its branch: alike all over, and small. Weights of which one is large, as
    of streams or of depth, are none, marked by `keep_initial` or not."""
    value = np.abs(parameter.numpy())
    return parameter.ndim <= 1 and np.ptp(value) == 0 and value.max() < SHUT


class CountingNorm(nn.Layer):
    """A layer norm that is nobody's plugin; it counts its calls, and notes whether it got the arguments of each."""

    def __init__(self, width: int, layer: int):
        super().__init__()
        self.layer = layer
        self.weight = self.create_parameter([width], default_initializer=nn.initializer.Constant(1.0))
        self.calls, self.complete = 0, True

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        self.calls += 1
        self.complete = self.complete and _like(valid, VALID) and _like(positions, POSITIONS)
        centred = x - x.mean(-1, keepdim=True)
        return centred / paddle.sqrt((centred * centred).mean(-1, keepdim=True) + 1e-6) * self.weight


class PlacementProbe:
    """The placements of a stack, around sublayers that are functions."""

    def __init__(
        self, subject: ComponentUnderTest, stack: str = "decoder", training: bool = False, dropout: float = 0.0
    ):
        self.norms: list[CountingNorm] = []
        names = ["self", "cross", "feed_forward"] if stack == "decoder" else ["self", "feed_forward"]
        self.placements, self.count, self.valid = [], len(names), VALID
        for layer in range(NUM_LAYERS):
            sites = [LayerSite(stack, name, layer, NUM_LAYERS, NUM_LAYERS) for name in names]
            placement = subject.build(sites=sites, norm=self._norm, d_model=WIDTH, dropout=dropout)
            placement.train() if training else placement.eval()
            for gate in placement.parameters():
                if _nearly_shut(gate):
                    gate.set_value(paddle.full_like(gate, GATE))
            self.placements.append(placement)
        rng = np.random.default_rng(3)
        self.x = paddle.to_tensor(rng.normal(size=(2, 4, WIDTH)).astype("float32"))

    def _norm(self, site: LayerSite, width: int) -> CountingNorm:
        self.norms.append(CountingNorm(width, site.layer))
        return self.norms[-1]

    def __call__(self, x: Tensor, sublayer: Branch, layers: range = range(NUM_LAYERS)) -> np.ndarray:
        """x through these layers; `sublayer(number, x)` is every branch, numbered from the bottom."""
        info = TokenInfo(PositionalEncoding(), paddle.to_tensor(POSITIONS), paddle.to_tensor(self.valid))
        x = self.placements[0].enter(x, info)
        for layer in layers:
            first = layer * self.count
            x = self.placements[layer](x, [lambda y, i=first + i: sublayer(i, y) for i in range(self.count)], info)
        return self.placements[-1].leave(x, info).numpy()


def stacks(subject: ComponentUnderTest) -> list[str]:
    """Those in which it may stand."""
    return [name.split(".")[0] for name in subject.site_names]


@check(
    "placement",
    invariant="each sublayer is called exactly once a pass, in order, and its output has an effect; in training "
    "too, except where it is dropped at random",
    consequence="a sublayer is skipped, called twice or too early, or its output is lost",
    hint="the loop over sublayers; what is added to x",
)
def each_branch_once(subject: ComponentUnderTest) -> Result:
    for stack, training in itertools.product(stacks(subject), (False, True)):
        probe = PlacementProbe(subject, stack, training)
        where = f"{stack}, in training" if training else stack
        rng = np.random.default_rng(4)
        total = NUM_LAYERS * probe.count
        shifts = [paddle.to_tensor(rng.normal(size=WIDTH).astype("float32")) for _ in range(total)]
        calls: list[int] = []
        seeds = range(DRAWS if training else 1)  # a branch may be left out by chance (arXiv:1603.09382), not always

        def drawn(branch: Branch, seed: int, probe: PlacementProbe = probe) -> np.ndarray:
            with same_draws(probe.placements[0], seed):
                return probe(probe.x, branch)

        drawn(_shifting(shifts, calls), 0)
        if sorted(calls) != list(range(total)):
            return Failed(f"{where}: sublayers are called {[calls.count(i) for i in range(total)]} times")
        if calls != sorted(calls):
            return Failed(f"{where}: sublayers are called in the order {calls}")
        chance = f" in any of {len(seeds)} draws" if training else ""

        def same(one: Branch, other: Branch, seeds: range = seeds, drawn: Callable = drawn) -> bool:
            return all(distance(drawn(one, seed), drawn(other, seed)) < 1e-4 for seed in seeds)

        for i in range(total):
            if same(_shifting(shifts, calls), _shifting(shifts, calls, inverted=i)):
                return Failed(f"{where}: what sublayer {i} gives changes nothing{chance}")
        for i in range(total):
            if same(_alone(shifts, None), _alone(shifts, i)):
                return Failed(f"{where}: what sublayer {i} gives is lost where those after it give nothing{chance}")
    return Passed()


def _alone(shifts: list[Tensor], number: int | None) -> Branch:
    """Sublayers that give zeros, but for the one of this number."""
    return lambda i, y: paddle.zeros_like(y) + (shifts[i] if i == number else 0.0)


def _shifting(shifts: list[Tensor], calls: list[int], inverted: int | None = None) -> Branch:
    """Sublayers that note their calls; the one of this number gives what it gives with the other sign."""

    def branch(i: int, y: Tensor) -> Tensor:
        calls.append(i)
        return (y * 0.3 + shifts[i]) * (-1.0 if i == inverted else 1.0)

    return branch


@check(
    "placement",
    invariant="every norm is used at one place: each sublayer has an instance of its own",
    consequence="one set of gains (with BatchNorm also of statistics) serves inputs of different kinds",
    hint="the list of norms: made inside the loop over sublayers, and indexed by the sublayer",
)
def own_norms(subject: ComponentUnderTest) -> Result:
    for stack in stacks(subject):
        probe = PlacementProbe(subject, stack)
        probe(probe.x, lambda i, y: y * 0.5 + i)
        counts = [norm.calls for norm in probe.norms]
        if any(count > 1 for count in counts):
            return Failed(
                f"{stack}: the {len(counts)} norms of {NUM_LAYERS} layers are called {counts} times in one pass"
            )
        if not all(counts):
            return Failed(f"{stack}: {counts.count(0)} of {len(counts)} norms are never used")
    return Passed()


@check(
    "placement",
    invariant="norms get `valid` and `positions`: which tokens are real, and their positions",
    consequence="a BatchNorm counts padding, and one with statistics for each position fails",
    hint="`self.norms[i](x, info.valid, info.positions)`",
)
def norm_arguments(subject: ComponentUnderTest) -> Result:
    for stack in stacks(subject):
        probe = PlacementProbe(subject, stack)
        probe(probe.x, lambda i, y: y * 0.5 + i)
        if any(norm.calls and not norm.complete for norm in probe.norms):
            return Failed(f"{stack}: a norm is called without `valid` or `positions`, or with others in their place")
    return Passed()
