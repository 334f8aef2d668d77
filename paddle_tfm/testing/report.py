"""What a check is, and what came out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

PASS, LIMIT, FAIL, SKIP, INFO = "pass", "declared limit", "fail", "not here", "information"


class Failed(Exception):
    """A check saw what must not be; the text says what."""


class NotHere(Exception):
    """A check has nothing to look at; the text says why."""


class Seen(Exception):
    """A check passed, and saw something worth telling."""


@dataclass(frozen=True)
class Check:
    """One law. `law`: what must hold. `means`: what it means where it does not. `look`: where to look then."""

    name: str
    law: str
    means: str
    look: str
    function: Callable
    each_scene: bool = False
    information: bool = False

    def run(self, subject) -> Outcome:
        """Try it on everything that `subject` offers; the first failure ends it. An error is a failure too."""
        told = []
        try:
            for scene in subject.scenes if self.each_scene else [subject]:
                told += self._once(scene)
        except NotHere as reason:
            return Outcome(self, SKIP, str(reason))
        except Failed as failure:
            return self._failed(subject.expected_failures, str(failure))
        return Outcome(self, INFO if self.information else PASS, "; ".join(told))

    def _once(self, scene) -> list[str]:
        where = f" [{scene}]" if self.each_scene else ""
        try:
            self.function(scene)
        except Seen as seen:
            return [str(seen)]
        except Failed as failure:
            raise Failed(f"{failure}{where}") from failure
        except NotHere:
            raise
        except Exception as error:  # the component is anybody's code
            text = " ".join(str(error).split())
            raise Failed(f"{type(error).__name__}: {text[:200]}{_line(error)}{where}") from error
        return []

    def _failed(self, expected_failures: Mapping[str, str], seen: str) -> Outcome:
        if self.name in expected_failures:
            return Outcome(self, LIMIT, expected_failures[self.name])
        return Outcome(self, FAIL, seen)


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
    """What one check said of one component: `status` is one of pass, declared limit, fail, not here, information."""

    check: Check
    status: str
    seen: str = ""

    def __str__(self) -> str:
        if self.status == FAIL:
            return f"{self.check.name}: {self.seen}\n  it means: {self.check.means}\n  look at: {self.check.look}"
        return f"{self.check.name}: {self.status}{': ' + self.seen if self.seen else ''}"


@dataclass(frozen=True)
class Report:
    """All that was found about one component."""

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


def check(*kinds: str, law: str, means: str, look: str, each_scene: bool = False, information: bool = False):
    """Register the function below as a check of these kinds, under its own name."""

    def register(function: Callable) -> Callable:
        made = Check(function.__name__, law, means, look, function, each_scene, information)
        for kind in kinds:
            CHECKS.setdefault(kind, []).append(made)
        return function

    return register
