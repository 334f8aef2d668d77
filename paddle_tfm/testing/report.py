"""What a check is, and what came out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from typing import Any

from paddle_tfm.language import _
from paddle_tfm.testing.backward_line import is_of_the_author
from paddle_tfm.testing.causes import cause_of, cause_of_error
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
    long: bool = False  # also with texts of more than 70 tokens
    equal: bool = False  # also with as many sentences as tokens and heads
    decisive: bool = False  # where it fails, what else is seen says nothing

    def run(self, subject) -> Outcome:
        """Try it on everything that `subject` offers; the first failure ends it. An error is a failure too."""
        notes = []
        targets = [*subject.scenes] if self.each_scene else [subject]
        targets += subject.long_scenes if self.long else []
        targets += subject.scenes_of_equal_sizes if self.equal else []
        for target in targets:
            result = self.once(target)
            if isinstance(result, Skip):
                return Outcome(self, SKIP, result.text)
            if isinstance(result, Failed):
                where = f" [{target}]" if self.each_scene and str(target) else ""
                return self._failure(subject.expected_failures, replace(result, text=f"{result.text}{where}"))
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
            seen = f"{type(error).__name__}: {text[:200]}{line_of(error)}{_expected(target)}"
            return Failed(seen, raised=True)
        if not isinstance(result, Result):
            raise TypeError(f"the check {self.name} must return Passed, Note, Skip or Failed, but returned {result!r}")
        return result

    def _failure(self, expected_failures: Mapping[str, str], failed: Failed) -> Outcome:
        """A limit "trains *.experts.*" covers failures of the parameters that the pattern names, and no other."""
        detail, names = failed.text, failed.names
        if names:
            declarations = {tuple(key.split()): why for key, why in expected_failures.items()}
            patterns = {key[1]: why for key, why in declarations.items() if len(key) == 2 and key[0] == self.name}
            if all(any(fnmatch(name, pattern) for pattern in patterns) for name in names):
                return Outcome(self, EXPECTED_FAILURE, "; ".join(dict.fromkeys(patterns.values())))
            if self.name in expected_failures:
                detail += f"; `expected_failures` must name which parameters it excuses: '{self.name} *.weight', say"
        elif self.name in expected_failures:
            return Outcome(self, EXPECTED_FAILURE, expected_failures[self.name])
        return Outcome(self, FAIL, detail, failed.raised)


CONTRACTS = {
    "attention": "`forward` gets x [B, T, C] and what `project` made of [B, S, C], and returns [B, T, C]",
    "norm": "`forward` gets x [B, T, C], and returns [B, T, C]",
    "placement": "`wrap` gets x [B, T, C] and a sublayer [B, T, C] → [B, T, C], and returns [B, T, C]",
    "position": "positions are [B|1, T]; x [B, T, C] stays so in `embed`, q and k [B, H, T, D] in `query` and `key`; "
    "`bias` gives [B|1, H|1, Tq, Tk], `scores` [B, H, Tq, Tk], `values` [B, H, Tq, D]",
    "feed_forward": "`forward` gets x [B, T, C], and returns [B, T, C]",
    "head": "h is [B, T, C]; `log_probs` gives [B, T, V], `loss` [B, T]",
}


def _expected(target) -> str:
    """What the kind's methods get and return, after an error of somebody's code."""
    subject = getattr(target, "subject", target)
    contract = CONTRACTS.get(getattr(subject, "kind", ""), "")
    return f"; {contract}" if contract else ""


def line_of(error: BaseException) -> str:
    """The innermost line of somebody's component at which it was raised."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if is_of_the_author(file):
            place = f" ({file.rsplit('/', 1)[-1]} line {trace.tb_lineno})"
        trace = trace.tb_next
    return place


@dataclass(frozen=True)
class Outcome:
    """What one check said of one component: `status` is one of pass, expected failure, fail, skip, information;
    `raised`: an error ended it."""

    check: Check
    status: str
    detail: str = ""
    raised: bool = False

    def __str__(self) -> str:
        if self.status == FAIL:
            check = self.check
            return f"{check.name}: {self.detail}\n  consequence: {check.consequence}\n  hint: {check.hint}"
        return f"{self.check.name}: {self.status}{': ' + self.detail if self.detail else ''}"


@dataclass(frozen=True)
class Report:
    """The outcomes of all checks of one component. `cause`: what is known to be behind failures, if anything is."""

    kind: str
    name: str
    outcomes: Sequence[Outcome]
    notes: Sequence[str] = field(default_factory=tuple)
    cause: str = ""

    @property
    def failures(self) -> list[Outcome]:
        """The checks that failed."""
        return [outcome for outcome in self.outcomes if outcome.status == FAIL]

    @property
    def most_likely(self) -> str:
        """The most likely cause of what failed, in words: what is known to be behind it, else the error that ends every
        check, else what the checks that failed together have in common, else where the first one's hint says to look;
        "" where nothing failed."""
        if not self.failures:
            return ""
        first = self.failures[0]
        error = first.detail.partition(";")[0] if first.raised else ""
        before = [outcome for outcome in self.outcomes[: [*self.outcomes].index(first)] if outcome.status == PASS]
        if error and not self.cause and not before:  # it does not run at all
            return cause_of_error(error) or error
        details = {each.check.name: each.detail for each in self.failures}
        sentence = cause_of(self.kind, details, self.cause) or _(first.check.hint)
        return f"{sentence} ({error})" if error and sentence else sentence or error

    def __getitem__(self, name: str) -> Outcome:
        return next(outcome for outcome in self.outcomes if outcome.check.name == name)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)


# kind -> its checks, in the order in which they are shown
CHECKS: dict[str, list[Check]] = {}


def check(*kinds: str, name: str = "", **fields: Any):
    """Register the function below as a check of these kinds, under its own name or `name`. `fields`: the others of
    `Check`."""

    def register(function: Callable[[object], Result]) -> Callable[[object], Result]:
        new = Check(name or function.__name__, function=function, **fields)
        for kind in kinds:
            CHECKS.setdefault(kind, []).append(new)
        return function

    return register
