"""A component beside a reference of its author's: NumPy functions, or a module of PyTorch's.

What no check can see (heads in another order, an exponent doubled, a window off by one) a second description of the
same formula does: values and gradients, on random inputs, under all masks and lengths.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import paddle

from paddle_tfm.errors import UserError
from paddle_tfm.options import options_of
from paddle_tfm.registry import Registry
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.scene import default_dtype
from paddle_tfm.testing.other_options import other_values
from paddle_tfm.testing.reference.case import Case, parameters_of
from paddle_tfm.testing.reference.cases import cases, functions_of
from paddle_tfm.testing.reference.file import Bind, Function, functions_in
from paddle_tfm.testing.report import Check, Outcome
from paddle_tfm.testing.results import Failed, Note, Result

VALUES, SLOPES = 1e-6, 1e-4  # how far values and slopes may be off, of the largest number: parts may be in float32
STEPS = (1e-5, 1e-6, 1e-4)  # of finite differences
SEED = 17
CONSEQUENCE = "the formula is not the one that was written down"
SOME_CASES = 3  # cases under another value of an option


class Reference:
    """What `text` names: FILE.py (which functions it holds says what is compared; or a function of the component's
    name), FILE.py:FUNCTION (by any name), or FILE.py:CLASS, a torch.nn.Module. Each function is called once here: what
    is wrong with the reference itself shows before any check.

    Raises:
        UserError: there is no such file or function, it asks for what the kit does not have, it raises an error, or it
            says nothing of this component.
    """

    def __init__(self, text: str, kind: str, name: str, options: Mapping[str, object], registry: Registry):
        self.text = text
        self.cause = ""  # of the first difference that was seen; "": its numbers say all there is
        known = functions_of(kind, f"{kind} '{name}'")
        self.functions: dict[str, Bind] = functions_in(text, name, known)
        self.subject = ComponentUnderTest(registry, kind, name, options)
        with default_dtype("float64"):
            self.compared = self._compared_functions()
        if not self.compared:
            raise UserError(f"{text} holds {', '.join(self.functions)}, and {self.subject} uses none of these")

    def outcome(self) -> Outcome:
        """The component beside it, as the check "reference".

        Raises:
            UserError: the reference raises an error.
        """
        problems = []

        def compared(target: object) -> Result:
            try:
                with default_dtype("float64"):
                    return self._compare()
            except UserError as error:
                problems.append(error)
                return Failed(str(error))

        check = Check(
            "reference",
            f"values and gradients are those of {self.text}",
            CONSEQUENCE,
            "",
            compared,
        )
        outcome = check.run(self.subject)
        if problems:
            raise problems[0]
        return replace(outcome, check=replace(check, hint=self.cause or outcome.detail))

    def _cases(self, subject: ComponentUnderTest, rng: np.random.Generator) -> Iterator[tuple[Case, Function]]:
        """Each case with the reference's function for it."""
        options = _settings(subject)
        for case in cases(subject, list(self.functions), rng):
            reference = self.functions.get(case.function)
            if reference is not None and (not case.asks or case.asks & reference.parameters()):
                yield case, reference(case, options)

    def _varied(self) -> Iterator[tuple[str, ComponentUnderTest]]:
        """The component under another value of each option that the reference asks for: how it acts may not show in the
        default, as a share of 1."""
        asked = frozenset().union(*(bind.parameters() for bind in self.functions.values()))
        case, _ = next(self._cases(self.subject, np.random.default_rng(SEED)))
        for name, option in self.subject.registry.options(self.subject.kind, self.subject.name).items():
            if name in asked and name not in case.facts:
                default = self.subject.spec.get(name, option.default)
                for value in other_values(replace(option, default=default)):
                    varied = copy.copy(self.subject)
                    varied.spec = {**self.subject.spec, name: value}
                    yield f"with {name} {value}, ", varied

    def _compared_functions(self) -> set[str]:
        """Names of the functions that cases use; each is called once."""
        compared: set[str] = set()
        for case, theirs in self._cases(self.subject, np.random.default_rng(SEED)):
            if case.function not in compared:
                theirs({**case.inputs, "w": _parameters(case)})
            compared.add(case.function)
        return compared

    def _compare(self) -> Result:
        rng, count = np.random.default_rng(SEED), 0
        for case, theirs in self._cases(self.subject, rng):
            count += 1
            if failed := self._compared("", case, theirs, rng):
                return failed
        for how, varied in self._varied():
            with contextlib.suppress(UserError):  # one of the two does not take this value
                for case, theirs in itertools.islice(self._cases(varied, rng), SOME_CASES):
                    if failed := self._compared(how, case, theirs, rng):
                        return failed
        unused = ", ".join(f"`{name}`" for name in self.functions if name not in self.compared)
        rest = f"; {self.subject} uses no {unused}" if unused else ""
        return Note(f"values and gradients agree with {self.text} in {count} case{'s' * (count > 1)}{rest}")

    def _compared(self, how: str, case: Case, theirs: Function, rng: np.random.Generator) -> Failed | None:
        gap = _gap(case, theirs, rng)
        if gap is None:
            return None
        self.cause = gap.cause and f"{how}{case.what}: {gap.cause}"
        return Failed(f"{how}{case.what}: {gap.text}")


