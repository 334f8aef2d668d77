"""What the goldens ask of the package `paddle_tfm`, and their only imports from it: run by a tree's own interpreter, with
that tree's packages. Where a name moves, its line here becomes one for each of the two trees.

    python adapter.py commands TASKS.json      command lines → status, output and errors of each
    python adapter.py items TREE ITEMS.json    every wrong and right class below tests/conformance of a tree
    python adapter.py judge ITEMS.json OUT     what the conformance kit says of each, a line as it comes
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

SECONDS = 600  # of one command or one class; longer is a failure
AS_KIND = {  # twins that are ordinary layers or a whole model
    "full_width": "attention",
    "ordinary_feed_forward": "feed_forward",
    "ordinary_attention": "attention",
    "ordinary_norm": "norm",
    "ordinary_position": "position",
    "transformer": "encoder-decoder",
}
MASK = {"ordinary_attention": "allowed", "full_width": "allowed"}  # what their masks say
LISTENER = "listener"
IN_TESTS = {"test_wrong_executors.py": "executor", "test_wrong_sections.py": "section", "test_listeners.py": LISTENER}


# ------------------------------------------------------------------------------------------------- what is in paddle_tfm


def load_paddle() -> None:
    """Import Paddle as the engine does."""
    from paddle_tfm import runtime

    runtime.load_paddle()


def command_line(arguments: list[str]) -> None:
    """The console script in this process; ends with SystemExit."""
    from paddle_tfm.cli import main

    main(arguments)


def component_class() -> type:
    """What every component is derived from."""
    from paddle_tfm.protocols.component import Component

    return Component


def registered_class(kind: str, name: str) -> str:
    """The name of a registered class."""
    from paddle_tfm import create_registry

    return create_registry().entry(kind, name).target.partition(":")[2]


def invariants(kind: str) -> frozenset[str]:
    """The names of a kind's checks that can fail."""
    from paddle_tfm.testing import checks

    return frozenset(check.name for check in checks(kind) if not check.information)


def outcomes(cls: type, as_kind: str | None, mask: str | None, only: frozenset[str]) -> dict[str, str]:
    """Check → status, of a component or of an ordinary layer."""
    from paddle_tfm import create_registry
    from paddle_tfm.testing import examine, with_class

    place = "lookup" if importlib.util.find_spec("paddle_tfm.testing.lookup") else "target"  # ours, the pinned tree's
    examine_class = importlib.import_module(f"paddle_tfm.testing.{place}").examine_class
    if as_kind is not None:
        report = examine_class(as_kind, cls, {}, mask, only=only)
    else:
        registry = create_registry()
        report = examine(*with_class(registry, cls), registry=registry, only=only)
    return {outcome.check.name: outcome.status for outcome in report}


def outcomes_of_listener(file: Path) -> dict[str, str]:
    """Check → status, of the listener in a plugin file."""
    from paddle_tfm import create_registry
    from paddle_tfm.testing import examine

    report = examine(LISTENER, file.stem, registry=create_registry([file]))
    return {outcome.check.name: outcome.status for outcome in report}


# ---------------------------------------------------------------------------------------------------------- command lines


def commands(file: Path) -> None:
    """Call each command line in a fork of this process, which has Paddle imported already."""
    load_paddle()
    tasks, done = json.loads(file.read_text("utf-8")), []
    for task in tasks:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            child = os.fork()
            if not child:
                _call(task, out.fileno(), errors.fileno())
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said = []
            for stream in (out, errors):
                stream.seek(0)
                said.append(stream.read().decode("utf-8", "replace"))
        done.append({"status": status, "out": said[0], "errors": said[1]})
    file.write_text(json.dumps(done), "utf-8")


def _call(task: dict, out: int, errors: int) -> None:
    """In the fork: never returns."""
    status = 99
    try:
        signal.alarm(SECONDS)
        os.chdir(task["folder"])
        stdin = os.open(task.get("stdin") or os.devnull, os.O_RDONLY)
        for ours, number in ((stdin, 0), (out, 1), (errors, 2)):
            os.dup2(ours, number)
        command_line(task["arguments"])
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


# ------------------------------------------------------------------------------------------- classes for the conformance kit


