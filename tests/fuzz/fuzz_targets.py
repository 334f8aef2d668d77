"""What is fuzzed: for each target a function bytes → None that raises only where there is a bug.

`UserError` and its like are answers; every other exception is a bug, and so is a wrong result. No bytes make a target run
what they hold: `guarded` refuses processes, sockets, pickles and libraries. `test_fuzz.py` draws the
bytes.
"""

import itertools
import json
import pickle
import random
import re
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from paddle_tfm.data.vocabulary import Vocabulary
from paddle_tfm.errors import UserError
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.expansion import Recipe
from paddle_tfm.recipe.loading import load
from paddle_tfm.recipe.merging import override
from paddle_tfm.recipe.reading import read, shipped
from paddle_tfm.runs import manifest

HEAD = "base: base.yaml\nname: fuzz\nsummary: s\n"
REFUSED = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "pickle.find_class")
REFUSED = (*REFUSED, "socket.connect", "socket.bind", "ctypes.dlopen", "shutil.rmtree")
FOLDER = tempfile.TemporaryDirectory(prefix="fuzz", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)

_guards = []


def _refuse(event, arguments):
    if _guards and event in REFUSED:
        raise RuntimeError(f"an input made us do {event}")


sys.addaudithook(_refuse)


def guarded(target, data):
    """target(data), with whatever would execute something refused."""
    _guards.append(target)
    try:
        target(data)
    finally:
        _guards.pop()


def text_of(data):
    """A text."""
    return data.decode("utf-8", "replace")


# ---------------------------------------------------------------------------------------------------------- recipes


@cache
def _pickled_base():
    return pickle.dumps(read(shipped()["base"]))


def _base():
    """What base.yaml holds, and where: a copy, which takes a tenth of the time in this way."""
    return pickle.loads(_pickled_base())


def recipe(data):
    """A recipe's text: read, merged with its base, and all its runs, or sentences on all that is wrong with it. A sound
    one is the same after it was written and read again."""
    try:
        own, lines = yaml_lines.load(data.decode("utf-8", "replace"), "fuzz.yaml")
        merged, origins = _base()
        for key, value in own.items():
            override(merged, key, value, origins, lines)
        loaded = Recipe("fuzz.yaml", merged, origins)
        runs, problems = loaded.expand()
    except UserError as error:
        assert str(error).startswith("fuzz.yaml"), error
        return
    for problem in problems:
        assert isinstance(problem.message, str) and problem.message, problem
    if problems:
        return
    assert runs and len({run.name for run in runs}) == len(runs)
    for run in runs[:3]:
        again, _ = yaml_lines.load(yaml_lines.dump(run.data), "again.yaml")
        assert _same(again, run.data), (again, run.data)


def recipe_file(data):
    """The same by way of a file, whose base and name it chooses, and with `--fast`."""
    file = Path(FOLDER.name) / "fuzz.yaml"
    file.write_bytes(data)
    for fast in (False, True):
        try:
            load(str(file), fast=fast).expand()
        except UserError as error:
            assert "fuzz.yaml" in str(error), error


