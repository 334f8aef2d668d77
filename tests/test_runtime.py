"""Settings come before Paddle, Paddle comes only when it is needed, and imports go one way."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pluggy
import pytest

from paddle_tfm import blas, runtime

PACKAGE = Path(runtime.__file__).parent
OURS = ("OMP_NUM_THREADS", "MKL_DEBUG_CPU_TYPE", "FLAGS_use_stride_kernel", "GLOG_minloglevel")


def python(script: str, cwd: Path | None = None, **variables: str):
    """What `script` prints as JSON, in a process without our variables."""
    clean = {name: value for name, value in os.environ.items() if name not in OURS}
    environment = {**clean, **variables}
    done = subprocess.run([sys.executable, "-c", script], env=environment, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


# ----------------------------------------------------------------------------------------------------------- settings

SETTINGS = """
import json, os, re, warnings
{before}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import paddle_tfm
    from paddle_tfm import runtime
    runtime.prepare()  # twice: nothing more
names = ["OMP_NUM_THREADS", "MKL_DEBUG_CPU_TYPE", "FLAGS_use_stride_kernel", "GLOG_minloglevel"]
messages = [str(each.message) for each in caught if re.search("paddle_tfm|OMP_NUM_THREADS", str(each.message))]
settings = {{each.name: [each.value, each.by_user] for each in runtime.SETTINGS}}
print(json.dumps([{{name: os.environ.get(name) for name in names}}, settings, messages, runtime.threads()]))
"""


def test_importing_paddle_tfm_sets_what_makes_paddle_fast():
    variables, settings, messages, threads = python(SETTINGS.format(before=""))
    assert variables["OMP_NUM_THREADS"] == str(runtime.physical_cores())
    assert variables["FLAGS_use_stride_kernel"] == "0"
    assert variables["GLOG_minloglevel"] == "2"
    assert variables["MKL_DEBUG_CPU_TYPE"] == blas.Processor.read().setting
    assert {name: settings[name] for name in OURS} == {name: [variables[name], False] for name in OURS}
    assert messages == []
    assert threads == runtime.physical_cores()


def test_threads_of_nested_loops_stay():
    variables, _, messages, threads = python(SETTINGS.format(before=""), OMP_NUM_THREADS="2,1")
    assert (variables["OMP_NUM_THREADS"], messages, threads) == ("2,1", [], 2)


HUGE = """
import json
from pathlib import Path
import paddle_tfm
from paddle_tfm import runtime
import numpy as np
x = [np.ones(1 << 16, "float32") for _ in range(256)]  # 64 MiB of the heap; NumPy asks for itself from 4 MiB on
kib = [int(line.split()[1]) for line in Path("/proc/self/smaps_rollup").read_text().splitlines() if "AnonHuge" in line]
print(json.dumps([any(each.name == "madvise" for each in runtime.SETTINGS), kib[0]]))
"""


def test_the_heap_lies_in_huge_pages_where_the_system_gives_them_to_those_who_ask():
    file = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not file.exists() or "[never]" in file.read_text():
        pytest.skip("this system gives none")
    asked, kib = python(HUGE)
    if not asked:
        pytest.skip("this C library has no mallopt, or the heap cannot be advised about")
    assert kib >= 32 << 10
    if "[madvise]" in file.read_text():
        assert python(HUGE, PADDLE_TFM_KEEP_ENVIRONMENT="1") == [False, 0]


def test_what_the_user_set_is_never_overridden():
    theirs = dict.fromkeys(OURS, "7")
    variables, settings, messages, threads = python(SETTINGS.format(before=""), **theirs)
    assert variables == theirs
    assert {name: settings[name] for name in OURS} == {name: ["7", True] for name in OURS}
    assert (messages, threads) == ([], 7)


def test_with_the_opt_out_variable_nothing_is_set():
    variables, settings, messages, threads = python(SETTINGS.format(before=""), PADDLE_TFM_KEEP_ENVIRONMENT="1")
    assert variables == dict.fromkeys(OURS)
    assert settings == {name: [None, True] for name in OURS}  # no mallopt either
    assert (messages, threads) == ([], 1)
    variables, *_ = python(SETTINGS.format(before=""), PADDLE_TFM_KEEP_ENVIRONMENT="0")
    assert variables["FLAGS_use_stride_kernel"] == "0"


def test_a_warning_says_when_paddle_was_imported_first():
    variables, _, messages, _ = python(SETTINGS.format(before="import paddle"))
    assert len(messages) == 1
    assert messages[0].startswith("paddle was imported before paddle_tfm")
    assert variables["FLAGS_use_stride_kernel"] is None


def test_a_script_that_imports_paddle_itself_ends_quietly_too():
    """Paddle's handler of SIGTERM writes a traceback in C++, unless `load_paddle` took it away."""
    script = "import os, paddle_tfm, paddle; paddle_tfm.runtime.load_paddle(); os.kill(os.getpid(), 15)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True)
    assert done.returncode == -15
    assert "C++ Traceback" not in done.stdout + done.stderr


def test_workers_share_the_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "6")
    with runtime.threads_for(4):
        assert os.environ["OMP_NUM_THREADS"] == "1"
    with runtime.threads_for(2):
        assert runtime.threads() == 3
    assert runtime.threads() == 6
    monkeypatch.delenv("OMP_NUM_THREADS")
    with runtime.threads_for(1):
        assert runtime.threads() == runtime.physical_cores()
    assert "OMP_NUM_THREADS" not in os.environ


