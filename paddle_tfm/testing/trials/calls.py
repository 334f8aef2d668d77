"""Random calls of a layer's class or of an op: what a kernel is compared with its formula on."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm import ops, randomness
from paddle_tfm.components import Entry
from paddle_tfm.errors import UserError
from paddle_tfm.kernels import Mode, Products, using
from paddle_tfm.kernels.cpu import library
from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.plugins import Provider
from paddle_tfm.protocols import LayerComponent, LayerSite, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm.recipe.model_plan import NORMS_INSIDE
from paddle_tfm.registry import Registry
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.hook_outputs import trained
from paddle_tfm.testing.models.probe import Probe
from paddle_tfm.testing.models.scene import default_dtype
from paddle_tfm.testing.models.size import MAX_LENGTH
from paddle_tfm.testing.other_options import other_values
from paddle_tfm.testing.results import ComponentError, Failed
from paddle_tfm.testing.trials import op_examples  # noqa: F401  (those of `ops`)

KINDS = ("attention", "norm", "feed_forward", "placement")  # of layers that are called; others answer by methods
BATCHES, LENGTHS, LONGEST = (1, 2, 3, 7), (1, 2, 5, 17), 60  # rows, tokens; tokens of one call in ten
HEADS, HEAD_DIMS, HIDDEN = (1, 2, 3), (4, 6, 10, 16), (8, 20, 33, 96)
RATE = 0.3  # of dropout
FLOATS = (paddle.float32, paddle.float64)
GIVEN_AWAY = (ops.log_softmax_, ops.softmax_nll)  # ops whose first argument is
CLIPPED = {ops.softmax_nll: 60.0}  # op → the output beyond which any number beyond it may stand
# Of the largest number; bfloat16: of products. A factor of dropout is a float32 number, whatever it multiplies.
TOLERANCE = {"float32": 5e-5, "float64": 1e-7, "bfloat16": 3e-2}
CANCELLED = 0.01  # of the largest number that it computes with: below, most of a sum may have cancelled out
SMALL = 0.3  # of the largest gradient of a call: below, one is as exact as that
Numbers = dict[str, np.ndarray]


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
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            yield from parts(each, f"{name}.{i}")
    elif dataclasses.is_dataclass(value) and not isinstance(value, Tap):
        for key, each in vars(value).items():
            yield from parts(each, f"{name}.{key}")


class RandomCall:
    """One call: of an op, or of a layer, with random arguments.

    Attributes:
        options: those of the layer that are not its defaults. layers: all that are in it, by name; "" is the layer that
            is called. tensors: the numbers that it computes with, of its arguments and parameters, by name; those that
            want a gradient get one. upstream: the gradients of its outputs, where they lie, and as they were.
    """

    def __init__(
        self,
        of: Any,
        layer: LayerComponent | None,
        args: tuple[Any, ...],
        mode: Mode,
        seed: int,
        options: Mapping[str, object],
    ):
        self.of, self.args, self.mode, self.seed, self.options = of, args, mode, seed, options
        self.function: Any = of if layer is None else getattr(layer, "attend", layer)
        self.names = _names(of.formula if layer is None else getattr(layer, "attend", layer.forward))
        self.taps = [Tap(), *(each for each in args if isinstance(each, Tap))]
        self.upstream: list[tuple[Tensor, np.ndarray]] = []
        roots = ({} if layer is None else {"": layer}) | {k: v for k, v in self.named() if isinstance(v, nn.Layer)}
        self.layers: dict[str, nn.Layer] = {
            f"{name}.{path}".strip("."): each
            for name, root in roots.items()
            for path, each in root.named_sublayers(include_self=True)
        }
        self.tensors = {name: each for name, each in self.named() if isinstance(each, Tensor) and each.dtype in FLOATS}
        for name, each in self.layers.items():
            self.tensors |= {f"{name}.{path}".lstrip("."): of_layer for path, of_layer in _own_parameters(each)}
            each.train() if mode.phase == "step" else each.eval()
            if isinstance(each, Dropout):
                each.path = name
        self.size = max((float(np.abs(each.numpy()).max(initial=0.0)) for each in self.tensors.values()), default=0.0)

    def named(self) -> Iterator[tuple[str, Any]]:
        """The tensors, arrays and layers in its arguments, each once."""
        seen: set[int] = set()
        for name, value in zip(self.names, self.args):
            for path, part in parts(value, name):
                if id(part) not in seen:
                    seen.add(id(part))
                    yield path, part

    def __str__(self) -> str:
        shapes = ", ".join(f"{name} {list(each.shape)}" for name, each in self.tensors.items())
        options = "".join(f"{name}: {value}, " for name, value in self.options.items())
        return f"{shapes} ({options}{self.mode.phase}, products: {self.mode.products}, call {self.seed})"

    def scale(self, factor: float) -> None:
        """Multiply all tensors, as they were first, by a factor, as an optimizer's step does: in place, by Paddle."""
        for name, each in self.tensors.items():
            with paddle.no_grad():
                paddle.assign(paddle.to_tensor(factor * self._unscaled[name], each.dtype), output=each)

    @cached_property
    def _unscaled(self) -> Numbers:
        """The tensors, as they are before the first `scale`."""
        return {name: each.numpy() for name, each in self.tensors.items()}

    def replace_parameters(self) -> None:
        """Put other parameters in the place of those of its layers, of the same values."""
        for name, layer in self.layers.items():
            for path, old in _own_parameters(layer):
                new = paddle.create_parameter(old.shape, old.dtype)
                new.set_value(old)
                setattr(layer, path, new)
                self.tensors[f"{name}.{path}".lstrip(".")] = new

    def under(self, kernels: Mapping[Any, Any] | None) -> AbstractContextManager[None]:
        """A block in which `kernels` compute it; None: the formulas do, within a block of kernels too."""
        return using(self.mode, kernels or {})

    def compute(self, kernels: Mapping[Any, Any] | None = None, step: int = 1) -> Numbers:
        """What `numbers` gives, in a block of its own."""
        with self.under(kernels):
            return self.numbers(step)

    def numbers(self, step: int = 1) -> Numbers:
        """All that comes of it, by name: outputs, what was recorded, auxiliary losses, gradients, buffers. What is
        drawn is drawn for this step of training."""
        for tensor in self.tensors.values():
            tensor.clear_gradient(False)
        for tap in self.taps:
            tap.recorded.clear()
            tap.aux_losses.clear()
        paddle.seed(self.seed + step)
        context, training = randomness.random_context(self.seed, step), self.mode.phase == "step"
        with context, self.taps[0].of_this_pass(), paddle.set_grad_enabled(training):
            outputs = dict(parts(self.function(*self.args), "the output"))
            losses = {f"the auxiliary loss {name}": each for tap in self.taps for name, each in tap.aux_losses.items()}
            outputs |= losses
            numbers = {name: self._array(each) for name, each in outputs.items()}
            numbers |= {f"recorded {name}": each.numpy() for tap in self.taps for name, each in tap.recorded}
            starts = [each for each in outputs.values() if isinstance(each, Tensor) and not each.stop_gradient]
            if training and starts:
                self.upstream = []
                for each in starts:
                    each.register_hook(lambda gradient: self.upstream.append((gradient, gradient.numpy().copy())))
                paddle.autograd.backward(starts, [self._of_output(*each) for each in enumerate(starts)])
                wanted = {name: each for name, each in self.tensors.items() if not each.stop_gradient}
                numbers |= {f"the gradient of {name}": _gradient(each) for name, each in wanted.items()}
        for name, layer in self.layers.items():
            for path, buffer in layer.named_buffers(include_sublayers=False):
                numbers[f"the buffer {name}.{path}"] = buffer.numpy().copy()
        return numbers

    def _of_output(self, number: int, output: Tensor) -> Tensor:
        """A gradient for an output."""
        numbers = np.random.default_rng([self.seed, number]).normal(size=output.shape)
        return paddle.to_tensor(numbers.astype("float32")).astype(output.dtype)

    def _array(self, value: Any) -> np.ndarray:
        array = value.numpy().copy() if isinstance(value, Tensor) else np.array(value)
        return array.clip(max=CLIPPED[self.of]) if self.of in CLIPPED else array