def _settings(subject: ComponentUnderTest) -> dict[str, object]:
    """The options of the component, as set or by default."""
    options = {key: option.default for key, option in options_of(subject.cls).items() if not option.required}
    return options | {key: value for key, value in subject.spec.items() if key != "name"}


@dataclass(frozen=True)
class Gap:
    """A difference, in numbers, and what explains it; "": nothing does."""

    text: str
    cause: str = ""


def _gap(case: Case, theirs: Function, rng: np.random.Generator) -> Gap | None:
    """Where values, or the slopes in a random direction of each input and parameter, are not the same."""
    inputs = {name: paddle.to_tensor(value, stop_gradient=False) for name, value in case.inputs.items()}
    out = case.ours(inputs)
    w = _parameters(case)
    expected = np.asarray(theirs({**case.inputs, "w": w}), dtype=np.float64)
    ours = out.numpy().astype(np.float64)
    if expected.size == ours.size == 1:  # a rate, or a list of it
        expected = expected.reshape(ours.shape)
    if expected.shape != ours.shape:
        return Gap(f"its shape is {list(ours.shape)}, that of the reference {list(expected.shape)}")
    real = np.ones(ours.shape, dtype=bool)
    if case.real is not None:
        real &= case.real.reshape([*case.real.shape, *[1] * (ours.ndim - 2)])
    largest = max(1e-12, float(np.abs(expected[real]).max()))
    gap = np.where(real, np.abs(ours - np.where(real, expected, 0.0)), 0.0)
    if not gap.max() <= VALUES * largest:
        at = np.unravel_index(int(np.nan_to_num(gap, nan=np.inf).argmax()), gap.shape)
        wrong, count = int((gap > VALUES * largest).sum() + np.isnan(gap).sum()), int(real.sum())
        share = f"; {wrong} of {count} numbers differ" if count > 1 else ""
        text = f"at {[int(i) for i in at]} it is {ours[at]:.6g}, the reference {expected[at]:.6g}{share}"
        return Gap(text, explained(ours, expected, real))
    if case.layer is None:
        return None
    weight = np.where(real, rng.normal(size=ours.shape), 0.0)
    learned = {f"w[{name}]": p for name, p in parameters_of(case.layer).items()}
    leaves = {**inputs, **learned}
    if not leaves or out.stop_gradient:
        return None
    gradients = paddle.grad(
        (out * paddle.to_tensor(weight).astype(out.dtype)).sum(), list(leaves.values()), allow_unused=True
    )
    for (name, leaf), gradient in zip(leaves.items(), gradients):
        direction = rng.normal(size=leaf.shape)
        slope = 0.0 if gradient is None else float((gradient.numpy() * direction).sum())

        def moved(step: float, name: str = name, direction: np.ndarray = direction) -> float:
            values = {key: value + step * direction if key == name else value for key, value in case.inputs.items()}
            moved_w = {key: v + step * direction if f"w[{key}]" == name else v for key, v in w.items()}
            y = np.asarray(theirs({**values, "w": moved_w}), dtype=np.float64)
            return float((np.where(real, y, 0.0) * weight).sum())

        size = max(1.0, abs(slope), 0.0 if gradient is None else float(np.abs(gradient.numpy()).max()))
        slopes = [(moved(step) - moved(-step)) / (2 * step) for step in STEPS[:1]]
        if abs(slopes[0] - slope) > SLOPES * size:  # a kink beside it, or rounding
            slopes += [(moved(step) - moved(-step)) / (2 * step) for step in STEPS[1:]]
        if min(abs(other - slope) for other in slopes) > SLOPES * size:
            text = f"along {name} its gradient says {slope:.6g}, the reference changes by {slopes[0]:.6g}"
            return Gap(text, f"values agree, and the gradient of {name} does not: it is cut (`detach`, `no_grad`), or "
                             f"has a backward of its own")  # fmt: skip
    return None


