"""Random calls of a layer's class or of an op: what a kernel is compared with its formula on."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm import ops, randomness
from paddle_tfm.errors import UserError
from paddle_tfm.kernels import Mode, using
from paddle_tfm.kernels.cpu import library
from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import LayerComponent, LayerSite, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm.registry import Registry
from paddle_tfm.testing import with_class
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.hook_outputs import trained
from paddle_tfm.testing.models.probe import Probe
from paddle_tfm.testing.models.scene import default_dtype
from paddle_tfm.testing.models.size import MAX_LENGTH
from paddle_tfm.testing.other_options import other_values
from paddle_tfm.testing.results import ComponentError
from paddle_tfm.testing.trials import op_examples  # noqa: F401  (those of `ops`)

KINDS = ("attention", "norm", "feed_forward", "placement")  # of layers that are called; others answer by methods
BATCHES, LENGTHS, MANY = (1, 2, 3, 7), (1, 2, 5, 17), 60  # rows, tokens; tokens of one call in ten
HEADS, HEAD_DIMS, HIDDEN = (1, 2, 3), (4, 6, 10, 16), (8, 20, 33, 96)
RATE = 0.3  # of dropout
FLOATS = (paddle.float32, paddle.float64)
GIVEN_AWAY = (ops.log_softmax_, ops.softmax_nll)  # ops whose first argument is
CLIPPED = {ops.softmax_nll: 60.0}  # op → the output beyond which any number beyond it may stand


class Slopes(PositionalEncoding):
    """A bias that is learned: a slope for each head, times the distance."""

    def __init__(self, num_heads: int):
        super().__init__()
        self.slopes = self.create_parameter([num_heads])

    def bias(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).unsqueeze(1).abs()
        return -distance.astype(self.slopes.dtype) * self.slopes.reshape([1, -1, 1, 1])


def parts(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The tensors, arrays and layers in a value, by name."""
    if isinstance(value, (Tensor, np.ndarray, nn.Layer)):
        yield name, value
        return
    fields: Mapping[Any, Any] = {}
    if isinstance(value, (list, tuple)):
        fields = dict(enumerate(value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, Tap):
        fields = vars(value)
    for key, each in fields.items():
        yield from parts(each, f"{name}.{key}")


class RandomCall:
    """One call: of an op, or of a layer, with random arguments.

    Attributes:
        layers: all that are in it, by name; "" is the layer that is called. tensors: the numbers that it computes with,
            of its arguments and parameters, by name; those that want a gradient get one.
    """

    def __init__(self, of: Any, layer: LayerComponent | None, args: tuple[Any, ...], mode: Mode, seed: int):
        self.of, self.layer, self.args, self.mode, self.seed = of, layer, args, mode, seed
        self.taps = [Tap(), *(each for each in args if isinstance(each, Tap))]
        self.upstream: list[Tensor] = []  # the gradients of its outputs
        self.strided = False  # the gradient of the output lies in another order than the output
        self.layers = {"": layer} if layer is not None else {}
        self.layers |= {name: each for name, each in self.named() if isinstance(each, nn.Layer)}
        for name, each in list(self.layers.items()):
            self.layers |= {f"{name}.{path}".lstrip("."): part for path, part in each.named_sublayers()}
        self.tensors = {name: each for name, each in self.named() if isinstance(each, Tensor) and each.dtype in FLOATS}
        for name, each in self.layers.items():
            for path, parameter in each.named_parameters(include_sublayers=False):
                self.tensors[f"{name}.{path}".lstrip(".")] = parameter
            each.train() if mode.phase == "step" else each.eval()
            if isinstance(each, Dropout):
                each.path = name

    def named(self) -> Iterator[tuple[str, Any]]:
        """The tensors, arrays and layers in its arguments, each once."""
        formula = self.of.formula if self.layer is None else getattr(self.layer, "attend", self.layer.forward)
        names = [name for name in inspect.signature(formula).parameters if name != "self"]
        seen: set[int] = set()
        for name, value in zip(names, self.args):
            for path, part in parts(value, name):
                if id(part) not in seen:
                    seen.add(id(part))
                    yield path, part

    def __str__(self) -> str:
        shapes = ", ".join(f"{name} {list(each.shape)}" for name, each in self.tensors.items())
        return f"{shapes} ({self.mode.phase}, products: {self.mode.products}, call {self.seed})"

    def drop_nothing(self) -> None:
        """From now on no layer in it drops anything."""
        for layer in self.layers.values():
            if isinstance(layer, Dropout):
                layer.rate = 0.0

    def under(self, kernels: Mapping[Any, Any] | None) -> Any:
        """A block in which `kernels` compute it; None: the formulas do."""
        return nullcontext() if kernels is None else using(self.mode, kernels)

    def compute(self, kernels: Mapping[Any, Any] | None = None, step: int = 1) -> dict[str, np.ndarray]:
        """What `numbers` gives, by `kernels` where they fit; None: by the formula."""
        with self.under(kernels):
            return self.numbers(step)

    def numbers(self, step: int = 1) -> dict[str, np.ndarray]:
        """All that comes of it, by name: outputs, what was recorded, auxiliary losses, gradients, statistics. Random
        numbers are those of a step of training."""
        for tap in self.taps:
            tap.recorded.clear()
            tap.aux_losses.clear()
        for tensor in self.tensors.values():
            tensor.clear_gradient(False)
        paddle.seed(self.seed + step)
        function = self.of if self.layer is None else getattr(self.layer, "attend", self.layer)
        training = self.mode.phase == "step"
        with (
            randomness.random_context(self.seed, step),
            self.taps[0].of_this_pass(),
            paddle.set_grad_enabled(training),
        ):
            outputs = dict(parts(function(*self.args), "the output"))
            for tap in self.taps:
                outputs |= {f"recorded {name}": each for name, each in tap.recorded}
                outputs |= {f"the auxiliary loss {name}": each for name, each in tap.aux_losses.items()}
            numbers = {name: self._array(each) for name, each in outputs.items()}
            if training and self._walk_back(outputs):
                for name, tensor in self.tensors.items():
                    if not tensor.stop_gradient:
                        numbers[f"the gradient of {name}"] = _gradient(tensor)
        for name, layer in self.layers.items():
            for path, buffer in layer.named_buffers(include_sublayers=False):
                numbers[f"the buffer {name}.{path}"] = buffer.numpy().copy()
        return numbers

    def _walk_back(self, outputs: Mapping[str, Any]) -> bool:
        tensors = [each for each in outputs.values() if isinstance(each, Tensor) and not each.stop_gradient]
        if not tensors:
            return False
        self.upstream = [self.of_output(number, each) for number, each in enumerate(tensors)]
        paddle.autograd.backward(tensors, self.upstream)
        return True

    def of_output(self, number: int, output: Tensor) -> Tensor:
        """A gradient for an output."""
        numbers = np.random.default_rng([self.seed, number]).normal(size=output.shape).astype("float32")
        gradient = paddle.to_tensor(numbers).astype(output.dtype)
        return strided(gradient) if self.strided else gradient

    def _array(self, value: Any) -> np.ndarray:
        array = value.numpy().copy() if isinstance(value, Tensor) else np.array(value)
        return array.clip(max=CLIPPED[self.of]) if self.of in CLIPPED else array


def strided(x: Tensor) -> Tensor:
    """The same numbers, which lie in another order."""
    axes = list(range(x.ndim))[::-1]
    return paddle.to_tensor(np.ascontiguousarray(x.numpy().T)).transpose(axes) if x.ndim > 1 else x


def _gradient(tensor: Tensor) -> np.ndarray:
    return np.zeros(tensor.shape, "float32") if tensor.grad is None else tensor.grad.numpy().copy()


class Calls:
    """Random calls of the class or op `of`; a call of one number is always the same.

    Raises:
        ComponentError: there are none, since it is neither a class of layers that are called, nor an op with examples.
    """

    def __init__(self, registry: Registry, of: Any):
        self.registry, self.of = registry, of
        self.products = [None, *(kind for kind in ("float32", "bfloat16") if library.why_not(kind) is None)]
        if isinstance(of, type) and issubclass(of, LayerComponent) and of.kind in KINDS:
            self.subject = ComponentUnderTest(registry, *self._registered(of))
        elif isinstance(of, type) or not hasattr(of, "formula"):
            raise ComponentError(
                f"`of` must be a class of {', '.join(KINDS[:-1])} or {KINDS[-1]}, or an op (`paddle_tfm.kernels.op`), "
                f"but is {of!r}"
            )
        elif not hasattr(of, "examples"):
            raise ComponentError(
                f"the op {of.__name__} must have random arguments to be tried on, but has none; write a function of a "
                f"NumPy generator that returns some, marked by `@paddle_tfm.kernels.examples({of.__name__})`"
            )

    def _registered(self, of: type[Any]) -> tuple[str, str]:
        """The kind and name of a class, which nobody need have registered."""
        target = f"{of.__module__}:{of.__qualname__}"
        for entry in self.registry:
            if entry.target is of or entry.target == target:
                return entry.kind, entry.name
        return with_class(self.registry, of)

    def __call__(
        self, number: int, drops: bool = False, lies_apart: bool = True, frozen: bool = False
    ) -> RandomCall:
        """The call of a number. `drops`: whether its dropout drops anything. `lies_apart`: whether its numbers may lie
        in memory in another order than their axes. `frozen`: whether some of them may need no gradient."""
        paddle.seed(number)
        rng = np.random.default_rng([number, 20])
        training = bool(rng.random() < 0.75)
        mode = Mode("step", rng.choice(np.array(self.products))) if training else Mode("search")
        layer, args = self._of_layer(rng) if isinstance(self.of, type) else (None, self.of.examples(rng))
        apart = rng.random(len(args)) < 0.25
        if lies_apart:
            args = tuple(strided(each) if isinstance(each, Tensor) and is_apart else each for each, is_apart in zip(args, apart))
        call = RandomCall(self.of, layer, args, mode, number)
        call.strided = lies_apart and bool(rng.random() < 0.25)
        of_arguments = {id(each) for _, each in call.named()}
        for tensor in call.tensors.values():
            needs_none = bool(rng.random() < 0.15) and frozen
            tensor.stop_gradient = needs_none or (not training and id(tensor) in of_arguments)
        if not drops:
            call.drop_nothing()
        return call

    # ------------------------------------------------------------------------------------------------------- of layers

    def _of_layer(self, rng: np.random.Generator) -> tuple[LayerComponent, tuple[Any, ...]]:
        with default_dtype("float64" if rng.random() < 0.1 else "float32"):
            return self._layer_and_arguments(rng)

    def _layer_and_arguments(self, rng: np.random.Generator) -> tuple[LayerComponent, tuple[Any, ...]]:
        heads, kind = int(rng.choice(HEADS)), self.subject.kind
        width = heads * int(rng.choice(HEAD_DIMS))
        site = self.subject.site(str(rng.choice(self.subject.site_names)))
        sites = [dataclasses.replace(site, sublayer=name) for name in ("self", "feed_forward")]
        layer, options = self._layer(rng, site, sites, d_model=width, num_heads=heads, d_ff=int(rng.choice(HIDDEN)))
        trained(layer)
        batch, length = int(rng.choice(BATCHES)), MANY if rng.random() < 0.1 else int(rng.choice(LENGTHS))
        x = self._normal(rng, batch, length, width)
        encoding = PositionalEncoding()
        if kind == "attention":
            encoding = self._encoding(rng, width, heads, options)
        info, tap = self._info(rng, encoding, batch, length), Tap(recording=bool(rng.random() < 0.1))
        if kind == "norm":
            return layer, (x, info.valid, info.positions)
        if kind == "feed_forward":
            return layer, (x, info, tap)
        if kind == "placement":
            return layer, (x, [Linear(width, width) for _ in sites], info)
        source, source_info = x, info
        if site.sublayer == "cross":
            keys = int(rng.choice(LENGTHS))
            source, source_info = self._normal(rng, batch, keys, width), self._info(rng, encoding, batch, keys)
        mask = Mask(info.positions, source_info.positions, source_info.valid, site.causal, encoding)
        return layer, (x, source, source_info, info, mask, tap)

    def _layer(
        self, rng: np.random.Generator, site: LayerSite, sites: list[LayerSite], **sizes: int
    ) -> tuple[Any, dict[str, object]]:
        """A layer, and the options that it is built with: some of them others than by default, where it takes them."""
        options = {}
        for name, option in self.registry.options(self.subject.kind, self.subject.name).items():
            if rng.random() < 0.3 and (values := other_values(option)):
                options[name] = values[int(rng.integers(len(values)))]
        inside = rng.random(2) < 0.1
        givens = {
            **sizes,
            "max_length": MAX_LENGTH,
            "dropout": RATE,
            "site": site,
            "sites": sites,
            "norm": lambda site, width: self._norm(width),
            "inner_norm": self._norm if inside[0] else None,
            "projection_norm": self._norm if inside[1] else None,
        }
        for tried in (options, {}):
            try:
                spec = {**self.subject.spec, **tried}
                return self.registry.build(self.subject.kind, spec, self.subject.kind, **givens), tried
            except UserError:
                continue
        return self.subject.build(site, **{**givens, "d_model": 32, "num_heads": 2}), {}

    def _norm(self, width: int) -> Any:
        return self.registry.build("norm", self.subject.base["norm"], "norm", d_model=width, max_length=MAX_LENGTH)

    def _encoding(
        self, rng: np.random.Generator, d_model: int, num_heads: int, options: Mapping[str, object]
    ) -> PositionalEncoding:
        """Most of the time none; one of fixed numbers through some hooks of the attention, or a bias that is learned."""
        hooks, draw = sorted(self.subject.cls.supports - {"embed"}), rng.random()
        heads, _, width = self.subject.cls.geometry(d_model, num_heads, **options)
        if draw < 0.7 or not hooks:
            return PositionalEncoding()
        if draw < 0.8 and "bias" in hooks:
            return Slopes(heads)
        return Probe(heads, width, [str(hook) for hook in rng.choice(hooks, int(rng.integers(1, 3)))])

    def _info(self, rng: np.random.Generator, encoding: PositionalEncoding, batch: int, length: int) -> TokenInfo:
        """Texts of several lengths, padded at their ends."""
        real = rng.integers(1, length + 1, batch) if rng.random() < 0.7 else np.full(batch, length)
        valid = paddle.to_tensor(np.arange(length) < real[:, None])
        return TokenInfo(encoding, paddle.arange(length, dtype="int64").unsqueeze(0), valid)

    def _normal(self, rng: np.random.Generator, *shape: int) -> Tensor:
        return paddle.to_tensor(rng.normal(size=shape), paddle.get_default_dtype())