def items(tree: Path, file: Path) -> None:
    """Every class that the kit is tried on, wherever it stands below tests/conformance: edits, which have a `source` and
    the check that they are `caught_by` ("": none may fail); what they are edits of; executors, sections and listeners."""
    load_paddle()
    folder, found = tree / "tests" / "conformance", {}
    sys.path[:0] = [str(folder), *(str(folder / name) for name in ("mutants", "attacks"))]
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text("utf-8")
        if path.name in IN_TESTS:
            _add_of_tests(found, IN_TESTS[path.name], text, _module(path))
        elif path.name.startswith("test_"):
            continue
        elif "\nclass Twin(" in text:
            _add(found, f"twin {path.stem}", text, path.stem, "Twin", None)
        elif path.parent.name == "right" or path.name.startswith("right_"):
            for name in _own(_module(path), component_class()):
                _add(found, f"class {name}", text, "", name, None)
        else:
            for edit in _edits(_module(path)):
                of = getattr(edit, "of", getattr(edit, "twin", ""))
                cls = getattr(edit, "cls", of.partition(":")[2] or "Twin")
                _add(found, str(edit), edit.source(), of, cls, getattr(edit, "caught_by", None))
    file.write_text(json.dumps(list(found.values())), "utf-8")


def _add(found: dict[str, dict], name: str, text: str, of: str, cls: str, caught_by: str | None) -> None:
    if "/" in of:
        cls = registered_class(*of.split("/"))
    found[name] = {"name": name, "text": text, "of": of, "class": cls, "caught_by": caught_by}


def _add_of_tests(found: dict[str, dict], kind: str, text: str, module) -> None:
    if kind == LISTENER:
        texts = {name: value for name, value in vars(module).items() if isinstance(value, str) and "@hookimpl" in value}
        for name, value in texts.items():
            if "sleep" not in value:  # waiting for it takes minutes
                _add(found, f"{kind} {name}", value, "", kind, None)
        return
    for name, cls in _own(module, component_class()).items():
        if cls.kind == kind:
            _add(found, f"{kind} {name}", text, "", name, None)


def _own(module, base: type) -> dict[str, type]:
    """The classes derived from `base` that a module defines."""
    classes = {
        name: value for name, value in vars(module).items() if isinstance(value, type) and issubclass(value, base)
    }
    return {name: cls for name, cls in classes.items() if cls.__module__ == module.__name__}


def _edits(module) -> list[object]:
    """All objects with a source that stand in a list, a tuple or a dictionary of a module."""
    tables = [value for value in vars(module).values() if isinstance(value, list | tuple | dict)]
    return [each for table in tables for each in table if hasattr(each, "source") and callable(each.source)]


def _module(path: Path):
    spec = importlib.util.spec_from_file_location(f"goldens_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for themselves
    spec.loader.exec_module(module)
    return module


def judge(file: Path, out: Path) -> None:
    """Write a line for each class: of a wrong one the status of the check that is for it, else all checks that fail."""
    load_paddle()
    with tempfile.TemporaryDirectory() as folder, out.open("a", encoding="utf-8") as lines:
        for number, item in enumerate(json.loads(file.read_text("utf-8"))):
            source = Path(folder) / f"{item['class'].lower()}_{number}.py"
            source.write_text(item["text"], "utf-8")
            try:
                facts = _judged(item, source)
            except Exception as error:
                facts = {"not judged": type(error).__name__}
            lines.write(json.dumps({"name": item["name"], "facts": facts}) + "\n")
            lines.flush()


def _judged(item: dict, source: Path) -> dict[str, object]:
    wanted = item["caught_by"]
    if item["class"] == LISTENER:
        statuses = outcomes_of_listener(source)
    else:
        cls, as_kind = getattr(_module(source), item["class"]), AS_KIND.get(item["of"])
        only = frozenset([wanted]) if wanted else invariants(as_kind or cls.kind)
        statuses = outcomes(cls, as_kind, MASK.get(item["of"]), only)
    if wanted:
        return {wanted: statuses.get(wanted, "no such check")}
    return {"failing": sorted(name for name, status in statuses.items() if status == "fail")}


if __name__ == "__main__":
    verb, *paths = sys.argv[1:]
    {"commands": commands, "items": items, "judge": judge}[verb](*map(Path, paths))