def _parameters(case: Case) -> dict[str, np.ndarray]:
    """Name → float64, of parameters and buffers."""
    if case.layer is None:
        return {}
    named = {**parameters_of(case.layer), **dict(case.layer.named_buffers())}
    return {name: tensor.numpy().astype(np.float64) for name, tensor in named.items()}


OTHER = "another formula: no factor, constant, order or shift makes one of the other; compare them term by term"
NEAR = 1e-5  # of the largest number: what counts as the same under a factor, an order or a shift


def explained(ours: np.ndarray, expected: np.ndarray, real: np.ndarray) -> str:
    """What makes the one of the other: a factor, constant, order or shift, or that it is none of these. `real`: which
    numbers count. "" where they are too few, or not finite: those have no explanation."""
    if real.sum() < 2 or not (np.isfinite(ours[real]).all() and np.isfinite(expected[real]).all()):
        return ""
    near = NEAR * max(1e-12, float(np.abs(expected[real]).max()))
    a, b = ours[real], expected[real]
    factor = float(a @ b / max(1e-30, b @ b))
    if np.ptp(b) > near and np.abs(a - factor * b).max() <= near * max(1.0, abs(factor)) and abs(factor) > NEAR:
        if abs(factor + 1.0) < NEAR:
            return "it is the reference with the opposite sign"
        return f"it is {factor:.4g} times the reference: a factor is missing, or stands there twice"
    if np.ptp(b) > near and np.ptp(a - b) <= near:
        return f"it is the reference and {float((a - b).mean()):.4g}: a constant is missing, or is there once too often"
    for axis in range(ours.ndim if real.all() else 0):
        if sentence := _in_another_order(np.moveaxis(ours, axis, 0), np.moveaxis(expected, axis, 0), near):
            return f"along axis {axis} of {list(ours.shape)} {sentence}"
    return OTHER


def _in_another_order(ours: np.ndarray, expected: np.ndarray, near: float) -> str:
    """Whether slices along the first axis are those of the other in another order, or shifted; "" where they are
    not."""
    count = len(ours)
    if count < 2:
        return ""
    one, other = ours.reshape(count, -1), expected.reshape(count, -1)
    same = np.abs(one[:, None] - other[None]).max(-1) <= near  # [of ours, of the reference]
    if same.any(1).all() and same.any(0).all():
        order = same.argmax(1).tolist()
        if sorted(order) == list(range(count)):
            return f"it has what the reference has in the order {order}: heads, groups or channels cut in another way"
    for step in (1, -1):
        if count > 2 and np.diagonal(same, step).all():
            return f"it has at i what the reference has at i {'+' if step > 0 else '-'} 1: an index that is one off"
    return ""
