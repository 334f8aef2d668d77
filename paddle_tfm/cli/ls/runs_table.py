"""The table of runs, of `run` and of `ls runs`: as many rows as there is room for, and a count of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from paddle_tfm import units
from paddle_tfm.language import _, counted
from paddle_tfm.sweep.standing import Standing
from paddle_tfm.tabular import ESSENTIAL, Column, Line, Table, wrapped
from paddle_tfm.units import clock

if TYPE_CHECKING:
    from paddle_tfm.sweep.overview import Overview

STYLES = {"done": "green", "running": "cyan", "waiting": "dim", "stopped": "yellow"}  # the others are red
OUT_OF_ORDER = ("killed", "silent", "unreadable")
NEXT = 3  # waiting runs that are more interesting than finished ones
MOST_NOTES = 3
OTHER_COLUMNS = 56  # cells beside the name, in the widest usual case
LEAST_NAME = 18


def table(runs: Sequence[Standing], width: int | None = None) -> Table[Standing]:
    """Runs as rows. `width`: of the page; long names are shortened."""
    best = {run.best for run in runs if run.best}
    metric = units.metric_name(best.pop()).replace(" ", "\N{NO-BREAK SPACE}") if len(best) == 1 else _("score")
    moves = any(run.state == "running" for run in runs)
    following = next((run.name for run in runs if run.state == "waiting"), "") if moves else ""
    room = None if width is None else max(LEAST_NAME, width - OTHER_COLUMNS)

    def name(run: Standing) -> str:
        return run.name if room is None or len(run.name) <= room else f"…{run.name[1 - room :]}"

    def number(value: float | None) -> str:
        return "" if value is None else f"{value:,.0f}"

    def style(run: Standing) -> str:
        return STYLES.get(run.state, "red")

    columns = [
        _column("run", name, style=style),
        _column("step", lambda run: _("next") if run.name == following else _step(run), right=True, style=style),
        _column("loss", lambda run: "" if run.loss is None else units.text(run.loss), 60, True),
        _column("tokens/s", lambda run: number(run.tokens_per_second), 40, True),
        _column("left", lambda run: clock(run.seconds_left) if run.seconds_left else "", 80, True),
        _column(metric, _score, 90, True, style=lambda run: "" if run.is_finished else "dim"),
    ]
    return Table(columns, runs)


def _column(
    heading: str,
    text: Callable[[Standing], str],
    importance: int = ESSENTIAL,
    right: bool = False,
    style: Callable[[Standing], str] = lambda run: "",
) -> Column[Standing]:
    """A column for people: what programs get is in `runs.as_data`."""
    return Column(heading, text, lambda run: {}, importance, right, style=style)


def _step(run: Standing) -> str:
    if run.state == "running":
        if not run.steps:
            return _("starting")
        return f"{run.step:,}/{run.steps:,}" if run.step < run.steps else _("scoring")
    state = _(run.state)
    if run.state in ("done", "waiting") or not run.step:
        return state
    return _("{state} at {step}").format(state=state, step=f"{run.step:,}")


def _score(run: Standing) -> str:
    scored = run.scores if run.is_finished else run.valid
    if run.state == "diverged" or run.best not in scored:
        return ""
    value = units.text(scored[run.best], run.units.get(run.best, ""))
    return value if run.is_finished else _("valid {value}").format(value=value)


def in_words(run: Standing) -> str:
    """`post/seed-1: done, exact match 99.7%`."""
    moves = run.state == "running" and 0 < run.step < run.steps
    step = _("running, step {step} of {steps}").format(step=f"{run.step:,}", steps=f"{run.steps:,}")
    parts = [step if moves else _step(run)]
    if run.is_finished and (score := _score(run)):
        parts.append(f"{units.metric_name(run.best)} {score}")
    return f"{run.name}: {_(', ').join(parts)}{f' ({run.note})' if run.note else ''}"


def summary(overview: Overview) -> str:
    """`2 of 8 done · 2 running · 4 waiting · 3:05 left of all`."""
    counts = overview.counts()
    parts = [_("{done} of {all} done").format(done=counts["done"], all=counts.total())]
    parts += [_in_state(number, state) for state, number in counts.items() if state != "done"]
    left = overview.seconds_left()
    text = _("{time} left of all") if counts.total() > 1 else _("{time} left")
    return " · ".join([*parts, *([text.format(time=clock(left))] if left else [])])


def _in_state(number: int, state: str) -> str:
    return _("{number} {state}").format(number=number, state=_(state))


def chosen(runs: Sequence[Standing], most: int) -> list[Standing]:
    """At most so many runs, in their order: those out of order, then those under way, the next ones, the ones that
    ended last."""
    waiting = [run for run in runs if run.state == "waiting"]
    following = {run.name for run in waiting[:NEXT]}
    place = {run.name: i for i, run in enumerate(runs)}

    def rank(run: Standing) -> tuple[int, int]:
        if run.state in OUT_OF_ORDER:
            return 0, place[run.name]
        if run.state == "running":
            return 1, place[run.name]
        if run.name in following:
            return 2, place[run.name]
        return (4, place[run.name]) if run.state == "waiting" else (3, -place[run.name])

    kept = {run.name for run in sorted(runs, key=rank)[:most]}
    return [run for run in runs if run.name in kept]


def notes(overview: Overview) -> list[str]:
    """A sentence for each run that is out of order, and the command that continues them where nothing is trained."""
    sentences = [f"{run.name}: {run.note}" for run in overview.runs if run.note and run.state != "diverged"]
    if len(sentences) > MOST_NOTES:
        rest = _("and {number} more runs need attention").format(number=len(sentences) - MOST_NOTES)
        sentences[MOST_NOTES:] = [rest]
    states = overview.counts()
    if overview.is_finished:
        return sentences
    commands = [again for sweep in overview.sweeps if not sweep.is_finished and (again := sweep.again())][:MOST_NOTES]
    if not states["running"]:
        more = _(
            " Unless runs wait in a queue, continue with this command, and with --executor or --workers as before:"
        )
        return [*sentences, _("Nothing is trained now.") + (more if commands else ""), *commands]
    if any(states[state] for state in OUT_OF_ORDER) and commands:
        text = _("When the others have ended, continue with this, and with --executor or --workers as before:")
        return [*sentences, text, *commands]
    return sentences


class RunsTable:
    """An overview as rich draws it, never higher than the screen and never wider: `title`, the runs, how many are in
    which state, and the sentences `below`."""

    def __init__(self, overview: Overview, title: str = "", below: Sequence[tuple[str, str]] = ()):
        self.overview, self.title, self.below = overview, title, below  # below: (sentence, style)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, console.size.height - 1
        for line in self.lines(width, height):
            yield Text.assemble(*line, no_wrap=True, overflow="crop", end="\n")

    def lines(self, width: int, height: int) -> list[Line]:
        """At most `height` lines of at most `width` cells."""
        runs = self.overview.runs
        if not runs:
            return []
        foot = [[(part, "dim")] for part in wrapped(summary(self.overview), width)]
        foot += [[(part, style)] for text, style in self.below for part in wrapped(text, width)]
        head: list[Line] = [[(self.title, "bold")]] if self.title else []
        room = height - len(head) - len(foot)
        body = list(table(runs, width).lines(width))
        if len(body) > room:
            some = chosen(runs, max(1, room - (len(body) - len(runs)) - 1))
            body = [*table(some, width).lines(width), [(_hidden(runs, some, width), "dim")]]
        return [*head, *body, *foot][:height]


def _hidden(runs: Sequence[Standing], shown: Sequence[Standing], width: int) -> str:
    """How many runs are not shown: of each state, if there is room."""
    names = {run.name for run in shown}
    counts = Counter(run.state for run in runs if run.name not in names)
    each = _(", ").join(_in_state(number, state) for state, number in counts.items())
    text = _("not shown: {runs}")
    whole = text.format(runs=each)
    return whole if cell_len(whole) <= width else text.format(runs=counted(counts.total(), "run"))
