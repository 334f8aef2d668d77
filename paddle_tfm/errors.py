"""Errors that are the user's to mend: one clear sentence for each, no traceback, exit status 2."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paddle_tfm.language import _, counted


class UserError(Exception):
    """Something that the user gave cannot be used. The message says what, and what to do next."""


OF_THE_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.ESTALE, errno.ENOTCONN}


class CutShort(UserError):
    """A training that is right in itself was ended by something else: a disk that is full, a machine that is lost. It
    can be resumed; the message says why it ended, and `how` stands before the command that resumes it. An OSError is
    one where its number is OF_THE_MACHINE."""

    how = "Continue with"


@dataclass(frozen=True)
class Problem:
    """One thing wrong in a recipe: where (a dotted path) and what."""

    path: str
    message: str
    file: str | None = None
    line: int | None = None


class RecipeError(UserError):
    """All problems of a recipe at once: ``<file> has <n> problem(s)``, then a line for each: line number, dotted path,
    sentence."""

    def __init__(self, name: str, problems: Iterable[Problem]):
        self.name, self.problems = name, list(problems)
        super().__init__(self._text())

    def _text(self) -> str:
        count = len(self.problems)
        rows = [(self._where(problem), problem.path, problem.message) for problem in self.problems]
        first, second = (max((len(row[i]) for row in rows), default=0) for i in (0, 1))
        lines = [f"  {where:<{first}}  {path:<{second}}  {message}" for where, path, message in rows]
        return "\n".join(
            [_("{name} has {problems}").format(name=self.name, problems=counted(count, "problem")), *lines]
        )

    def _where(self, problem: Problem) -> str:
        other_file = _(problem.file) if problem.file and problem.file != self.name else ""
        return " ".join([other_file, _("line {number}").format(number=problem.line) if problem.line else ""]).strip()


DID_YOU_MEAN = "; did you mean {name}?"


def unknown(what: str, name: object, known: Iterable[str], unlisted: Iterable[str] = ()) -> str:
    """Say that `name` is not a known `what`: the nearest name first, then all of them. `unlisted` may be the nearest,
    but do not appear in the list."""
    known = sorted(known)
    hint = nearest(name, [*known, *unlisted]) or _(".")
    text = _("unknown {what} '{name}'{hint} Known: {known}")
    return text.format(what=_(what), name=name, hint=hint, known=", ".join(known) or _("none"))


def nearest(name: object, known: Sequence[str], what: str = "", cutoff: float = 0.55) -> str:
    """`; did you mean '…'?` with the nearest of `known`; nothing where none is near. `what` stands before the name,
    `cutoff` is how near it must be, of 1."""
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=cutoff)
    return _(DID_YOU_MEAN).format(name=f"{what}'{near[0]}'") if near else ""
