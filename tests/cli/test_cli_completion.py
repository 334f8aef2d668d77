"""Completion as shells ask for it: spoken to in click's protocol, and shells that somebody types into."""

import fcntl
import os
import pty
import select
import shutil
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from paddle_tfm.cli import group
from paddle_tfm.cli.completion import SHELLS


def variables(shell: str, words: tuple[str, ...]) -> dict[str, str]:
    """What a shell says of a line; the words are as it passes them."""
    return {
        "_PADDLE_TFM_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": "\n".join(["paddle-tfm", *words]) if shell == "bash" else " ".join(["paddle-tfm", *words]),
        "COMP_CWORD": str(len(words)) if shell != "fish" else words[-1],
    }


@pytest.fixture
def complete(monkeypatch):
    """complete(words): what is proposed in the place of the last word."""

    def ask(*words: str, shell: str = "bash") -> list[str]:
        for name, value in variables(shell, words).items():
            monkeypatch.setenv(name, value)
        lines = SHELLS[shell](group, {}, "paddle-tfm", "_PADDLE_TFM_COMPLETE").complete().splitlines()
        if shell == "zsh":  # type, value, help; where there is help, colons of the value are escaped for `_describe`
            return [line.replace("\\:", ":") for line in lines[1::3]]
        return [line.partition(",")[2].partition("\t")[0] for line in lines if line]

    return ask


def test_components_behind_the_equals_sign(complete):
    norms = complete("run", "quickstart", "model.norm=")
    assert norms[0] == "model.norm=batch" and len(norms) >= 10
    assert "search=beam" in complete("run", "quickstart", "search=")
    assert "task=reverse" in complete("check", "reverse", "task=rev")


def test_further_values_behind_a_comma(complete):
    assert complete("run", "quickstart", "model.norm=layer,la") == ["model.norm=layer,layer_std"]
    assert complete("run", "quickstart", "model.norm={name: batch, ") == []
    assert complete("run", "reverse", "model.norm=layer,rms", "--baseline", "r") == ["rms"]


def test_paths_options_of_paths_and_plain_values(complete):
    assert {"model.norm.eps=", "model.norm.encoder="} <= set(complete("run", "reverse", "model.norm."))
    assert complete("run", "reverse", "model.norm.bias=f") == ["model.norm.bias=false"]
    assert "model.norm.encoder=batch" in complete("run", "reverse", "model.norm.encoder=")
    assert complete("run", "reverse", "train.precision=") == ["train.precision=float32", "train.precision=bfloat16"]
    assert complete("run", "reverse", "model.share_embeddings=t") == ["model.share_embeddings=true"]
    assert complete("run", "reverse", "train.st") == ["train.steps="]
    assert complete("run", "no-such-recipe", "model.norm=") == []


def test_verbs_recipes_kinds_and_components(complete):
    assert complete("c") == ["cp", "check", "compare", "completion"]
    assert "quickstart" in complete("run", "q") and "reverse" in complete("check", "re")
    assert complete("plugin", "check", "rot")[0] == "rotary"
    assert complete("ls", "components", "pl") == ["placement"]
    assert complete("show", "norm:dy") == ["norm:dyt"]
    assert "search:" in complete("show", "sear")


def test_a_word_that_bash_has_cut_is_one_word_and_only_its_last_piece_is_replaced(complete):
    assert complete("run", "quickstart", "model.norm", "=", "dy") == ["dyt"]
    assert "layer" in complete("run", "quickstart", "model.norm", "=")
    assert complete("show", "norm", ":", "dy") == ["dyt"]
    assert complete("run", "quickstart", "train.steps", "=", "5", "model.norm", "=", "dy") == ["dyt"]


# ------------------------------------------------------------------------------------------------------- real shells

STARTS = {
    "bash": (
        ["bash", "--norc", "--noprofile", "-i"],
        'eval "$(paddle-tfm completion bash)"',
        'paddle-tfm() { echo "GOT<$*>"; }',
    ),
    "zsh": (
        ["zsh", "-f", "-i"],
        "autoload -Uz compinit && compinit -u -D",
        'eval "$(paddle-tfm completion zsh)"',
        'paddle-tfm() { print -r -- "GOT<$*>" }',
    ),
    "fish": (
        ["fish", "--no-config", "-i"],
        "paddle-tfm completion fish | source",
        'function paddle-tfm; echo "GOT<$argv>"; end',
    ),
}


@pytest.mark.parametrize("shell", STARTS)
def test_a_word_that_continues_has_no_space_behind_it(shell, tmp_path):
    """Keys wait while the shell completes, so a whole line is typed at once; a function shows what it became."""
    command, *prepared = STARTS[shell]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{shell} is not installed")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "HOME": str(tmp_path), "ZDOTDIR": str(tmp_path)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"

    def own_terminal() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=tmp_path, preexec_fn=own_terminal
    )
    os.close(theirs)

    def wait_for(text: str) -> None:
        output, end = "", time.monotonic() + 60
        while text not in output and time.monotonic() < end:
            if select.select([ours], [], [], 0.2)[0]:
                output += os.read(ours, 65536).decode(errors="replace")
        assert text in output, f"waited for {text!r}, but got {output[-2000:]!r}"

    try:
        for line in prepared:
            os.write(ours, f"{line}\r".encode())
        os.write(ours, b"echo rea''dy\r")
        wait_for("ready\r")
        for typed, became in (
            ("run quickstart train.st\t5", "run quickstart train.steps=5"),
            ("run quicks\tmodel.norm=dy\t", "run quickstart model.norm=dyt"),
            ("show norm:dy\t", "show norm:dyt"),
        ):
            os.write(ours, f"paddle-tfm {typed}\r".encode())
            wait_for(f"GOT<{became}>")
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_a_shell_would_execute_is_not_offered(shell, tmp_path, complete):
    recipe = tmp_path / "evil.yaml"
    recipe.write_text(
        'name: evil\nmodel: {d_model;touch PWNED;#: 3, norm: rms, "a\\nplain,zz": 1}\n'
        'train: {"steps$(touch PWNED)": 5, "steps`id`": 5, steps: 5}\n'
    )
    assert complete("run", str(recipe), "model.", shell=shell) == ["model.norm="]
    assert complete("run", str(recipe), "train.st", shell=shell) == ["train.steps="]
