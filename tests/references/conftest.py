"""Components from the registry in both precisions, with parameters that are random, not the initial zeros and ones."""

from dataclasses import dataclass

import numpy as np
import paddle
import pytest
from paper_cases import parameters


@dataclass(frozen=True)
class Precision:
    dtype: str
    rtol: float
    atol: float

    def tensor(self, array):
        array = np.asarray(array)
        return paddle.to_tensor(array.astype(self.dtype) if array.dtype.kind == "f" else array)

    def same(self, ours, reference):
        ours = ours.numpy() if isinstance(ours, paddle.Tensor) else np.asarray(ours)
        assert str(ours.dtype) == self.dtype, f"computed in {ours.dtype}"
        np.testing.assert_allclose(ours, reference, rtol=self.rtol, atol=self.atol)


@pytest.fixture(params=["float64", "float32"])
def precision(request):
    """float64 to 1e-10; float32, what is trained in, to 1e-5 (relative, and absolute near zero)."""
    before = paddle.get_default_dtype()
    paddle.set_default_dtype(request.param)
    yield Precision(request.param, *((1e-10, 1e-12) if request.param == "float64" else (1e-5, 5e-6)))
    paddle.set_default_dtype(before)


@pytest.fixture
def build(registry, rng):
    """A component whose parameters are drawn anew, and those parameters as NumPy: (component, name → float64 array)."""

    def make(kind, spec, **givens):
        component = registry.build(kind, spec, **givens)
        for parameter in component.parameters():
            values = rng.normal(scale=0.6, size=parameter.shape)
            parameter.set_value(paddle.to_tensor(values.astype(str(parameter.dtype).removeprefix("paddle."))))
        return component, parameters(component)

    return make