LOADING = """
import json
from paddle_tfm import UserError, runtime
try:
    runtime.load_paddle()
except UserError as error:
    print(json.dumps(str(error)))
"""
REMEDY = "pip install paddlepaddle-gpu==3.3.1 -i https://www.paddlepaddle.org.cn"


def test_an_old_paddle_is_told_with_the_remedy(tmp_path):
    info = tmp_path / "paddlepaddle_gpu-2.6.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: paddlepaddle-gpu\nVersion: 2.6.2\n")
    message = python(LOADING, PYTHONPATH=str(tmp_path))
    assert message.startswith(
        "paddlepaddle-gpu 2.6.2 is installed, but paddle_tfm needs Paddle 3.3.x (tested with 3.3.1)"
    )
    assert REMEDY in message


def test_a_missing_paddle_is_told_with_the_remedy(tmp_path):
    (tmp_path / "pluggy").symlink_to(Path(pluggy.__file__).parent)
    path = (
        f"sys.path[:] = [{str(PACKAGE.parent)!r}, {str(tmp_path)!r}, *(each for each in sys.path if "
        "'site-packages' not in each)]"
    )
    message = python(f"import sys\n{path}\n{LOADING}")
    assert message.startswith("PaddlePaddle is not installed. For a CPU: pip install")
    assert REMEDY in message


# ---------------------------------------------------------------------------------------------------- without Paddle


def test_help_lists_and_completion_do_without_paddle(tmp_path):
    commands = [
        [], ["--help"], ["--version"], ["ls"], ["ls", "components"], ["ls", "plugins"], ["ls", "runs"], ["ls", "data"],
        ["run", "--help"], ["run", "quickstart", "--help"], ["show", "quickstart"], ["completion", "bash"],
        ["evaluate", "--help"], ["cp", "reverse", "mine.yaml", "--force"],
    ]  # fmt: skip
    script = f"""
import contextlib, io, json, os, sys
from paddle_tfm.cli import main
results = []
completing = {{"_PADDLE_TFM_COMPLETE": "bash_complete", "COMP_WORDS": "paddle-tfm run reverse model.n", "COMP_CWORD": "3"}}
for variables, arguments in [*(({{}}, each) for each in {commands!r}), (completing, [])]:
    os.environ.update(variables)
    out = io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            main(arguments)
        except SystemExit as exit:
            status = exit.code
    heavy = [name for name in ("paddle", "scipy", "matplotlib") if name in sys.modules]
    out.flush()
    results.append([arguments, status, heavy, out.buffer.getvalue().decode()])
print(json.dumps(results))
"""
    results = python(script, cwd=tmp_path)
    *listings, completion = results
    for arguments, status, heavy, output in listings:
        assert status == (0 if arguments else 2), arguments
        assert heavy == [], arguments
        assert output or not arguments, arguments
    _, status, heavy, output = completion
    assert (status, heavy) == (0, [])
    assert "model.norm=" in output
    assert "model.d_ff=" not in output


# ------------------------------------------------------------------------------------------------------- architecture

# what may be imported: anything of a lower level, and one's own package
LEVELS = re.search(
    r"^```levels\n(.*?)^```", (PACKAGE.parent / "ARCHITECTURE.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
)[1]
LEVEL = {name: level for level, line in enumerate(reversed(LEVELS.splitlines())) for name in line.split(" · ")}
FILES = sorted(PACKAGE.rglob("*.py"))


def imported(file: Path) -> list[tuple[int, str]]:
    """(line, module) of all that a file imports anywhere, but for what only type checkers see."""
    tree = ast.parse(file.read_text("utf-8"))
    hidden = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    imports = []
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            imports += [(node.lineno, alias.name) for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: relative import"
            imports += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return imports


def part(module: str) -> str | None:
    """The part of paddle_tfm that a module belongs to; None for others' modules."""
    head, *names = module.split(".")
    if head != "paddle_tfm":
        return None
    return names[0] if names and names[0] in LEVEL else "__init__"


def test_imports_go_one_way():
    problems = []
    for file in FILES:
        mine = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        assert mine in LEVEL, f"{mine} is new: say at which level it stands"
        for line, module in imported(file):
            other = part(module)
            if module.startswith("paddle_tfm_plugins"):
                problems.append(f"{file}:{line}: the engine knows no variant")
            if other is not None and other != mine and LEVEL[other] >= LEVEL[mine]:
                problems.append(f"{file}:{line}: {mine} must not import {other}")
    assert problems == []


def test_plugins_import_protocols_data_and_leaves_only():
    allowed = {"protocols", "data", "kernels", "layers", "ops", "randomness", "errors", "hookspecs", "runtime"}
    allowed |= {"exit_status", "language", "memory", "paddle_compat", "place", "ranks", "validators"}
    assert [
        f"{file}:{line}: {module}"
        for file in sorted((PACKAGE.parent / "plugins").rglob("*.py"))
        for line, module in imported(file)
        # a listener reads the log of a run
        if part(module) not in {None, *allowed, *({"runs"} if file.parent.name == "listener" else ())}
    ] == []
