"""Checks of kernels: what they are tried on, and what is said of kernels that cannot be."""

import paddle
import paddle.nn.functional as F
import pytest
from catalogue import examined

from paddle_tfm.kernels import Mode, examples, op, using
from paddle_tfm.layers import Linear
from paddle_tfm.protocols import Head, Kernel, Norm
from paddle_tfm.testing import FAIL, SKIP
from paddle_tfm_plugins.kernel.gpu import AttendByPaddle
from paddle_tfm_plugins.norm.layer import LayerNorm

pytestmark = pytest.mark.conformance


def report(cls, *only):
    return examined(cls, frozenset(only))


class OnCPU(AttendByPaddle):
    """A GPU's kernel that a CPU computes too, with draws of its own."""

    device = "cpu"


def test_attention_by_paddle_passes_on_a_cpu_too():
    assert [str(outcome) for outcome in report(OnCPU).failures] == []


def test_what_computes_elsewhere_is_skipped():
    assert {outcome.status for outcome in report(AttendByPaddle)} == {SKIP}
    assert "check it with --device gpu" in report(AttendByPaddle, "fits")["fits"].detail


class Doubled(Kernel):
    of = LayerNorm
    device = "cpu"

    def fits(self, call):
        return True

    def run(self, call):
        return 2 * call.args[0]


def test_a_subclass_is_never_asked_for():
    """Whatever a kernel does: kernels are found by exactly the class of a layer."""

    class Mine(LayerNorm):
        pass

    x = paddle.randn([2, 3, 8])
    with using(Mode("search"), {LayerNorm: Doubled()}), paddle.no_grad():
        by_kernel, of_subclass = LayerNorm(8)(x), Mine(8)(x)
    assert (by_kernel == 2 * x).all()
    assert (of_subclass == F.layer_norm(x, [8], epsilon=1e-5)).all()


@op
def without_examples(x):
    return x


class OnlyHead(Head):
    pass


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        (OnlyHead, "`of` must be a class of attention, norm, feed_forward or placement, or an op"),
        (Linear, "`of` must be a class of attention"),
        (F.relu, "`of` must be a class of attention"),
        (without_examples, "the op without_examples must have random arguments to be tried on, but has none"),
    ],
)
def test_a_kernel_of_what_cannot_be_tried_says_why(what, sentence):
    class Of(Doubled):
        of = what

    (outcome,) = report(Of)  # nothing else is tried
    assert (outcome.status, sentence in outcome.detail) == (FAIL, True)


def test_an_error_of_a_kernel_names_its_line_and_the_call():
    class Failing(Doubled):
        def run(self, call):
            return call.layer.nothing

    outcome = report(Failing, "same_as_formula")["same_as_formula"]
    assert "no attribute 'nothing' (test_kernels.py line" in outcome.detail
    assert outcome.detail.count("x [") == 1


def test_options_and_masks_of_a_norm_that_nobody_registered_are_tried():
    seen = set()

    class Own(Norm):
        def __init__(self, d_model: int, power: int = 2, centred: bool = True):
            super().__init__()
            self.power, self.centred = power, centred

        def forward(self, x, valid=None, positions=None):
            return x * self.power

    class Watching(Doubled):
        of = Own

        def fits(self, call):
            x, valid, _ = call.args
            real = valid.astype("int64").sum(1).numpy().tolist()
            seen.add(("padding", min(real) < x.shape[1]))
            seen.update({("one token", x.shape[1] == 1), ("one row", x.shape[0] == 1), ("long", x.shape[1] > 20)})
            seen.update({("power", call.layer.power), ("centred", call.layer.centred), ("odd", x.shape[2] % 8 > 0)})
            seen.update({("phase", call.mode.phase), ("dtype", str(x.dtype)), ("products", call.mode.products is None)})
            return True

    report(Watching, "fits")
    for name in ("padding", "one token", "one row", "long", "centred", "odd", "products"):
        assert {(name, True), (name, False)} <= seen
    assert {("phase", "step"), ("phase", "search"), ("dtype", "paddle.float32"), ("dtype", "paddle.float64")} <= seen
    assert len({value for name, value in seen if name == "power"}) > 1


def test_arguments_of_an_op_are_those_of_its_examples():
    """And a number is wrong wherever it differs, in an array too."""

    @op
    def sorted_columns(x):
        return x.argsort(-1).numpy()

    examples(sorted_columns)(lambda rng: (paddle.to_tensor(rng.normal(size=[3, 5])),))

    class Backwards(Doubled):
        of = sorted_columns

        def run(self, call):
            return call.args[0].argsort(-1, descending=True).numpy()

    detail = report(Backwards, "same_as_formula")["same_as_formula"].detail
    assert detail.startswith("the output is ") and "x [3, 5]" in detail