def _names(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def _own_parameters(layer: nn.Layer) -> list[tuple[str, Tensor]]:
    return list(layer.named_parameters(include_sublayers=False))


def _gradient(tensor: Tensor) -> np.ndarray:
    """Zeros where there is none."""
    return np.zeros_like(tensor.numpy()) if tensor.grad is None else tensor.grad.numpy().copy()


def off(expected: Numbers, got: Numbers, call: RandomCall, exact: bool = False) -> Failed | None:
    """Failed with the first number of a call that is off by more than rounding; or, `exact`, by a bit."""
    if expected.keys() != got.keys():
        return Failed(f"it gives {', '.join(got)} instead of {', '.join(expected)}: {call}")
    gradients = [np.abs(each).max(initial=0.0) for name, each in expected.items() if "the gradient of" in name]
    for name, right in expected.items():
        other = got[name]
        if right.shape != other.shape or right.dtype != other.dtype:
            seen = f"{other.dtype} {list(other.shape)} instead of {right.dtype} {list(right.shape)}"
            return Failed(f"{name} is {seen}: {call}")
        least = SMALL * max(gradients) if "the gradient of" in name else 0.0
        size = float(np.abs(right).max(initial=max(least, CANCELLED * call.size)))
        precision = "bfloat16" if call.mode.products == "bfloat16" else str(right.dtype)
        bound = 0.0 if exact else size * TOLERANCE.get(precision, 0.0)
        with np.errstate(invalid="ignore"):
            far = ~(np.abs(right.astype("float64") - other) <= bound)
        wrong = far & (right != other) & ((right == right) | (other == other))  # both may be NaN
        if wrong.any():
            at = np.unravel_index(np.argmax(wrong), wrong.shape)
            digits = 9 if exact else 6
            seen = f"{other[at]:.{digits}g} instead of {right[at]:.{digits}g} at {[int(each) for each in at]}"
            where = f"wrong in {wrong.sum()} of {wrong.size} places"
            where += "; the outputs are right" if "the gradient of" in name else ""
            return Failed(f"{name} is {seen}, and {where}: {call}")
    return None


class Calls:
    """Random calls of the class or op `of`; a call of one number is always the same.

    Raises:
        ComponentError: there are none, since it is neither a class of layers that are called, nor an op with examples.
    """

    def __init__(self, registry: Registry, of: Any):
        self.registry, self.of = registry, of
        kinds: tuple[Products, ...] = ("float32", "bfloat16")
        self.products = [kind for kind in kinds if library.why_not(str(kind)) is None] or [None]
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
        for entry in self.registry:
            if entry.target in (of, f"{of.__module__}:{of.__qualname__}"):
                return entry.kind, entry.name
        self.registry.add(Entry(of.kind, of.__name__, of, Provider(of.__name__, of.__module__, "")))
        return of.kind, of.__name__

    def __call__(self, number: int, drops: bool = False, frozen: bool = False) -> RandomCall:
        """The call of a number. `drops`: whether its dropout drops anything. `frozen`: whether some of the tensors may
        need no gradient."""
        paddle.seed(number)
        rng = np.random.default_rng([number, 20])
        training = bool(rng.random() < 0.75)
        products = self.products[int(rng.integers(len(self.products)))] if rng.random() < 0.7 else None
        mode = Mode("step", products) if training else Mode("search")
        with default_dtype("float64" if rng.random() < 0.1 else "float32"):
            if isinstance(self.of, type):
                layer, options, args = self._of_layer(rng)
            else:
                layer, options, args = None, {}, self.of.examples(rng)
        call = RandomCall(self.of, layer, args, mode, number, options)
        of_arguments = {id(each) for _, each in call.named()}
        for tensor in call.tensors.values():
            needs_none = bool(rng.random() < 0.15) and frozen
            tensor.stop_gradient = needs_none or (not training and id(tensor) in of_arguments)
        for each in call.layers.values():
            if isinstance(each, Dropout) and not drops:
                each.rate = 0.0
        return call

    def _of_layer(self, rng: np.random.Generator) -> tuple[LayerComponent, dict[str, object], tuple[Any, ...]]:
        """A layer, its options, and arguments to call it with: texts of several lengths, padded at their ends."""
        kind, heads = self.subject.kind, int(rng.choice(HEADS))
        sizes = {"d_model": heads * int(rng.choice(HEAD_DIMS)), "num_heads": heads, "d_ff": int(rng.choice(HIDDEN))}
        site = self.subject.site(str(rng.choice(self.subject.site_names)))
        layer, options = self._layer(rng, site, sizes)
        trained(layer)
        batch, length = int(rng.choice(BATCHES)), LONGEST if rng.random() < 0.1 else int(rng.choice(LENGTHS))
        encoding = self._encoding(rng, sizes, options) if kind == "attention" else PositionalEncoding()
        x, info = self._text(rng, batch, length, sizes["d_model"], encoding)
        tap = Tap(recording=bool(rng.random() < 0.1))
        if kind == "norm":
            return layer, options, (x, info.valid, info.positions)
        if kind == "feed_forward":
            return layer, options, (x, info, tap)
        if kind == "placement":
            return layer, options, (x, [Linear(x.shape[2], x.shape[2]) for _ in _sites(site)], info)
        source, of_source = x, info
        if site.sublayer == "cross":
            source, of_source = self._text(rng, batch, int(rng.choice(LENGTHS)), sizes["d_model"], encoding)
        mask = Mask(info.positions, of_source.positions, of_source.valid, site.causal, encoding)
        return layer, options, (x, source, of_source, info, mask, tap)

    def _layer(self, rng: np.random.Generator, site: LayerSite, sizes: dict[str, int]) -> tuple[Any, dict[str, object]]:
        """A layer, and the options that it is built with: some of them others than by default, where it takes them."""
        options: dict[str, object] = {}
        for option in self.subject.options():
            if rng.random() < 0.3 and (values := other_values(option)):
                options[option.name] = values[int(rng.integers(len(values)))]
        inside = {name: self._norm if rng.random() < 0.06 else None for name in NORMS_INSIDE}
        placed = {"site": site, "sites": _sites(site), "norm": lambda site, width: self._norm(width)}
        kind, spec = self.subject.kind, self.subject.spec
        givens: dict[str, Any] = {"max_length": MAX_LENGTH, "dropout": RATE, **sizes, **placed, **inside}
        try:
            return self.registry.build(kind, {**spec, **options}, kind, **givens), options
        except UserError:
            return self.registry.build(kind, spec, kind, **givens), {}

    def _norm(self, width: int) -> Any:
        return self.registry.build("norm", self.subject.base["norm"], "norm", d_model=width, max_length=MAX_LENGTH)

    def _encoding(
        self, rng: np.random.Generator, sizes: Mapping[str, int], options: Mapping[str, object]
    ) -> PositionalEncoding:
        """Most of the time none; one of fixed numbers through some of the attention's hooks, or a bias that is
        learned."""
        hooks, draw = sorted(self.subject.cls.supports - {"embed"}), rng.random()
        heads, _, width = self.subject.cls.geometry(sizes["d_model"], sizes["num_heads"], **options)
        if draw < 0.7 or not hooks:
            return PositionalEncoding()
        if draw < 0.8 and "bias" in hooks:
            return Slopes(heads)
        return Probe(heads, width, [str(hook) for hook in rng.choice(hooks, int(rng.integers(1, 3)))])

    def _text(
        self, rng: np.random.Generator, batch: int, length: int, width: int, encoding: PositionalEncoding
    ) -> tuple[Tensor, TokenInfo]:
        real = rng.integers(1, length + 1, batch) if rng.random() < 0.7 else np.full(batch, length)
        valid = paddle.to_tensor(np.arange(length) < real[:, None])
        x = paddle.to_tensor(rng.normal(size=[batch, length, width]), paddle.get_default_dtype())
        return x, TokenInfo(encoding, paddle.arange(length, dtype="int64").unsqueeze(0), valid)


def _sites(site: LayerSite) -> list[LayerSite]:
    """Those of a layer at whose self-attention this is."""
    return [dataclasses.replace(site, sublayer=name) for name in ("self", "feed_forward")]
