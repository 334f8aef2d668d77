"""Each use of Paddle's private API does what its public fallback does, and none is outside
paddle_tfm/paddle_compat.py."""

from __future__ import annotations

import ast
import signal
import types
from pathlib import Path

import numpy as np
import paddle
import pytest
from paddle import nn
from paddle.autograd import PyLayer

from paddle_tfm import UserError, build_model, paddle_compat
from paddle_tfm.train.ranks.meeting import Address

COMPAT = Path(paddle_compat.__file__)
ROOT = COMPAT.parents[1]
ENGINE = sorted(file for file in (ROOT / "paddle_tfm").rglob("*.py") if file != COMPAT)
PLUGINS = sorted((ROOT / "plugins").rglob("*.py"))


@pytest.fixture
def without(monkeypatch):
    """Take a name away from Paddle, as if this were another version. Of a kernel: from what we see of the kernels,
    because Paddle's public functions call the same one."""

    def take(owner, name):
        if owner is paddle._C_ops:
            owner = types.SimpleNamespace(**{kernel: getattr(owner, kernel) for kernel in dir(owner)})
            monkeypatch.setattr(paddle, "_C_ops", owner)
        monkeypatch.delattr(owner, name)

    return take


# ----------------------------------------------------------------------------------------------------------- process


def test_signal_handlers_stay_pythons(without):
    handler = signal.getsignal(signal.SIGTERM)
    paddle_compat.keep_python_signal_handlers()
    without(paddle, "disable_signal_handler")
    paddle_compat.keep_python_signal_handlers()
    assert signal.getsignal(signal.SIGTERM) == handler


def test_a_store(without):
    host, port = (address := Address.free()).host, address.port
    keeper, other = paddle_compat.tcp_store(host, port, True), paddle_compat.tcp_store(host, port, False)
    other.set("key", "value")
    assert keeper.get("key") == b"value" and keeper.add("count", 2) == other.add("count", 0) == 2
    without(paddle.base.core, "TCPStore")
    with pytest.raises(UserError, match=r"^this Paddle has no TCPStore, .*; train with one process$"):
        paddle_compat.tcp_store(host, port, False)


def test_the_number_of_threads(without):
    x = paddle.randn([64, 64])
    expected = paddle.matmul(x, x).numpy()
    paddle_compat.set_num_threads(2)
    # Two threads may add up in another order than one does.
    np.testing.assert_allclose(paddle.matmul(x, x).numpy(), expected, rtol=1e-5, atol=1e-5)
    paddle_compat.set_num_threads(1)
    expected = paddle.matmul(x, x).numpy()
    without(paddle.base.core, "set_num_threads")
    paddle_compat.set_num_threads(2)
    assert paddle_compat.num_threads() == 1
    np.testing.assert_array_equal(paddle.matmul(x, x).numpy(), expected)


def test_the_most_memory_that_tensors_held(without):
    big = paddle.zeros([2_000_000])
    del big
    paddle_compat.reset_peak_memory()
    before = paddle_compat.peak_memory()
    block = paddle.zeros([1_000_000])
    del block
    assert 4_000_000 <= paddle_compat.peak_memory() - before < 4_100_000
    without(paddle.base.core, "host_memory_stat_reset_peak_value")
    paddle_compat.reset_peak_memory()
    assert paddle_compat.peak_memory() is None


@pytest.mark.parametrize("shape", [[1], [300, 1000]])
def test_the_sum_of_squares(without, rng, shape):
    array = rng.standard_normal(shape)
    for dtype in ("float32", "float64"):
        x = paddle.to_tensor(array.astype(dtype))
        expected = (x.numpy().astype("float64") ** 2).sum()
        for _ in range(2):
            result = paddle_compat.sum_of_squares(x)
            assert result.shape == [1] and result.item() == pytest.approx(expected, rel=1e-5)
            if hasattr(paddle._C_ops, "squared_l2_norm"):
                without(paddle._C_ops, "squared_l2_norm")


def test_a_product_of_a_search(without, rng):
    x, weight, bias = (rng.standard_normal(shape).astype("float32") for shape in ([2, 5, 3], [3, 4], [4]))
    for _ in range(2):
        with paddle.no_grad():
            y = paddle_compat.linear(*map(paddle.to_tensor, (x, weight, bias)))
        np.testing.assert_allclose(y.numpy(), x @ weight + bias, rtol=1e-6, atol=1e-6)
        if hasattr(paddle._C_ops, "linear"):
            without(paddle._C_ops, "linear")


def test_an_empty_tensor_has_shape_type_and_place(without):
    for _ in range(2):
        x = paddle_compat.empty([2, 3])
        assert (x.shape, x.dtype, x.place.is_cpu_place()) == ([2, 3], paddle.float32, True) and x.stop_gradient
        x = paddle_compat.empty(paddle.ones([4, 0]).shape)
        assert x.shape == [4, 0]
        if hasattr(paddle._C_ops, "empty"):
            without(paddle._C_ops, "empty")


