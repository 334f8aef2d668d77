"""Some inputs of every target, the same at each run; and every input that once was a bug. With the
marker `fuzz` a million of each, or FUZZ_INPUTS."""

import os
import re

import fuzz_targets
import pytest
from fuzz_targets import ASSIGNMENTS, HEAD, SEEDS, TARGETS, guarded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

# Words of recipes, of YAML, and what is at its limits.
VOCABULARY = """model train tune space trials grid variants seeds equal ladder sizes fast claims base name baseline train.steps
model.norm model.norm.encoder model.d_ff train.schedule.peak tokens steps rms layer a b 1 0 -1 2 4 1.5 1e-3 .inf .nan null
true 'x' "y" [1,2] {log:␣[1,2]} {int:␣[1,9]} {name:␣rms} {} [] &a *a !!int !!str << | > # , : - ? { } [ ] at_most looks
says source metric variant over above "\\UFFFFFFFF" evaluate.tests tokenizer.source"""
WORDS = [word.replace("␣", " ") for word in VOCABULARY.split()]
# of every kind that a tokenizer treats apart: what is no text at all comes as bytes
CHARACTERS = (
    "abAZß İ\t\r\n\0\x1c\x85\u00a0\u2028\u3000▁▅⁇_<0x41>.,'’-0٣½é\u0301\u093f我ハ한ㄅ，。\u200d\ufeff\u202e\U0001f600"
)
TEXTS = st.text(CHARACTERS, max_size=40).map(str.encode) | st.binary(max_size=40)
LINES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6)
PAIRS = st.tuples(LINES.map(" ".join), LINES.map(" ".join))


def _recipes():
    lines = st.lists(PAIRS.map(lambda pair: f"{pair[0].split(' ')[0]}: {pair[1]}"), max_size=4)
    return lines.map(lambda several: "\n".join([HEAD, *several]).encode())


def inputs_of(name):
    """What hypothesis draws for a target."""
    if name in ("recipe", "recipe_file"):
        return _recipes() | TEXTS
    if name == "overrides":
        return PAIRS.map("=".join).map(str.encode) | TEXTS
    if name == "tokenizers":
        return TEXTS
    return st.builds(_edited, st.sampled_from(SEEDS[name]()), st.integers(0, 99), st.sampled_from(OTHERS)) | TEXTS


OTHERS = [b'"x"', b"null", b"[]", b"-1", b"1e999", b"{}", b"true", b"", b"\xff", b"9" * 30, b'"' + b"a" * 300 + b'"']


def _edited(content, number, other):
    """A file with another value in place of one of its numbers and words."""
    parts = re.split(rb'(\d+|"\w*"|[\[{])', content)
    parts[1 + 2 * (number % (len(parts) // 2))] = other
    return b"".join(parts)


EXAMPLES = {
    "recipe": 30,
    "recipe_file": 10,
    "overrides": 60,
    "tokenizers": 80,
    "checkpoint": 80,
}


def drawn(name, inputs):
    @settings(
        max_examples=inputs,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs_of(name))
    def draw(data):
        guarded(TARGETS[name], data)

    draw()


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_is_a_bug(name):
    drawn(name, EXAMPLES[name])


@pytest.mark.fuzz
@pytest.mark.parametrize("name", TARGETS)
def test_a_million_inputs(name):
    drawn(name, int(os.environ.get("FUZZ_INPUTS", 1_000_000)))


FOUND = {
    "recipe": [
        *(f"a: {value}" for value in ("!!timestamp x", "!!int ''", "!!set {a}", "!!binary aGk=", '"\\UFFFFFFFF"')),
        "? a" + ".a" * 500 + "\n: 1",
        "equal: tokens\ngrid: {a: 3}",
        "tokenizer" + 49 * "." + "e: x",
        f"tune: {{space: {{{', '.join(f'model.{key}: {{int: [1, {9 * 10**98}]}}' for key in 'abcd')}, train.x: {{log: [1, 2]}}}}, trials: 2}}",
    ],
    "recipe_file": ["x: 1\nbase: " + "a" * 300],
    "overrides": [
        "a" + ".a" * 500 + "=1",
        "tokenizer" + 45 * ".e" + "={a: {b: {c: {d: 1}}}}",
        ASSIGNMENTS,
    ],
    "checkpoint": [
        '\0{"step": 1, "identity": "", "files": {"model.safetensors": {"bytes": "x", "sha256": ""}}}',
        '\0{"step": 1, "identity": "", "files": {"' + "a" * 300 + '": {"bytes": 1, "sha256": ""}}}',
        '\1{"step": "x", "best": [1]}',
        '\1{"step": 1, "snapshots": 3}',
        '\1{"step": [1], "snapshots": [1]}',
    ],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in FOUND.items() for text in texts])
def test_what_was_a_bug_is_none(name, text):
    head = HEAD if name == "recipe" else ""
    guarded(TARGETS[name], (head + text).encode("utf-8"))


def test_what_would_execute_something_is_seen(tmp_path):
    def target(data):
        import subprocess

        subprocess.run(["true"])

    with pytest.raises(RuntimeError, match=r"an input made us do subprocess\.Popen"):
        guarded(target, b"")
    assert not fuzz_targets._guards
