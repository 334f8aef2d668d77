"""A component beside a reference of its author's: NumPy functions, or a module of PyTorch's.

What no check can see (heads in another order, an exponent doubled, a window off by one) a second description of the
same formula does: values and gradients, on random inputs, under all masks and lengths.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import paddle

from paddle_tfm.components import Entry
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.options import options_of
from paddle_tfm.registry import Registry
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.scene import default_dtype
from paddle_tfm.testing.other_options import other_values
from paddle_tfm.testing.reference.case import Case, parameters_of
from paddle_tfm.testing.reference.cases import CASES, functions_of, functions_of_installed
from paddle_tfm.testing.reference.explained import explained, where_same
from paddle_tfm.testing.reference.file import Bind, Function, functions_in
from paddle_tfm.testing.reference.installed import Installed
from paddle_tfm.testing.reference.nearest import nearest_of
from paddle_tfm.testing.report import Check, Outcome
from paddle_tfm.testing.results import Failed, Note, Result

VALUES, SLOPES = 1e-6, 1e-4  # how far values and slopes may be off, of the largest number: parts may be in float32
STEPS = (1e-5, 1e-6, 1e-4)  # of finite differences
SEED = 17
CONSEQUENCE = "the formula is not the one that was written down"
SOME_CASES = 3  # cases under another value of an option


class Reference:
    """What `text` names: an installed component; FILE.py (which functions it holds says what is compared; or a function
    of the component's name), FILE.py:FUNCTION (by any name), or FILE.py:CLASS, a torch.nn.Module. Each function is
    called once here: what is wrong with the reference itself shows before any check.

    Raises:
        UserError: there is no such file or function, it asks for what the kit does not have, it raises an error, or it
            says nothing of this component.
    """

    def __init__(self, text: str, kind: str, name: str, options: Mapping[str, object], registry: Registry):
        self.text = text
        self.cause = ""  # of the first difference that was seen; "": its numbers say all there is
        known = functions_of(kind, f"{kind} '{name}'")
        installed = registry.tables[kind].get(text.removeprefix(f"{kind}:"))
        self.functions: dict[str, Bind | Installed] = (
            {} if installed else dict(functions_in(text, name, known, registry.names(kind)))
        )
        self.subject = ComponentUnderTest(registry, kind, name, options)
        with default_dtype("float64"):
            if installed is not None:
                self._take(installed)
            self.compared = self._compared_functions()
        if not self.compared:
            raise UserError(f"{text} holds {', '.join(self.functions)}, and {self.subject} uses none of these")

    def _take(self, entry: Entry) -> None:
        """What --reference names is installed: ours beside it, under its own names of parameters.

        Raises:
            UserError: its parameters are cut in another way.
        """
        functions, settings = functions_of_installed(self.subject.kind), settings_of(self.subject)
        near = nearest_of(self.subject.registry, entry, probes(self.subject), settings)
        if near is None:
            text = _(
                "{subject} cannot be compared with {kind} {name}: their parameters do not have the same shapes. Write "
                "the formula in NumPy: --reference FILE.py"
            )
            raise UserError(text.format(subject=self.subject, kind=entry.kind, name=entry.name))
        self.text, self.functions = str(near[1]), dict.fromkeys(functions, near[1])

    @classmethod
    def of(cls, subject: ComponentUnderTest, formula: Installed) -> Reference:
        """A component beside one that is installed."""
        reference = cls.__new__(cls)
        reference.text, reference.cause, reference.subject = str(formula), "", subject
        reference.functions = dict.fromkeys(functions_of_installed(subject.kind), formula)
        reference.compared = set(reference.functions)
        return reference

    def outcome(self) -> Outcome:
        """The component beside it, as the check "reference".

        Raises:
            UserError: the reference raises an error.
        """
        problems = []

        def compared(target: object) -> Result:
            try:
                with default_dtype("float64"):
                    return self.compare()
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
        options = settings_of(subject)
        for case in CASES[subject.kind](subject, list(self.functions), rng):
            reference = self.functions.get(case.function)
            if reference is not None and (not case.asks or case.asks & reference.parameters()):
                yield case, reference(case, options)

    def _varied(self) -> Iterator[tuple[str, ComponentUnderTest]]:
        """The component under another value of each option that the reference asks for: how it acts may not show in the
        default, as a share of 1."""
        asked = frozenset().union(*(bind.parameters() for bind in self.functions.values()))
        case, _theirs = next(self._cases(self.subject, np.random.default_rng(SEED)))
        for option in self.subject.options():
            if option.name in asked and option.name not in case.facts:
                for value in other_values(option):
                    yield f"with {option.name} {value}, ", self.subject.varied({option.name: value})

    def _compared_functions(self) -> set[str]:
        """Names of the functions that cases use; each is called once."""
        compared: set[str] = set()
        for case, theirs in self._cases(self.subject, np.random.default_rng(SEED)):
            if case.function not in compared:
                theirs({**case.inputs, "w": case.parameters()})
            compared.add(case.function)
        return compared

    def compare(self, close: float = VALUES) -> Result:
        """All cases, up to the first that differs. `close`: how far values may be off, of the largest number."""
        rng, count = np.random.default_rng(SEED), 0
        for case, theirs in self._cases(self.subject, rng):
            count += 1
            if failed := self._compared("", case, theirs, rng, close):
                if count > 1 and self.cause:
                    self.cause += f"; in {count - 1} case{'s' * (count > 2)} before this one they agree"
                return failed
        for how, varied in self._varied():
            with contextlib.suppress(UserError):  # one of the two does not take this value
                for case, theirs in itertools.islice(self._cases(varied, rng), SOME_CASES):
                    if failed := self._compared(how, case, theirs, rng, close):
                        return failed
        written = [name for name, bind in self.functions.items() if isinstance(bind, Bind)]
        unused = ", ".join(f"`{name}`" for name in written if name not in self.compared)
        rest = f"; {self.subject} uses no {unused}" if unused else ""
        return Note(f"values and gradients agree with {self.text} in {count} case{'s' * (count > 1)}{rest}")

    def _compared(
        self, how: str, case: Case, theirs: Function, rng: np.random.Generator, close: float
    ) -> Failed | None:
        gap = _gap(case, theirs, rng, close)
        if gap is None:
            return None
        self.cause = gap.cause and f"{how}{case.what}: {gap.cause}"
        return Failed(f"{how}{case.what}: {gap.text}")


def probes(subject: ComponentUnderTest, last: bool = True) -> list[Case]:
    """Of the calls for each function the first, and the last."""
    by_function: dict[str, list[Case]] = {}
    functions = functions_of_installed(subject.kind)
    for case in CASES[subject.kind](subject, functions, np.random.default_rng(SEED)):
        if not case.asks:
            by_function.setdefault(case.function, []).append(case)
    return [case for each in by_function.values() for case in ([each[0], each[-1]] if last else each[:1])]


def settings_of(subject: ComponentUnderTest) -> dict[str, object]:
    """The options of the component, as set or by default."""
    options = {key: option.default for key, option in options_of(subject.cls).items() if not option.required}
    return options | subject.own_options


@dataclass(frozen=True)
class Gap:
    """A difference, in numbers, and what explains it; "": nothing does."""

    text: str
    cause: str = ""


def _gap(case: Case, theirs: Function, rng: np.random.Generator, close: float) -> Gap | None:
    """Where values, or the slopes in a random direction of each input and parameter, are not the same."""
    inputs = {name: paddle.to_tensor(value, stop_gradient=False) for name, value in case.inputs.items()}
    out = case.ours(inputs)
    w = case.parameters()
    expected = np.asarray(theirs({**case.inputs, "w": w}), dtype=np.float64)
    ours = out.numpy().astype(np.float64)
    if expected.size == ours.size == 1:  # a rate, or a list of it
        expected = expected.reshape(ours.shape)
    if expected.shape != ours.shape:
        return Gap(f"its shape is {list(ours.shape)}, that of the reference {list(expected.shape)}")
    real = case.counted(ours.shape)
    largest = max(1e-12, float(np.abs(expected[real]).max()))
    gap = np.where(real, np.abs(ours - np.where(real, expected, 0.0)), 0.0)
    if not gap.max() <= close * largest:
        at = np.unravel_index(int(np.nan_to_num(gap, nan=np.inf).argmax()), gap.shape)
        wrong, count = int((gap > close * largest).sum() + np.isnan(gap).sum()), int(real.sum())
        share = f"; {wrong} of {count} numbers differ" if count > 1 else ""
        alike = where_same(case, ~(gap <= VALUES * largest), real, lambda inputs: theirs({**inputs, "w": w}))
        alike = f"; the same: {alike}" if alike else ""
        text = f"at {[int(i) for i in at]} it is {ours[at]:.6g}, the reference {expected[at]:.6g}{share}{alike}"
        why = explained(ours, expected, real)
        return Gap(text, why and why + alike)
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
        if abs(slopes[0] - slope) > max(SLOPES, 10 * close) * size:  # a kink beside it, or rounding
            slopes += [(moved(step) - moved(-step)) / (2 * step) for step in STEPS[1:]]
        if min(abs(other - slope) for other in slopes) > max(SLOPES, 10 * close) * size:
            text = f"along {name} its gradient says {slope:.6g}, the reference changes by {slopes[0]:.6g}"
            return Gap(text, f"values agree, and the gradient of {name} does not: it is cut (`detach`, `no_grad`), or "
                             f"has a backward of its own")  # fmt: skip
    return None