def test_a_parameter_moves_into_memory(without):
    layer, array = nn.Linear(2, 3), np.zeros([2, 3], "float32")
    values = layer.weight.numpy().copy()
    assert paddle_compat.can_move_into()
    paddle_compat.move_into(layer.weight, array)
    np.testing.assert_array_equal(array, values)
    assert layer.weight.data_ptr() == array.ctypes.data
    array[...] = 7.0
    assert (layer.weight.numpy() == 7.0).all()
    without(paddle.Tensor, "_share_buffer_to")
    assert not paddle_compat.can_move_into()
    with pytest.raises(RuntimeError, match=r"must have Tensor\._share_buffer_to .* but has not"):
        paddle_compat.move_into(layer.weight, array)


# ----------------------------------------------------------------------------------------------------------- kernels


def test_lstm(without, make_batch):
    """Beside `paddle.nn.LSTM` with the same weights; without the kernel, a model with it runs in Python, to the same
    end."""
    x, lengths = paddle.randn([4, 2, 3]), paddle.to_tensor([4, 2], dtype="int32")
    reference = nn.LSTM(3, 5, time_major=True)
    weights = [w.detach() for w in reference.parameters()]  # [4W, C], [4W, W], [4W], [4W]
    expected, (h, c) = reference(x, sequence_length=lengths)
    outputs, (last_h, last_c) = paddle_compat.lstm(x, paddle.zeros([2, 5]), paddle.zeros([2, 5]), weights, lengths)
    for one, other in ((outputs, expected), (last_h, h[0]), (last_c, c[0])):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)
    overrides = ["model.attention={self: recurrent, cross: multihead}", "model.d_model=16", "model.num_heads=2"]
    model = build_model("base", overrides, source_vocabulary=13, target_vocabulary=13)
    model.eval()
    with model.computing("search"):
        by_kernel = float(model.loss(make_batch()))
    without(paddle._C_ops, "rnn")
    assert not paddle_compat.has_lstm()
    with model.computing("search"):
        assert float(model.loss(make_batch())) == pytest.approx(by_kernel, rel=1e-5)
    with pytest.raises(RuntimeError, match="must have the kernel `rnn`, but has not"):
        paddle_compat.lstm(x, paddle.zeros([2, 5]), paddle.zeros([2, 5]), weights, lengths)


# ------------------------------------------------------------------------------------------------------------ layers


def test_a_layer_is_called_plainly_until_somebody_asks_to_be_called_too():
    layer, other = nn.Linear(2, 2), nn.Linear(2, 2)
    assert paddle_compat.called_plainly(layer, other)
    hook = other.register_forward_post_hook(lambda *_: None)
    assert paddle_compat.called_plainly(layer) and not paddle_compat.called_plainly(layer, other)
    hook.remove()
    assert paddle_compat.called_plainly(layer, other)
    del layer.__dict__["_forward_pre_hooks"]  # another Paddle, whose tables have other names
    assert not paddle_compat.called_plainly(layer)


# -------------------------------------------------------------------------------------------------------- optimizers


def adam(registry, layer):
    return registry.build("optimizer", "adam", "train.optimizer").create(layer.parameters())


def update(layer, optimizer, factor, forget=()):
    """A step; the parameters `forget` have no gradient in it."""
    (layer(paddle.ones([1, 3])) * factor).sum().backward()
    for parameter in forget:
        parameter.clear_gradient(False)
    optimizer.set_lr(0.1)
    with paddle.utils.unique_name.guard():
        optimizer.step()
    optimizer.clear_grad(set_to_zero=False)


def test_adam_in_one_call_and_in_many(registry, without):
    ends = []
    for fused in (True, False):
        if not fused:
            without(paddle._C_ops, "merged_adam_")
        assert paddle_compat.has_fused_adam() == fused
        paddle.seed(1)
        layer = nn.Linear(3, 2)
        optimizer = adam(registry, layer)
        update(layer, optimizer, 1.0)
        update(layer, optimizer, -2.0, forget=[layer.bias])
        update(layer, optimizer, 3.0)
        ends.append([parameter.numpy() for parameter in layer.parameters()])
    for one, other in zip(*ends):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_moments_are_created_at_once_or_one_by_one(without):
    """Either way a loaded state continues to the same weights. At once, it stays whole though a parameter has no
    gradient."""
    ends = []
    for at_once in (True, False):
        paddle.seed(1)
        layer = nn.Linear(3, 2)
        optimizer = paddle.optimizer.Adam(0.1, parameters=layer.parameters())
        update(layer, optimizer, 1.0)
        state = {name: value.clone() for name, value in optimizer.state_dict().items() if hasattr(value, "clone")}
        optimizer = paddle.optimizer.Adam(0.1, parameters=layer.parameters())
        optimizer.set_state_dict(state)
        create = paddle.optimizer.Adam._create_accumulators
        for owner in () if at_once else (paddle.optimizer.Adam, paddle.optimizer.Optimizer):
            without(owner, "_create_accumulators")
        paddle_compat.create_moments(optimizer, layer.parameters())
        paddle.optimizer.Adam._create_accumulators = create  # its own step needs it
        update(layer, optimizer, -2.0, forget=[layer.bias])
        assert (f"{layer.bias.name}_moment1_0" in optimizer.state_dict()) == at_once
        ends.append(layer.weight.numpy())
    np.testing.assert_array_equal(*ends)


