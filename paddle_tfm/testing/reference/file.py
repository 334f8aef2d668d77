"""What a reference's file holds: functions in NumPy, or a module of PyTorch's."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paddle_tfm.errors import UserError, nearest
from paddle_tfm.plugin_errors import summary
from paddle_tfm.testing.adapters.arguments import constructor
from paddle_tfm.testing.module_file import load
from paddle_tfm.testing.reference.case import Case, parameters_of
from paddle_tfm.testing.report import line_of

Function = Callable[[dict[str, Any]], np.ndarray]  # of a case's inputs


class Bind:
    """A reference's function, or module of PyTorch's, called `name` in errors: (case, options) → what it computes."""

    def __init__(self, function: Callable[..., Any], name: str):
        self.function, self.name = function, name

    def __call__(self, case: Case, options: Mapping[str, object]) -> Function:
        if isinstance(self.function, type) and _is_module(self.function):
            return _of_torch(self.function, case, options, self.name)
        return _of_numpy(self.function, case, options, self.name)

    def parameters(self) -> frozenset[str]:
        """The names of what it takes, but for a part that it may exchange."""
        try:
            every = inspect.signature(self.function).parameters
        except ValueError:  # of some functions written in C
            return frozenset()
        return frozenset(name for name, parameter in every.items() if not _is_part(parameter))


def functions_in(reference: str, component: str, known: Sequence[str], installed: Sequence[str]) -> dict[str, Bind]:
    """Name of a function, one of `known` -> the reference of it. Whatever else FILE.py:NAME names is `forward`, and
    so is, of a file with none of these, the function of the component's name.

    Args:
        installed: names of components that are a reference too.
    Raises:
        UserError: there is no such file, or nothing of that name in it that can be called.
    """
    file, _, attribute = (reference, "", "") if reference.endswith(".py") else reference.partition(".py:")
    if not reference.endswith(".py"):
        if not attribute:
            beside = [str(each) for each in Path(reference).parent.glob("*.py")]
            hint = nearest(reference, [*beside, *installed])
            raise UserError(f"--reference {reference}: it must be FILE.py, FILE.py:NAME or what is installed{hint}")
        file += ".py"
    module = load(Path(file))
    if not attribute:
        functions = {name: getattr(module, name) for name in known if callable(getattr(module, name, None))}
        if functions:
            return {name: Bind(function, f"{file}:{name}") for name, function in functions.items()}
        if not callable(getattr(module, component, None)):
            raise UserError(f"{file} holds no function {' or '.join([*known, component])}; or say which: {file}:NAME")
        attribute, reference = component, f"{file}:{component}"
    value = getattr(module, attribute, None)
    if not callable(value):
        names = [name for name, each in vars(module).items() if callable(each) and not name.startswith("_")]
        raise UserError(f"{reference}: there is no such function or class{nearest(attribute, names)}")
    if isinstance(value, type) and not _is_module(value):
        raise UserError(f"{reference} is a class; it must be a function in NumPy, or a torch.nn.Module")
    return {attribute if attribute in known else "forward": Bind(value, reference)}


def _is_module(cls: type) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(cls, torch.nn.Module)


def _of_numpy(function: Callable[..., Any], case: Case, options: Mapping[str, object], name: str) -> Function:
    facts = {**options, **case.facts}
    asked = _asked(function, {**facts, **case.inputs, "source": None, "w": None}, name)

    def once(known: dict[str, Any]) -> np.ndarray:
        try:
            return np.asarray(function(**{key: known[key] for key in asked}), dtype=np.float64)
        except UserError as error:
            raise UserError(f"{name}: {error}") from error
        except Exception as error:
            raise _raised(error, name, case) from error

    def call(inputs: dict[str, Any]) -> np.ndarray:
        known = {**facts, **inputs}
        known.setdefault("source", known.get("x"))
        known["w"] = _Parameters(known["w"] | {key: known[key] for key in ("causal",) if key in known})
        if isinstance(known.get("h"), str):  # each head by itself
            parts = [{**known, "h": h, **{n: known[n][h] for n in "qkv"}} for h in range(len(known["q"]))]
            return np.stack([once(part) for part in parts])
        return once(known)

    return call


def _raised(error: Exception, name: str, case: Case) -> UserError:
    return UserError(f"{name} raises {summary(error)}{line_of(error)}; {case.what}")


class _Parameters(dict[str, Any]):
    """Parameters and buffers by name."""

    def __missing__(self, name: str):
        raise UserError(f"there is no parameter w['{name}']{nearest(name, list(self))} There are {', '.join(self)}")


_NAMELESS = "{name} does not say by name what it asks for: write `def forward(x): …` around it"


def _asked(function: Callable[..., Any], known: Mapping[str, object], name: str) -> list[str]:
    """The names of the function's parameters that are given to it.

    Raises:
        UserError: it asks for what the kit does not have.
    """
    asked = []
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # of some functions written in C
        raise UserError(_NAMELESS.format(name=name)) from None
    for key, parameter in parameters.items():
        if _is_part(parameter) and not callable(known.get(key)):
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise UserError(_NAMELESS.format(name=name))
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if key in known:
            asked.append(key)
        elif parameter.default is parameter.empty:
            raise UserError(
                f"{name} asks for `{key}`, which the kit does not have{nearest(key, list(known)) or '.'} "
                f"It has {', '.join(sorted(known))}"
            )
    return asked


def _is_part(parameter: inspect.Parameter) -> bool:
    """Whether it is a part that the reference may exchange; an option of that name is something else."""
    return callable(parameter.default) and parameter.default is not parameter.empty


def _of_torch(cls: type, case: Case, options: Mapping[str, object], name: str) -> Function:
    """A module with our parameters, which must have the same names; a Linear's matrix is turned to theirs [out, in].
    The first that its `forward` takes is x, by any name."""
    torch = sys.modules["torch"]
    accepted = inspect.signature(cls).parameters
    its_options = {key: value for key, value in options.items() if key in accepted}
    module = cls(
        **constructor(cls, case.facts, its_options, "it must have a default, or be an option of the component")
    )
    module = module.double().eval()
    linear = {f"{name}.weight" for name, part in module.named_modules() if isinstance(part, torch.nn.Linear)}
    ours = parameters_of(case.layer).keys() if case.layer is not None else set()
    for key, _ in module.named_parameters():
        if key not in ours:
            raise UserError(f"{name} has a parameter {key}, ours are {', '.join(sorted(ours)) or 'none'}: use one name")
    first = next(iter(inspect.signature(module.forward).parameters), "x")
    facts = {**case.facts, "source": None}
    asked = _asked(module.forward, {first: None, **facts, **case.inputs}, name)

    def call(inputs: dict[str, Any]) -> np.ndarray:
        for key, parameter in module.named_parameters():
            value = inputs["w"][key].T if key in linear else inputs["w"][key]
            with torch.no_grad():
                parameter.copy_(torch.tensor(value.copy()))
        known = {**case.facts, **inputs}
        known.setdefault("source", known.get("x"))
        known.setdefault(first, known.get("x", known.get("h")))
        tensors = {
            key: torch.tensor(known[key].copy()) if isinstance(known[key], np.ndarray) else known[key] for key in asked
        }
        with torch.no_grad():
            try:
                out = module(**tensors)
            except Exception as error:
                raise _raised(error, name, case) from error
        return (out[0] if isinstance(out, tuple) else out).numpy()

    return call
