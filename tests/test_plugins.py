"""Plugins are found, refused with a sentence where they are wrong, and never stop what does not need them."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
import types

import pluggy
import pytest

from paddle_tfm import hookspecs
from paddle_tfm.errors import UserError
from paddle_tfm.hookspecs import hookimpl
from paddle_tfm.plugins import Listeners, Plugins, create_plugins
from paddle_tfm.registry import Registry

GOOD = """
from paddle_tfm import hookimpl
from paddle_tfm.protocols import Norm

class Mine(Norm):
    '''A norm of mine.

    More about it.
    '''
    def forward(self, x, valid=None, positions=None):
        return x

@hookimpl
def register_norms():
    return {"mine": Mine}
"""


@pytest.fixture
def file(tmp_path):
    """Writes a plugin file and returns its path."""

    def write(text: str, name: str = "mine.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    return write


def refusal(path) -> str:
    with pytest.raises(UserError) as caught:
        create_plugins([path])
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------------- files


def test_a_file_registers_its_components_under_its_name_and_hash(file):
    path = file(GOOD)
    registry = Registry(create_plugins([path]))
    entry = registry.entry("norm", "mine")
    assert entry.load().__name__ == "Mine"
    assert entry.summary() == "A norm of mine."
    assert (entry.provider.plugin, entry.provider.source) == ("mine", str(path))
    assert entry.provider.version.startswith("sha256:")
    assert "layer" in registry.names("norm")  # beside the installed ones

    path.write_text(GOOD + "\n# changed", "utf-8")
    assert Registry(create_plugins([path])).entry("norm", "mine").provider.version != entry.provider.version


def test_what_is_executed_of_a_file_is_what_was_hashed(file):
    """Byte code beside it, which Python would take, is of another text of the same time and size."""
    path = file(GOOD)
    py_compile.compile(str(path))
    times = path.stat()
    file(GOOD.replace("of mine", "of ours"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert Registry(create_plugins([path])).entry("norm", "mine").load().__doc__.startswith("A norm of ours.")


def test_a_file_may_have_the_name_of_an_installed_plugin_or_of_another_file(file):
    files = [file(GOOD.replace('"mine"', f'"{name}"'), path) for name, path in
             [("a", "norm.py"), ("b", "one/norm.py"), ("c", "two/norm.py")]]  # fmt: skip
    plugins = create_plugins(files)
    assert "norm" in plugins.providers  # the installed one
    registry = Registry(plugins)
    assert {registry.entry("norm", name).provider.source for name in "abc"} == {str(path) for path in files}


def test_a_broken_file_is_refused_with_file_and_line(file, monkeypatch, tmp_path):
    path = file("x = 1\ny = 0\n\ndef f():\n    return x / y\n\nf()\n")
    assert refusal(path) == f"--plugin {path}, line 5: ZeroDivisionError: division by zero"
    monkeypatch.chdir(tmp_path)
    assert refusal("mine.py") == "--plugin mine.py, line 5: ZeroDivisionError: division by zero"


def test_a_file_that_is_no_python_is_refused_with_its_line(file):
    path = file("x = 1\ny = (\n")
    assert refusal(path).startswith(f"--plugin {path}, line 2: SyntaxError: '(' was never closed")
    assert "its name should end in .py" in refusal(file("x = 1", "mine.txt"))
    assert refusal("absent.py") == "--plugin absent.py: no such file"


def test_an_interrupt_while_a_file_is_imported_interrupts(file):
    with pytest.raises(KeyboardInterrupt):
        create_plugins([file("raise KeyboardInterrupt\n")])


# ------------------------------------------------------------------------------------------------------------- hooks


def test_a_misspelt_hook_is_refused_with_the_nearest_name(file):
    message = refusal(file(GOOD.replace("register_norms", "register_norm")))
    assert "plugin 'mine': unknown hook 'register_norm'; did you mean 'register_norms'? Known: on_" in message


def test_a_wrong_argument_is_refused_in_one_line(file):
    message = refusal(file("from paddle_tfm import hookimpl\n@hookimpl\ndef on_step_end(run, stp): pass\n"))
    assert "on_step_end" in message
    assert "stp" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "returned, message",
    [
        ("None", "TypeError"),
        ("{'mine': 3}", "must return name → class or 'module:Class', but holds 'mine': 3"),
        ("{3: Mine}", "must return name → class"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_hook_that_fails_stops_nothing_until_something_unknown_is_asked_for(file, returned, message):
    registry = Registry(create_plugins([file(GOOD.replace('{"mine": Mine}', returned))]))
    assert registry.entry("norm", "layer").name == "layer"
    with pytest.raises(UserError) as caught:
        registry.entry("norm", "mine")
    assert "plugin 'mine' failed to load (register_norms: " in str(caught.value)
    assert message in str(caught.value)


def test_two_plugins_that_claim_one_name_are_named_both(file):
    registry = Registry(create_plugins([file(GOOD, "one.py"), file(GOOD, "two.py")]))
    with pytest.raises(UserError) as caught:
        registry.entry("norm", "mine")
    assert str(caught.value) == "norm 'mine' is claimed by two plugins, 'one' and 'two'; remove or rename one"
    assert [problem.message for problem in registry.resolve("norm", "mine", "model.norm").problems] == [
        str(caught.value)
    ]


# -------------------------------------------------------------------------------------------------- installed plugins


@pytest.mark.reliability
def test_a_broken_installed_plugin_stops_nothing_and_is_quoted_when_asked_for(tmp_path):
    info = tmp_path / "fake-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text(
        "[paddle_tfm]\nbroken = fake_broken\ngone = fake_gone\ngood = fake_good\nleaves = fake_leaves\n"
    )
    (tmp_path / "fake_broken.py").write_text("raise RuntimeError('the moon is full')\n")
    (tmp_path / "fake_leaves.py").write_text("class Bare(BaseException): pass\nraise Bare(7)\n")
    (tmp_path / "fake_good.py").write_text(GOOD)
    script = """