def _same(one, other):
    """Equal, and of one type: not 1 for True; a tuple is a list, and NaN is itself."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and (one == other or (one != one and other != other))


def overrides(data):
    """Arguments NAME=VALUE, a line each: they are set as YAML would set them, or a sentence says what is wrong."""
    arguments = [line for line in text_of(data).split("\n") if line][:4]
    try:
        merged, origins = _base()
        loaded = _overridden("base", arguments, merged, origins)
        runs, problems = loaded.expand()
    except UserError as error:
        assert str(error), arguments
        return
    assert runs or problems


def _overridden(name, arguments, merged, origins):
    """`load` with a base that was read before: reading it takes longer than all else."""
    from paddle_tfm.recipe import loading

    given = loading.read
    loading.read = lambda path: (merged, origins)
    try:
        return load(name, arguments)
    finally:
        loading.read = given


# ------------------------------------------------------------------------------------------------------------- texts


@cache
def _tokenizers():
    from paddle_tfm_plugins.tokenizer.char import Char
    from paddle_tfm_plugins.tokenizer.mixed import Mixed
    from paddle_tfm_plugins.tokenizer.sentencepiece import SentencePiece
    from paddle_tfm_plugins.tokenizer.space import Space
    from paddle_tfm_plugins.tokenizer.word import Word

    sentences = ["the cat sat on the mat", "he sold 25 mats, at 3.5 each", "我是 Anna。", "<0x41> ▁ ⁇ don't"] * 5
    learned = [
        SentencePiece(model=model, byte_fallback=fallback, sampling=0.3, lowercase=fallback)
        for model, fallback in itertools.product(("unigram", "bpe"), (True, False))
    ]
    for each in learned:
        each.fit(sentences)
    return [Char(), Char(exact=True), Space(), Word(), Word(lowercase=True), Mixed(), *learned]


def tokenizers(data):
    """Pieces of any text join to its normal form, sampled ones too; what is normal stays; a vocabulary that knows the
    pieces gives them back; and any pieces at all make a text."""
    text = text_of(data)
    for tokenizer in _tokenizers():
        pieces, normal = tokenizer.tokenize(text), tokenizer.normalize(text)
        assert tokenizer.detokenize(pieces) == normal, (type(tokenizer), tokenizer.__dict__, text)
        assert tokenizer.normalize(normal) == normal, (type(tokenizer), text)
        assert tokenizer.tokenize(normal) == pieces, (type(tokenizer), text)
        sampled = tokenizer.sample(text, np.random.default_rng(len(data)))
        assert tokenizer.detokenize(sampled) == normal, (type(tokenizer), tokenizer.__dict__, text)
        vocabulary = Vocabulary(list(dict.fromkeys(pieces)))
        assert vocabulary.decode(vocabulary.encode(pieces)) == pieces
        known = tokenizer.pieces() or pieces
        anything = random.Random(data).choices(known, k=5) if known else []
        assert isinstance(tokenizer.detokenize(anything), str)
        tokenizer.detokenize(anything).encode("utf-8")


# ------------------------------------------------------------------------------------------------------- checkpoints


def checkpoint(data):
    """Files of a checkpoint with any content, the first byte of which says which file it is of: read, or refused with
    a sentence. What is read is what the file says."""
    from safetensors.numpy import save

    from paddle_tfm.runs import checkpoint as checkpoints

    name = (manifest.FILE, manifest.STATE, manifest.WEIGHTS)[(data[0] if data else 0) % 3]
    run = Path(FOLDER.name) / "run"
    whole = {
        manifest.STATE: b'{"step": 3, "best": [1.0], "best_step": 3, "snapshots": [3]}',
        manifest.WEIGHTS: save({"w": np.arange(6, dtype=np.float32).reshape(2, 3)}),
    }
    for place in ("last", "last.old", "best", "step-3"):
        folder = run / "checkpoints" / place
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in {**whole, name: data[1:]}.items():
            (folder / file).write_bytes(content)
        if name != manifest.FILE:
            (folder / manifest.FILE).unlink(missing_ok=True)
    last = run / "checkpoints" / "last"
    for read_part in (
        lambda: manifest.resume_point(run / "checkpoints"),
        lambda: manifest.read_state(last).step + 1,
        lambda: [array.sum() for array in checkpoints.load_arrays(last).values()],
        lambda: manifest.read(last),
    ):
        try:
            read_part()
        except UserError as error:
            assert str(run) in str(error), error
    assert manifest.damage(last) is None or isinstance(manifest.damage(last), str)


# -------------------------------------------------------------------------------------------------- what to begin with


def _recipe_seeds():
    """Small ones: an input takes as long as its text is, most of it in the parser of YAML."""
    texts = [re.sub(r"(?m)^ *#.*\n|  +#.*", "", file.read_text("utf-8")) for file in sorted(shipped().values())]
    return [HEAD.encode(), *(text.encode() for text in texts if len(text) < 1_000)]


def _state_seeds():
    from safetensors.numpy import save

    state = {"step": 3, "best": [0.5], "best_step": 2, "snapshots": [1, 2], "valid": {"loss": 1.0}, "evaluated": True}
    files = {"state.json": {"bytes": 60, "sha256": "0" * 64}, "model.safetensors": {"bytes": 96, "sha256": "1" * 64}}
    told = {"step": 3, "identity": "x", "files": files}
    weights = save({"w": np.zeros((2, 3), np.float32), "b": np.zeros(3, np.float16)})
    return [b"\0" + json.dumps(told).encode(), b"\1" + json.dumps(state).encode(), b"\2" + weights]


ASSIGNMENTS = """model.norm=layer,rms
model.norm={encoder: batch, decoder: layer}
train.schedule.peak=1e-3
seeds=[1, 2]
tune={space: {train.schedule.peak: {log: [1e-3, 1e-2]}}, trials: 4}
variants.a.model.norm=rms
baseline=a
model.position='a, b',none
tokenizer.source=char"""
TEXTS = [
    "the cat sat",
    "It's 25°, Anna",
    "我是 Anna。",
    "a\u0301 \u200d\ufeff\u2028x",
    "<0x41>▁<unk>",
    "\0\t ⁇ ▅",
    "İSTANBUL ß",
]

TARGETS = {each.__name__: each for each in (recipe, recipe_file, overrides, tokenizers, checkpoint)}
SEEDS = {
    "recipe": _recipe_seeds,
    "recipe_file": _recipe_seeds,
    "overrides": lambda: [ASSIGNMENTS.encode(), *(line.encode() for line in ASSIGNMENTS.split("\n"))],
    "tokenizers": lambda: [text.encode() for text in TEXTS],
    "checkpoint": _state_seeds,
}
