"""Progress of a sweep: a bar for each run under way and a line an evaluation; without a terminal, lines alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from paddle_tfm import units

if TYPE_CHECKING:
    from paddle_tfm.sweep.events import Event

SHOWN_PADDING = 0.1  # of batches; less of it costs little


def clock(seconds: float) -> str:
    """1:05, or 2:03:09."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class ProgressBar:
    """Loss, tokens/s and time left of the runs under way, and time left for all."""

    def __init__(self, console: Console, runs: int, workers: int):
        self.console, self.runs, self.workers = console, runs, workers
        self.finished = 0
        self.left: dict[str, float] = {}  # run under way -> seconds left
        self.length = 0.0  # seconds that a run takes, by the latest estimate
        self.tasks: dict[str, TaskID] = {}
        self.progress: Progress | None = None
        if console.is_terminal:
            self.progress = Progress(
                TextColumn("  [cyan]{task.description}[/]"),
                BarColumn(bar_width=20),
                MofNCompleteColumn(),
                TextColumn("loss {task.fields[loss]}  {task.fields[speed]} tokens/s  [dim]{task.fields[left]}[/]"),
                console=console,
                transient=True,
            )
            self.progress.start()

    def __call__(self, event: Event) -> None:
        """Show what happened."""
        getattr(self, f"_{event.kind}")(event)

    def _finished(self, event: Event) -> None:
        self.finished += 1
        self.console.print(f"[dim]{escape(event.card.name)} is finished already[/]")

    def _start(self, event: Event) -> None:
        card = event.card
        resumed = f", resumed at step {card.step:,}" if card.step else ""
        padding = f", {card.padding:.0%} padding" if card.padding >= SHOWN_PADDING else ""
        number = self.finished + len(self.left) + 1
        self.left[card.name] = 0.0
        self.console.print(
            f"[bold]{number}/{self.runs}[/] [cyan]{escape(card.name)}[/]  {card.parameters:,} parameters, "
            f"{card.examples:,} training examples, {card.steps:,} steps{padding}{resumed}"
        )
        if self.progress is not None:
            self.tasks[card.name] = self.progress.add_task(
                escape(card.name), total=card.steps, completed=card.step, loss="–", speed="–", left=""
            )

    def _step(self, event: Event) -> None:
        card, metrics = event.card, event.data
        self.left[card.name] = metrics["seconds_left"]
        self.length = metrics["seconds_left"] * card.steps / max(card.steps - card.step, 1) or self.length
        if self.progress is None:
            return
        waiting = self.runs - self.finished - len(self.left)
        whole = max(self.left.values()) + self.length * -(-waiting // self.workers)
        left = f"{clock(metrics['seconds_left'])} left" + (f", {clock(whole)} for all" if self.runs > 1 else "")
        self.progress.update(
            self.tasks[card.name],
            completed=card.step,
            loss=units.text(metrics["loss"]),
            speed=f"{metrics['tokens_per_second']:,.0f}",
            left=left,
        )

    def _evaluation(self, event: Event) -> None:
        card, metrics = event.card, event.data
        shown = [name for name in dict.fromkeys(["loss", card.best, *list(metrics)[:3]]) if name in metrics]
        texts = [f"{name} {units.text(metrics[name], card.units.get(name, ''))}" for name in shown]
        self.console.print(f"  {escape(card.name)}  step {card.step:>6,}  valid  {'  '.join(texts)}")

    def _end(self, event: Event) -> None:
        self.finished += 1
        self.left.pop(event.card.name, None)
        if self.progress is not None and event.card.name in self.tasks:
            self.progress.remove_task(self.tasks.pop(event.card.name))
        if event.data["diverged"]:
            self.console.print(
                f"  [red]{escape(event.card.name)} diverged:[/] {escape(event.data['diverged'])}; a smaller learning "
                "rate may help"
            )

    def close(self) -> None:
        """Take the bars away."""
        if self.progress is not None:
            self.progress.stop()
            self.progress = None