import sys
from paddle_tfm.cli import main
for arguments in (["ls", "components", "norm"], ["check", "reverse", "model.norm=nrm"], ["ls", "plugins"]):
    try:
        main(arguments)
    except SystemExit as exit:
        print("exit", exit.code, flush=True)
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    listing, _, rest = done.stdout.partition("exit 0\n")
    assert "A norm of mine." in listing
    assert "exit 2\n" in rest
    assert "unknown norm 'nrm'; did you mean 'rms'?" in done.stderr
    assert "plugin 'broken' failed to load (RuntimeError: the moon is full)" in done.stderr
    assert "Traceback" not in done.stderr
    for sentence in ("fake 2.0", "broken failed to load: RuntimeError", "gone failed to load: ModuleNotFoundError",
                 "leaves failed to load: Bare: 7"):  # fmt: skip
        assert sentence in rest


# --------------------------------------------------------------------------------------------------------- listeners


def listening(*modules, report=print, strict=False) -> Listeners:
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    for module in modules:
        manager.register(module, name=module.__name__)
    return Listeners(Plugins(manager), report, strict)


def listener(name: str, function) -> types.ModuleType:
    module = types.ModuleType(name)
    module.on_step_end = hookimpl(function)
    return module


def test_a_failing_listener_is_reported_once_and_switched_off_and_others_go_on():
    heard, reports = [], []

    def fails(run, step):
        heard.append(("fails", step))
        raise KeyError("loss")

    works = listener("works", lambda step: heard.append(("works", step)))
    listeners = listening(listener("fails", fails), works, report=reports.append)
    for step in (1, 2):
        listeners.emit("on_step_end", run=None, step=step, metrics={})
    assert sorted(heard) == [("fails", 1), ("works", 1), ("works", 2)]
    (report,) = reports
    assert report == "listener 'fails' failed in on_step_end and is switched off: KeyError: 'loss'; training continues"


def test_strict_raises():
    def fails(run, step):
        raise KeyError("loss")

    with pytest.raises(KeyError):
        listening(listener("fails", fails), strict=True).emit("on_step_end", run=None, step=1, metrics={})