def test_an_adam_of_any_name_bears_paddles():
    @paddle_compat.named_adam
    class Mine(paddle.optimizer.Adam):
        pass

    assert Mine.__name__ == "Adam" and issubclass(Mine, paddle.optimizer.Adam)


# ---------------------------------------------------------------------------------------------------- nowhere else


def private_names() -> set[str]:
    """What Paddle's classes and their objects have that begins with one underscore, and the rooms of its own."""
    layer = nn.Linear(1, 1)
    optimizer = paddle.optimizer.Adam(parameters=layer.parameters())
    names = {name for owner in (paddle.Tensor, nn.Layer, type(optimizer), paddle) for name in dir(owner)}
    names |= {name for thing in (layer, optimizer) for name in vars(thing)}
    return {name for name in names if name.startswith("_") and not name.startswith("__")} | {"_C_ops"}


PRIVATE = private_names()
ROOMS = ("paddle.base", "paddle.framework", "paddle._C_ops", "paddle.pir_utils")
ROOM_ENDS = {room.removeprefix("paddle") for room in ROOMS}


def uses_of_private_paddle(source: str) -> list[str]:
    """`line: name` of each; a name that a file defines itself, as a method or an attribute of `self`, is its own."""
    tree = ast.parse(source)
    own = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    own |= {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    }
    own -= {"_use_multi_tensor"}
    uses = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            is_room = f".{node.attr}" in ROOM_ENDS and ast.unparse(node) in ROOMS
            if (node.attr in PRIVATE and node.attr not in own) or is_room:
                uses.append(f"{node.lineno}: {ast.unparse(node)}")
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "paddle":
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            uses += [f"{node.lineno}: {name}" for name in names if name.startswith(ROOMS) or "._" in name]
        if isinstance(node, ast.Import):
            uses += [f"{node.lineno}: {alias.name}" for alias in node.names if alias.name.startswith(ROOMS)]
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            renames = [target for target in node.targets if ast.unparse(target).endswith(".__name__")]
            uses += [f"{node.lineno}: {ast.unparse(node)}" for _ in renames]
    return uses


def test_no_other_file_uses_private_paddle():
    lines = [
        "from paddle import _C_ops",
        "import paddle.base.core as core",
        "x = self._parameter_list",
        "A.__name__ = 'B'",
    ]
    assert all(map(uses_of_private_paddle, lines))
    files = {str(file.relative_to(ROOT)): file.read_text("utf-8") for file in [*ENGINE, *PLUGINS]}
    assert {name: uses for name, text in files.items() if (uses := uses_of_private_paddle(text))} == {}


def test_behind_the_anchor_gradients_of_all_inputs_may_be_returned():
    class Product(PyLayer):
        @staticmethod
        def forward(ctx, tensors):
            _, a, b = tensors
            ctx.factors = a.detach(), b.detach()
            return a * b

        @staticmethod
        def backward(ctx, gradient):
            a, b = ctx.factors
            return [None, gradient * b, gradient * a]

    a, b = (paddle.to_tensor([value], stop_gradient=False) for value in (2.0, 3.0))
    for inputs, gradients in (([a], [3.0]), ([b], [2.0]), ([b, a], [2.0, 3.0])):
        output = Product.apply([paddle_compat.anchor(), a, b])
        assert [gradient.item() for gradient in paddle.grad(output, inputs)] == gradients
    assert paddle_compat.anchor() is paddle_compat.anchor() and paddle_compat.anchor().grad is None


def test_every_private_name_has_a_function_of_its_own():
    """The public functions there and what the tests above call are the same."""
    body = ast.parse(COMPAT.read_text("utf-8")).body
    public = {node.name for node in body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")}
    mine = Path(__file__).read_text("utf-8")
    engine = "".join(file.read_text("utf-8") for file in [*ENGINE, *PLUGINS])
    for name in public:
        assert f"paddle_compat.{name}" in engine, f"nothing uses {name}"
        assert f"paddle_compat.{name}" in mine or name == "fuse_updates", f"no test calls {name}"
