"""What a check is, and what came out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from paddle_tfm.testing.results import ComponentError, Failed, Note, Result, Skip

PASS, EXPECTED_FAILURE, FAIL, SKIP, INFO = "pass", "expected failure", "fail", "skip", "information"


@dataclass(frozen=True)
class Check:
    """`invariant`: what must hold. `consequence`: what happens to a user where it does not. `hint`: where to look
    then."""

    name: str
    invariant: str
    consequence: str
    hint: str
    function: Callable[[object], Result]
    each_scene: bool = False
    information: bool = False

    def run(self, subject) -> Outcome:
        """Try it on everything that `subject` offers; the first failure ends it. An error is a failure too."""
        notes = []
        for target in subject.scenes if self.each_scene else [subject]:
            result = self.once(target)
            if isinstance(result, Skip):
                return Outcome(self, SKIP, result.text)
            if isinstance(result, Failed):
                where = f" [{target}]" if self.each_scene else ""
                return self._failure(subject.expected_failures, f"{result.text}{where}")
            if isinstance(result, Note):
                notes.append(result.text)
        return Outcome(self, INFO if self.information else PASS, "; ".join(notes))

    def once(self, target) -> Result:
        """The result on one scene; an error is a failure with its first line and the component's line that raised
        it."""
        try:
            result = self.function(target)
        except ComponentError as error:
            return Failed(str(error))
        except Exception as error:  # the component is anybody's code
            text = " ".join(str(error).split())
            return Failed(f"{type(error).__name__}: {text[:200]}{_line(error)}")
        if not isinstance(result, Result):
            raise TypeError(f"the check {self.name} must return Passed, Note, Skip or Failed, but returned {result!r}")
        return result

    def _failure(self, expected_failures: Mapping[str, str], detail: str) -> Outcome:
        if self.name in expected_failures:
            return Outcome(self, EXPECTED_FAILURE, expected_failures[self.name])
        return Outcome(self, FAIL, detail)


def _line(error: BaseException) -> str:
    """The innermost line of somebody's component at which it was raised."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not any(part in file for part in ("/paddle/", "/numpy/", "/paddle_tfm/", "<")):
            place = f" ({file.rsplit('/', 1)[-1]} line {trace.tb_lineno})"
        trace = trace.tb_next
    return place


@dataclass(frozen=True)
class Outcome:
    """What one check said of one component: `status` is one of pass, expected failure, fail, skip, information."""

    check: Check
    status: str
    detail: str = ""

    def __str__(self) -> str:
        if self.status == FAIL:
            check = self.check
            return f"{check.name}: {self.detail}\n  consequence: {check.consequence}\n  hint: {check.hint}"
        return f"{self.check.name}: {self.status}{': ' + self.detail if self.detail else ''}"


@dataclass(frozen=True)
class Report:
    """The outcomes of all checks of one component."""

    kind: str
    name: str
    outcomes: Sequence[Outcome]
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def failures(self) -> list[Outcome]:
        """The checks that failed."""
        return [outcome for outcome in self.outcomes if outcome.status == FAIL]

    def __getitem__(self, name: str) -> Outcome:
        return next(outcome for outcome in self.outcomes if outcome.check.name == name)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)


# kind -> its checks, in the order in which they are shown
CHECKS: dict[str, list[Check]] = {}


def check(
    *kinds: str,
    invariant: str,
    consequence: str,
    hint: str,
    name: str = "",
    each_scene: bool = False,
    information: bool = False,
):
    """Register the function below as a check of these kinds, under its own name or `name`."""

    def register(function: Callable[[object], Result]) -> Callable[[object], Result]:
        new = Check(name or function.__name__, invariant, consequence, hint, function, each_scene, information)
        for kind in kinds:
            CHECKS.setdefault(kind, []).append(new)
        return function

    return register
