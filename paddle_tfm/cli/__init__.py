"""The command line: a module a verb. The only place that prints or exits; Paddle is imported only inside a command."""

from __future__ import annotations

import atexit
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from paddle_tfm.cli.translated import Context, translated, with_help
from paddle_tfm.errors import OF_THE_MACHINE, UserError
from paddle_tfm.files import naming
from paddle_tfm.language import LANGUAGES, _, translate_click
from paddle_tfm.units import visible

# verb -> one line for `--help` (here, so that help answers at once)
VERBS = {
    "run": "Train the runs of a recipe, and compare them.",
    "ls": "List recipes, components, plugins, runs (--follow) or data.",
    "show": "Print a recipe with its base and overrides merged.",
    "cp": "Copy a shipped recipe to a file of your own.",
    "check": "Find problems of a recipe or a run; prove that a recipe resumes.",
    "plugin": "Check a component, or start a new plugin.",
    "compare": "Compare finished runs, and show how they differ.",
    "report": "Write an HTML page: a run's model card, or the comparison of several runs.",
    "evaluate": "Score a trained run.",
    "translate": "Translate, or continue texts, with a trained run.",
    "import": "Make a run of a model that another toolkit trained.",
    "export": "Export a trained run to CTranslate2, an engine for fast decoding.",
    "board": "Open the curves in VisualDL.",
    "doctor": "Find problems of the installation, with remedies.",
    "completion": "Print the shell's completion script.",
}


class Verbs(click.Group):
    """Loads a verb's module when the verb is used."""

    context_class = Context

    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        return translated(importlib.import_module(f"paddle_tfm.cli.{name}").command)

    def resolve_command(self, context: click.Context, arguments: list[str]):
        try:
            return super().resolve_command(context, arguments)
        except click.UsageError:
            from paddle_tfm.errors import unknown

            raise UserError(f"{unknown('command', arguments[0], VERBS)}. {_('See paddle-tfm --help')}") from None

    def make_context(self, *arguments, **options) -> click.Context:
        with _ending_with_its_reader():  # --help is answered here
            return super().make_context(*arguments, **options)

    def invoke(self, context: click.Context):
        with _ending_with_its_reader():
            return super().invoke(context)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(_("Commands")):
            formatter.write_dl([(verb, _(line)) for verb, line in VERBS.items()])

    def format_help_text(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        click.Group.format_help_text(translated(self), context, formatter)

    def get_params(self, context: click.Context) -> list[click.Parameter]:
        return list(map(with_help, super().get_params(context)))


@contextmanager
def _ending_with_its_reader() -> Iterator[None]:
    """Within this block, end quietly where the reader of our output has closed it (`paddle-tfm ls | head`), as other
    programs do."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        raise click.exceptions.Exit(0) from None


def _discard_output() -> None:
    """Nobody reads standard output any longer, or it takes nothing: what is still to be written to it goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="paddle-tfm", prog_name="paddle-tfm")
@click.option("--no-color", is_flag=True, help="No colours (also: set NO_COLOR).")
@click.option(
    "--lang",
    type=click.Choice(list(LANGUAGES)),
    is_eager=True,
    expose_value=False,
    callback=lambda context, parameter, value: value and os.environ.update(LANGUAGE=value),
    help="English or Chinese. Default: what LANGUAGE, LC_ALL, LC_MESSAGES or LANG says.",
)
def group(no_color: bool) -> None:
    """Write a Transformer variant as one small class, and find out in one command whether it is correct and whether it
    is better.

    \b
    Start here:
      paddle-tfm run quickstart           train and compare five variants in minutes
      paddle-tfm ls components            what can be combined
      paddle-tfm cp quickstart mine.yaml  change it, then: paddle-tfm run mine.yaml
      paddle-tfm plugin check FILE.py     is my variant right?
    """
    if no_color:
        os.environ["NO_COLOR"] = "1"


def main(arguments: list[str] | None = None) -> None:
    """The console script. Exit status: 0 done, 1 our error, 2 the user's or a plugin's to mend, 130
    interrupted."""
    os.environ["MPLBACKEND"] = "agg"  # no figure is shown
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # an encoding without a character has a question mark there
    translate_click()
    sys.exit(_status(arguments))


def _status(arguments: list[str] | None) -> int:
    """Do what the command line says, errors as sentences; returns the exit status."""
    if "_PADDLE_TFM_COMPLETE" in os.environ:
        importlib.import_module("paddle_tfm.cli.completion").register()
    try:
        with naming(Path("the current directory")):
            Path.cwd()  # it may have been removed
        # `standalone_mode=False` hands errors to us, so that each ends in one sentence.
        with _interruptible():
            code = group.main(arguments, prog_name="paddle-tfm", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except UserError as error:
        complain(str(error))
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        click.echo(visible(message.getvalue()), nl=False, err=True)
    except (KeyboardInterrupt, click.Abort):
        click.echo("\nInterrupted.", err=True)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # a further one would stop what tidies up
        return 130
    except OSError as error:
        if error.filename is not None:
            complain(f"{error.filename}: {error.strerror}")
        elif error.errno in OF_THE_MACHINE:
            complain(str(error.strerror))  # of standard output: files are named
            _discard_output()
        else:
            _complain_of_plugin(error)
    except MemoryError as error:
        from paddle_tfm.plugin_errors import summary

        complain(_("the memory of this machine is too small for this: {error}").format(error=summary(error)))
    except Exception as error:
        _complain_of_plugin(error)
    return 2


@contextmanager
def _interruptible() -> Iterator[None]:
    """Within this block whatever a Ctrl-C leads to is a KeyboardInterrupt. Of one that comes within an import, Paddle
    makes an ImportError, and Python a RuntimeError where a class is being made."""
    is_main = threading.current_thread() is threading.main_thread()  # Python handles signals there only
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # ignored, as under `nohup`
        yield
        return
    is_interrupted = False

    def interrupt(number: int, frame: object) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Exception as error:
        if is_interrupted and any(isinstance(each, (ImportError, RuntimeError)) for each in _causes(error)):
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, what it was raised for, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _complain_of_plugin(error: Exception) -> None:
    """Say which plugin raised `error`. An error of our own is raised again, with its traceback."""
    from paddle_tfm.plugin_errors import of_plugin

    plugin_error = of_plugin(error)
    if plugin_error is None:
        raise error
    complain(str(plugin_error))


def complain(text: str) -> None:
    """An error, on standard error."""
    colour = False if os.environ.get("NO_COLOR") else None
    click.echo(click.style(_("Error:"), fg="red", bold=True) + f" {visible(text)}", err=True, color=colour)
