"""What holds for an executor, tried on small real sweeps: to their end, with a run that is killed, and stopped by the
user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache

from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result
from paddle_tfm.testing.trials.sweep import Session, TrialSweep, reference

LATE_SECONDS = 2.0  # after the user's stop: what was being started then has started


class Trials:
    """The sessions of an executor, each only when a check asks for it."""

    def __init__(self, subject: ComponentUnderTest):
        self.subject = subject

        self.sweep_of_a_death, self.sweep_of_a_stop = TrialSweep(), TrialSweep()

    @cached_property
    def whole(self) -> Session:
        """A sweep that nothing disturbs."""
        return TrialSweep().session(self.subject.build())

    @cached_property
    def killed(self) -> tuple[str, Session]:
        """The name of the second run, and a session in which it is killed at its seventh step."""
        name = list(reference())[1]
        return name, self.sweep_of_a_death.session(self.subject.build(), killed=name)

    @cached_property
    def stopped(self) -> Session:
        """A session of slow runs that the user stops once one has begun."""
        return self.sweep_of_a_stop.session(self.subject.build(), stop=True, slow=True)

    def resumed(self) -> Iterator[tuple[str, Session, Session]]:
        """What ended each of the two, that session, and `--resume`."""
        for what, before, sweep in (
            ("a death", self.killed[1], self.sweep_of_a_death),
            ("a stop", self.stopped, self.sweep_of_a_stop),
        ):
            yield what, before, sweep.session(self.subject.build())


@lru_cache(maxsize=1)
def trials(subject: ComponentUnderTest) -> Trials:
    """The sessions of the executor that is being examined: the checks share them."""
    return Trials(subject)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _more_than_once(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


@check(
    "executor",
    invariant="each cell is started once, is finished, and has one outcome",
    consequence="a run is missing from the comparison, or computed twice",
    hint="the first and the last cell; a cell that is taken from the list and put back; an outcome for each cell that "
    "ended, no more",
)
def each_once(subject: ComponentUnderTest) -> Result:
    session = trials(subject).whole
    if session.error:
        return Failed(f"it ended the sweep: {session.error}")
    if missing := [name for name in session.cells if name not in session.finished]:
        said = [failure for name, failure in session.outcomes if name in missing]
        return Failed(f"{_listed(missing)} was not trained" + (f": {said[0]}" if said else ""))
    if twice := _more_than_once([name for _, name in session.starts]):
        return Failed(f"{_listed(twice)} was started twice")
    outcomes = [name for name, _ in session.outcomes]
    if twice := _more_than_once(outcomes):
        return Failed(f"{_listed(twice)} has two outcomes")
    if missing := [name for name in session.cells if name not in outcomes]:
        return Failed(f"{_listed(missing)} has no outcome")
    if wrong := [f"{name}: {failure}" for name, failure in session.outcomes if failure]:
        return Failed(f"it says that a finished run failed: {wrong[0]}")
    return Note(f"{len(outcomes)} runs")


@check(
    "executor",
    invariant="a run has the same numbers as when trained here, one after another: to the bit, on one thread",
    consequence="what a comparison says depends on who trained the runs",
    hint="another folder, other overrides or other plugins than `cell.command` names; a variable of `cell.environment` "
    "that is changed",
)
def same_numbers(subject: ComponentUnderTest) -> Result:
    return _same_numbers(trials(subject).whole)


def _same_numbers(session: Session) -> Result:
    for name, numbers in session.numbers.items():
        for file, content in numbers.items():
            if content != reference()[name][file]:
                return Failed(f"{name}: {file} is not what the same run trained here has")
    return Passed() if session.numbers else Failed("no run was finished")


@check(
    "executor",
    invariant="a run that dies is reported with a reason, and the others lose nothing: they finish, or the sweep "
    "ends with that reason and all of them resume",
    consequence="a sweep that looks complete lacks a run, or one failure costs all later runs",
    hint="what is yielded where a process ended and `cell.is_finished` is false; exceptions that are caught; the loop "
    "after a failure",
)
def failure(subject: ComponentUnderTest) -> Result:
    dead, session = trials(subject).killed
    said = dict(session.outcomes)
    if dead in session.finished:
        return Failed(f"{dead} was killed, and is finished all the same: it was started again without `--resume`")
    if not session.error and not said.get(dead):
        what = "no outcome" if dead not in said else "an outcome without a failure"
        return Failed(f"{dead} was killed, and has {what}")
    others = [name for name in session.cells if name != dead]
    if not session.error and (lost := [name for name in others if name not in session.finished]):
        return Failed(f"{dead} was killed, and {_listed(lost)} was not trained")
    if wrong := [name for name in others if said.get(name)]:
        return Failed(f"{dead} was killed, and {_listed(wrong)} is reported as failed too: {said[wrong[0]]}")
    return Note(f"the sweep ends: {session.error}"[:120]) if session.error else Note("the others were finished")


@check(
    "executor",
    invariant="after the user's stop no further run begins, and running ones save a checkpoint or finish",
    consequence="Ctrl-C has no effect for hours, or loses the steps since the last evaluation",
    hint="ask `supervisor.stop()` in every loop, also while waiting; SIGTERM for those under way, not SIGKILL, and "
    "wait until they have ended",
)
def stops(subject: ComponentUnderTest) -> Result:
    session = trials(subject).stopped
    if late := [name for seconds, name in session.starts if seconds > LATE_SECONDS]:
        return Failed(f"{_listed(late)} was started after the user's stop")
    if session.running:
        return Failed(f"{_listed(session.running)} is still being trained where it has returned")
    for name, (logged, saved) in session.saved.items():
        if logged != saved:
            return Failed(f"{name} was stopped at step {logged}, and its checkpoint is of step {saved}")
    failed = [f"{name}: {failure}" for name, failure in session.outcomes if failure]
    return Failed(f"it says that a stopped run failed: {failed[0]}") if failed else Passed()


@check(
    "executor",
    invariant="`--resume` finishes what was stopped or died, with the numbers of a run that was never interrupted, and "
    "starts nothing that is finished",
    consequence="an interrupted sweep must be trained from its beginning, or gives other numbers",
    hint="processes that still train when `run` returns; files in a run's folder that are not the run's",
)
def resumes(subject: ComponentUnderTest) -> Result:
    for what, before, session in trials(subject).resumed():
        if session.error:
            return Failed(f"resumed after {what}, it ends the sweep: {session.error}")
        if again := [name for _, name in session.starts if name in before.finished]:
            return Failed(f"resumed after {what}, {_listed(again)} was started, which is finished")
        if missing := [name for name in reference() if name not in session.finished]:
            return Failed(f"resumed after {what}, {_listed(missing)} was not trained")
        if isinstance(wrong := _same_numbers(session), Failed):
            return Failed(f"resumed after {what}, {wrong.text}")
    return Passed()
