"""What is seen while training: a listener that draws a progress bar, or prints a line an evaluation where there is no
terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from paddle_tfm.hookspecs import hookimpl


def clock(seconds: float) -> str:
    """1:05, or 2:03:09."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class ProgressBar:
    """Loss, tokens/s and time left of the run, and of the runs that follow it."""

    def __init__(self, console: Console):
        self.console = console
        self.number, self.count = 1, 1
        self.progress: Progress | None = None

    def announce(self, spec, number: int, count: int, finished: bool) -> None:
        """A run is about to start (or is skipped, being finished)."""
        self.number, self.count = number, count
        if finished:
            self.console.print(f"[dim]{number}/{count} {escape(spec.name)} is finished already[/]")

    @hookimpl
    def on_run_start(self, run) -> None:
        steps = run.settings.train.steps
        going_on = f", going on at step {run.step}" if run.step else ""
        self.console.print(
            f"[bold]{self.number}/{self.count}[/] [cyan]{escape(run.name)}[/]  {run.parameters():,} parameters, "
            f"{len(run.encoded['train']):,} training examples, {steps:,} steps{going_on}"
        )
        if not self.console.is_terminal:
            return
        self.progress = Progress(
            TextColumn("  "),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("{task.fields[speed]} tokens/s"),
            TextColumn("[dim]{task.fields[left]} left[/]"),
            console=self.console,
            transient=True,
        )
        self.task = self.progress.add_task("", total=steps, completed=run.step, loss="–", speed="–", left="–")
        self.progress.start()

    @hookimpl
    def on_step_end(self, run, step: int, metrics: dict) -> None:
        if self.progress is None:
            return
        runs_after = self.count - self.number
        left = clock(metrics["seconds_left"])
        if runs_after:
            whole = metrics["seconds_left"] + runs_after * run.settings.train.steps * metrics["seconds_left"] / max(
                run.settings.train.steps - step, 1
            )
            left += f" (all runs: {clock(whole)})" if step < run.settings.train.steps else ""
        self.progress.update(
            self.task,
            completed=step,
            loss=f"{metrics['loss']:.4f}",
            speed=f"{metrics['tokens_per_second']:,.0f}",
            left=left,
        )

    @hookimpl
    def on_evaluation_end(self, run, step: int, metrics: dict) -> None:
        shown = dict.fromkeys(["loss", run.settings.evaluate.best, *list(metrics)[:3]])
        percent = {name for name, metric in run.metrics().items() if metric.percent}
        texts = [f"{name} {_value(metrics[name], name in percent)}" for name in shown if name in metrics]
        self.console.print(f"  step {step:>6,}  valid  {'  '.join(texts)}")

    @hookimpl
    def on_run_end(self, run, results: dict) -> None:
        self.close()
        if results["diverged"]:
            self.console.print(f"  [red]diverged:[/] {escape(results['diverged'])}; a smaller learning rate may help")

    def close(self) -> None:
        """Take the bar away."""
        if self.progress is not None:
            self.progress.stop()
            self.progress = None


def _value(value: float, percent: bool) -> str:
    return f"{100 * value:.1f}%" if percent else f"{value:.4f}"
