"""The listener that ships with paddle_tfm: it writes the curves of every run for VisualDL."""

from pathlib import Path

from paddle_tfm.hookspecs import hookimpl

_boards: dict[Path, object] = {}  # run folder -> its open board


@hookimpl
def on_run_start(run):
    from paddle_tfm_plugins.listener.visualdl import Board

    _boards[run.folder] = Board(run)


@hookimpl
def on_step_end(run, step, metrics):
    _boards[run.folder].step(step, metrics)


@hookimpl
def on_evaluation_end(run, step, metrics, samples):
    _boards[run.folder].evaluation(step, metrics, samples)


@hookimpl
def on_run_end(run, results):
    _boards.pop(run.folder).end(results)
