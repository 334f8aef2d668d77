"""Components and the implementations of others with the same weights: `pytest -n 0 -m peers`, with the extra [peers].

Paddle is imported first, by tests/conftest.py, for its settings count only before that; PyTorch follows when a test
module asks for it. (Both orders work with the versions that were tried.)
"""

from dataclasses import dataclass

import numpy as np
import paddle
import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """The largest difference of each test."""
    differences = [
        (value, report.nodeid.split("::", 1)[-1])
        for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
        for name, value in report.user_properties
        if name == "difference" and report.when == "call"
    ]
    if differences:
        terminalreporter.section("largest difference from a peer")
        for value, test in differences:
            terminalreporter.line(f"{value:.1e}  {test}")


@dataclass(frozen=True)
class Precision:
    """What is computed in on both sides, and how far apart they may be."""

    dtype: str
    tolerance: float

    def ours(self, array):
        """A tensor of Paddle."""
        array = np.asarray(array)
        return paddle.to_tensor(array.astype(self.dtype) if array.dtype.kind == "f" else array)

    def theirs(self, array):
        """A tensor of PyTorch."""
        import torch

        array = np.asarray(array)
        return torch.from_numpy(np.ascontiguousarray(array.astype(self.dtype) if array.dtype.kind == "f" else array))


@pytest.fixture(params=["float64", "float32"])
def precision(request):
    """Both libraries in one precision: float64 to 1e-12, float32 to 1e-5. Peers that go through float32 whatever they
    are given are compared with `@single`, in float32 alone."""
    import torch

    before = paddle.get_default_dtype(), torch.get_default_dtype()
    paddle.set_default_dtype(request.param)
    torch.set_default_dtype(getattr(torch, request.param))
    yield Precision(request.param, 1e-12 if request.param == "float64" else 1e-5)
    paddle.set_default_dtype(before[0])
    torch.set_default_dtype(before[1])


@pytest.fixture
def agree(precision, request):
    """agree(ours, theirs): in the precision of the test, |ours − theirs| ≤ tolerance · max(1, |theirs|), element by
    element."""
    largest = ["difference", 0.0]
    request.node.user_properties.append(largest)

    def numbers(tensor):
        return np.asarray(
            tensor.numpy() if isinstance(tensor, paddle.Tensor) else getattr(tensor, "detach", lambda: tensor)()
        )

    def check(ours, theirs, tolerance=None):
        ours, theirs = numbers(ours), numbers(theirs)
        assert ours.shape == theirs.shape and ours.size, f"{ours.shape} beside {theirs.shape}"
        assert str(ours.dtype) == str(theirs.dtype) == precision.dtype, f"{ours.dtype} beside {theirs.dtype}"
        assert theirs.std() > 1e-3, "nothing to compare"
        apart = float((np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs))).max())
        largest[1] = max(largest[1], apart)
        assert apart <= (precision.tolerance if tolerance is None else tolerance), f"apart by {apart:.1e}"

    return check


@pytest.fixture
def build(registry, rng):
    """A component in evaluation mode with random parameters, none of them 0 or 1, and these by name."""

    def make(kind, spec, **givens):
        component = registry.build(kind, spec, **givens)
        for parameter in component.parameters():
            values = rng.normal(scale=0.4, size=parameter.shape)
            parameter.set_value(paddle.to_tensor(values.astype(str(parameter.dtype).removeprefix("paddle."))))
        component.eval()
        return component, {name: value.numpy() for name, value in component.named_parameters()}

    return make
