"""Paddle is imported once, with its settings made, before any test module imports it; and small real models, with
batches of random tokens and padding."""

import gc
import os
import re
import signal

import numpy as np
import pytest

if (
    "PYTEST_XDIST_WORKER" in os.environ
):  # processes side by side: one thread each, and not as many as the one before them set
    os.environ["OMP_NUM_THREADS"] = "1"

# A shell without job control starts what it puts into the background deaf to Ctrl-C, and so would be all that is
# started from here.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import paddle_tfm
from paddle_tfm import build_model, create_registry
from paddle_tfm.data.batches import Batch
from paddle_tfm.runtime import load_paddle

paddle = load_paddle()
VOCABULARY = 13
SMALL = ["model.d_model=16", "model.num_heads=2", "model.d_ff=24", "model.dropout=0.0", "model.max_length=32"]

# pytest-xdist sets it for its workers; lines of the command line would be broken there, and nowhere else.
os.environ.pop("COLUMNS", None)
os.environ["LANGUAGE"] = "en"  # whatever the developer's language


def pytest_xdist_auto_num_workers():
    """One process more than there are cores: a fifth of the suite's time is waiting for processes that tests start."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_ignore_collect(collection_path, config):
    """A file of which `-m` takes no test is not imported: that is a third of the time of collecting, in each process."""
    if collection_path.suffix == ".py":
        marked = re.search(r"^pytestmark = \[?\s*pytest\.mark\.(\w+)", collection_path.read_text("utf-8"), re.MULTILINE)
        if marked and f"not {marked[1]}" in config.getoption("markexpr"):
            return True
    return None


def pytest_collection_modifyitems(items):
    """First what takes a minute each, notebooks and trials of listeners: at the end all but one process would wait."""
    items.sort(key=lambda item: not (item.get_closest_marker("pages") or item.path.name == "test_listeners.py"))


def pytest_collection_finish():
    """What thousands of collected tests and all imports hold lives to the end: Python's collector, which would look
    through it again and again, takes 7% of the conformance suite with it and 1% without."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.fixture(scope="session")
def registry():
    return create_registry()


@pytest.fixture
def rng():
    return np.random.default_rng(20260)


@pytest.fixture
def make_model():
    def make(*overrides, seed=3):
        model = build_model(
            "base", [*SMALL, *overrides], source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, seed=seed
        )
        model.eval()
        return model

    return make


@pytest.fixture
def make_batch():
    def make(source_lengths=(5, 3, 4), target_lengths=(4, 6, 2), extra_padding=0, seed=0):
        rng = np.random.default_rng(seed)

        def side(lengths):
            rows = [rng.integers(4, VOCABULARY, size=length) for length in lengths]
            ids = np.zeros((len(rows), max(lengths) + extra_padding), dtype=np.int64)
            valid = np.zeros(ids.shape, dtype=bool)
            for i, row in enumerate(rows):
                ids[i, : len(row)], valid[i, : len(row)] = row, True
            return ids, valid

        source, source_valid = side(source_lengths)
        target, target_valid = side(target_lengths)
        target_in = np.concatenate([np.ones((len(target), 1), dtype=np.int64), target[:, :-1]], 1) * target_valid
        return Batch(
            source, source_valid, source, target_in, target, target, target_valid, 0,
            np.arange(len(source)), int(target_valid.sum()),
        ).tensors()  # fmt: skip

    return make


@pytest.fixture
def stepwise():
    """Decode a batch's target in chunks of the given size through the cache: h [B, T, C]."""

    def decode(model, batch, chunk):
        memory = model.encode(batch.source, batch.source_valid, batch.copy_ids)
        state, outputs = model.start(memory), []
        for begin in range(0, batch.target_in.shape[1], chunk):
            part = slice(begin, begin + chunk)
            h, state = model.decode(batch.target_in[:, part], state, batch.target_valid[:, part])
            outputs.append(h)
        return paddle.concat(outputs, 1)

    return decode


@pytest.fixture
def float64():
    """Parameters made meanwhile are float64."""
    paddle.set_default_dtype("float64")
    yield
    paddle.set_default_dtype("float32")


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory):
    """`reverse`, after 20 steps."""
    folder = tmp_path_factory.mktemp("searched") / "out"
    overrides = [
        "task={name: reverse, symbols: 6, min_length: 1, max_length: 6, train: 200, valid: 10, test: 10}",
        "model.d_model=16", "model.num_heads=2", "model.d_ff=16", "model.encoder_layers=1", "model.decoder_layers=2",
        "model.max_length=32", "train.max_tokens=256", "train.steps=20", "evaluate.every=20",
        "train.schedule={name: inverse_sqrt, peak: 3e-3, warmup: 5}",
    ]  # fmt: skip
    (path,) = paddle_tfm.run("base", overrides, out=folder)
    return paddle_tfm.load_run(path)
