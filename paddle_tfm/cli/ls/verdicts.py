"""What a sweep says before it ends, and when it has ended: the comparison of the runs that have results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddle_tfm.language import _

if TYPE_CHECKING:
    from paddle_tfm.comparison.table import Comparison
    from paddle_tfm.sweep.overview import Overview, SweepRuns


def early_verdict(sweep: SweepRuns) -> str:
    """The verdict over the seeds under which every run has results; "" before the first of them, at the end, which has
    a verdict of its own, and of one variant. Where seeds are listed, to look early is no test: whoever stops at the
    look that pleases is wrong more often. Where the recipe says when to look, the verdict holds: it is that of the
    last look so far."""
    done, seeds = sweep.complete_seeds(), sweep.seeds()
    if not done or sweep.is_finished or len(sweep.reported) == len(seeds):  # of one variant there is no verdict
        return ""
    from paddle_tfm.comparison.question import Question

    planned = Question.recorded(sweep.folder).plan is not None
    what = _("interim, adjusted for looks") if planned else _("interim: an early look is no test")
    text = _("After {done} of {all} seeds ({what}): {verdict}")
    return text.format(done=len(done), all=len(seeds), what=what, verdict=_sentence(sweep, done))


def final_verdict(sweep: SweepRuns) -> str:
    """The verdict over all runs; "" of trials alone."""
    return "" if not sweep.reported else _sentence(sweep, sweep.seeds())


def comparison_of(sweep: SweepRuns, seeds: list[str]) -> Comparison:
    """The runs under `seeds` side by side.

    Raises:
        UserError: why they cannot be compared.
    """
    from paddle_tfm.comparison.recorded_runs import compare_recorded

    return compare_recorded([run.folder for run in sweep.reported if run.folder.name in seeds], sweep.folder)


def _sentence(sweep: SweepRuns, seeds: list[str]) -> str:
    from paddle_tfm.comparison.verdict import verdict
    from paddle_tfm.errors import UserError

    try:
        return verdict(comparison_of(sweep, seeds))
    except (UserError, OSError) as error:  # a folder that is gone ends no training
        return str(error)


class Verdicts:
    """The early verdicts of an overview's sweeps; each is computed once for the seeds that it is over."""

    def __init__(self) -> None:
        self.known: dict[tuple[object, ...], str] = {}

    def __call__(self, overview: Overview) -> list[str]:
        """Those that there are."""
        return [sentence for sweep in overview.sweeps if (sentence := self._of(sweep))]

    def _of(self, sweep: SweepRuns) -> str:
        key = sweep.folder, sweep.is_finished, *sweep.complete_seeds(), len(sweep.seeds())
        if key not in self.known:
            self.known[key] = early_verdict(sweep)
        return self.known[key]
