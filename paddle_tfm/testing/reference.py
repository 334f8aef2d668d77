"""A component beside a reference of its author's: NumPy functions, or a module of PyTorch's.

What no check can see (heads in another order, an exponent doubled, a window off by one) a second description of the
same formula does: values and gradients, on random inputs, under all masks and lengths.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import paddle

from paddle_tfm.errors import UserError
from paddle_tfm.registry import Registry, options_of
from paddle_tfm.testing.adapters.arguments import constructor
from paddle_tfm.testing.reference_cases import Case, cases
from paddle_tfm.testing.report import Check, Outcome
from paddle_tfm.testing.results import Failed, Note, Result
from paddle_tfm.testing.scene import default_dtype
from paddle_tfm.testing.subject import Subject
from paddle_tfm.testing.target import load

VALUES, SLOPES = 1e-6, 1e-4  # how far values and slopes may be off, of the largest number: parts may be in float32
STEPS = (1e-5, 1e-6, 1e-4)  # of finite differences
FUNCTIONS = ("forward", "embed", "bias", "attend", "log_probs", "loss")  # what a file may hold

Function = Callable[[dict[str, object]], np.ndarray]


def held_to(reference: str, kind: str, name: str, options: Mapping[str, object], registry: Registry) -> Outcome:
    """The component beside `reference`, FILE.py (which functions it holds says what is compared), FILE.py:FUNCTION,
    FILE.py:TABLE (a dict with the component's name) or FILE.py:CLASS (of torch.nn.Module), as the check "reference".

    Raises:
        UserError: there is no such file or function, or it asks for what the kit does not have.
    """
    subject = Subject(registry, kind, name, options)
    problems = []

    def compared(target: object) -> Result:
        try:
            return _compared(reference, subject)
        except UserError as error:
            problems.append(error)
            return Failed(str(error))

    check = Check(
        "reference",
        f"values and gradients are those of {reference}",
        "the formula is not the one that was written down",
        "where the numbers differ first: the shortest text, one head, one layer",
        compared,
    )
    outcome = check.run(subject)
    if problems:
        raise problems[0]
    return outcome


def _compared(reference: str, subject: Subject) -> Result:
    rng, count = np.random.default_rng(17), 0
    with default_dtype("float64"):
        known = _settings(subject)
        twins = _functions(reference, subject)
        for case in cases(subject, list(twins), rng):
            if case.function not in twins:
                continue
            count += 1
            if failed := _differs(case, twins[case.function](case, known), rng):
                return failed
    if not count:
        raise UserError(f"{reference} holds {', '.join(twins)}, and {subject} uses none of these")
    return Note(f"values and gradients agree with {reference} in {count} cases")


def _settings(subject: Subject) -> dict[str, object]:
    """The options of the component, as set or by default."""
    options = {key: option.default for key, option in options_of(subject.cls).items() if not option.required}
    return options | {key: value for key, value in subject.spec.items() if key != "name"}


def _differs(case: Case, theirs: Function, rng: np.random.Generator) -> Failed | None:
    """Failed where values, or the slopes in a random direction of each input and parameter, are not the same."""
    inputs = {name: paddle.to_tensor(value, stop_gradient=False) for name, value in case.inputs.items()}
    out = case.ours(inputs)
    w = _parameters(case)
    expected = np.asarray(theirs({**case.inputs, "w": w}), dtype=np.float64)
    ours = out.numpy().astype(np.float64)
    if expected.shape != ours.shape:
        return Failed(f"{case.what}: it gives {list(ours.shape)}, the reference {list(expected.shape)}")
    real = np.ones(ours.shape, dtype=bool)
    if case.real is not None:
        real &= case.real.reshape([*case.real.shape, *[1] * (ours.ndim - 2)])
    largest = max(1e-12, float(np.abs(expected[real]).max()))
    gap = np.where(real, np.abs(ours - np.where(real, expected, 0.0)), 0.0)
    if not gap.max() <= VALUES * largest:
        at = np.unravel_index(int(np.nan_to_num(gap, nan=np.inf).argmax()), gap.shape)
        return Failed(f"{case.what}: at {[int(i) for i in at]} it is {ours[at]:.6g}, the reference {expected[at]:.6g}")
    if case.layer is None:
        return None
    weight = np.where(real, rng.normal(size=ours.shape), 0.0)
    learned = {f"w[{name}]": p for name, p in case.layer.named_parameters()}
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
            return Failed(
                f"{case.what}: along {name} its gradient says {slope:.6g}, the reference changes by {slopes[0]:.6g}"
            )
    return None


def _parameters(case: Case) -> dict[str, np.ndarray]:
    """Name → float64, of parameters and buffers; an ordinary layer's without the adapter's `layer.`."""
    if case.layer is None:
        return {}
    named = {**dict(case.layer.named_parameters()), **dict(case.layer.named_buffers())}
    return {name: tensor.numpy().astype(np.float64) for name, tensor in named.items()}


# ------------------------------------------------------------------------------------------------- what a file holds


def _functions(reference: str, subject: Subject) -> dict[str, Callable[[Case, dict[str, object]], Function]]:
    """Function's name → (case, options) → the reference as a function of inputs."""
    place, _, attribute = reference.rpartition(":") if not reference.endswith(".py") else (reference, "", "")
    module = load(Path(place))
    if not attribute:
        functions = {name: getattr(module, name) for name in FUNCTIONS if callable(getattr(module, name, None))}
        if not functions:
            raise UserError(f"{place} holds none of the functions {', '.join(FUNCTIONS)}; or say which: {place}:NAME")
    else:
        value = getattr(module, attribute, None)
        if isinstance(value, Mapping):
            value = value.get(subject.name)
        if not callable(value):
            raise UserError(f"{reference}: there is no such function (nor a table with '{subject.name}' in it)")
        functions = {attribute if attribute in FUNCTIONS else "forward": value}
    return {name: _twin(function, f"{place}:{name}") for name, function in functions.items()}


def _twin(function: Callable[..., Any], name: str) -> Callable[[Case, dict[str, object]], Function]:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(function, type) and issubclass(function, torch.nn.Module):
        return lambda case, options: _torch_function(torch, function, case, options)

    def bound(case: Case, options: dict[str, object]) -> Function:
        def call(inputs: dict[str, object]) -> np.ndarray:
            known: dict[str, Any] = {**options, **case.facts, **inputs}
            known.setdefault("source", known.get("x"))
            known["w"] = known["w"] | {key: known[key] for key in ("causal",) if key in known}
            if isinstance(known.get("h"), str):  # each head by itself
                parts = [{**known, "h": h, **{n: known[n][h] for n in "qkv"}} for h in range(len(known["q"]))]
                return np.stack([function(**_arguments(function, part, name)) for part in parts])
            return function(**_arguments(function, known, name))

        return call

    return bound


def _arguments(function: Callable[..., Any], known: Mapping[str, object], name: str) -> dict[str, object]:
    """What the function's parameters ask for, by their names."""
    arguments = {}
    for key, parameter in inspect.signature(function).parameters.items():
        if callable(parameter.default) and parameter.default is not parameter.empty and not callable(known.get(key)):
            continue  # a part that the reference may exchange; the option of that name is something else
        if key in known:
            arguments[key] = known[key]
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_KEYWORD,
            parameter.VAR_POSITIONAL,
        ):
            raise UserError(f"{name} asks for `{key}`, which the kit does not have; it has {', '.join(sorted(known))}")
    return arguments


def _torch_function(torch, cls: type, case: Case, options: dict[str, object]) -> Function:
    """A module with our parameters, which must have the same names; a Linear's matrix is turned to theirs [out, in]."""
    accepted = inspect.signature(cls).parameters
    module = cls(**constructor(cls, case.facts, {key: value for key, value in options.items() if key in accepted}))
    module = module.double().eval()
    linear = {f"{name}.weight" for name, part in module.named_modules() if isinstance(part, torch.nn.Linear)}

    def call(inputs: dict[str, Any]) -> np.ndarray:
        for name, parameter in module.named_parameters():
            if name not in inputs["w"]:
                raise UserError(
                    f"{cls.__name__} has a parameter {name}, ours are {', '.join(inputs['w'])}: use one name"
                )
            value = inputs["w"][name].T if name in linear else inputs["w"][name]
            with torch.no_grad():
                parameter.copy_(torch.tensor(value.copy()))
        known = {**case.facts, **inputs}
        known.setdefault("source", known.get("x"))
        arguments = _arguments(module.forward, known, cls.__name__)
        tensors = {k: torch.tensor(v.copy()) if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
        with torch.no_grad():
            out = module(**tensors)
        return (out[0] if isinstance(out, tuple) else out).numpy()

    return call
