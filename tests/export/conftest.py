"""Small random models as CTranslate2 loads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ctranslate2", reason="the extra [ctranslate2]")

import paddle

from paddle_tfm import build_model, create_registry
from paddle_tfm.cli import main
from paddle_tfm.data.codec import Codec, Encoded
from paddle_tfm.data.vocabulary import EOS, Vocabulary
from paddle_tfm.export.ctranslate2.rules import Rules
from paddle_tfm.export.ctranslate2.spec import save
from paddle_tfm.export.ctranslate2.variables import variables
from paddle_tfm.protocols import Example

SIZE = 40
SMALL = (
    *("model.d_model=32", "model.num_heads=4", "model.d_ff=48", "model.dropout=0.0", "model.max_length=64"),
    *("model.encoder_layers=2", "model.decoder_layers=2"),
)
VOCABULARY = Vocabulary([f"w{i}" for i in range(SIZE - 4)])


@pytest.fixture(scope="session")
def components():
    """All that is registered."""
    return create_registry()


@pytest.fixture(scope="session")
def rules(components):
    """How CTranslate2 holds them."""
    return Rules(components)


@pytest.fixture(scope="session")
def codec():
    """The ids 4, 5, … are w0, w1, …"""
    return Codec(None, None, VOCABULARY, VOCABULARY)


@pytest.fixture(scope="session")
def sentences():
    """Forty random sources of 1 to 24 tokens; their targets are other random texts."""
    rng = np.random.default_rng(1)
    rows = [[rng.integers(4, SIZE, size=length).tolist() for length in rng.integers(1, 25, size=2)] for _ in range(40)]
    empty = Example("", "")
    return [Encoded(empty, [*a, EOS], [*a, EOS], [*b, EOS], [*b, EOS], ()) for a, b in rows]


@pytest.fixture(scope="session")
def make_random():
    """A model none of whose parameters has a value that could hide a mistake, such as a bias of zero."""

    def make(*overrides, base="base"):
        model = build_model(base, [*SMALL, *overrides], source_vocabulary=SIZE, target_vocabulary=SIZE, seed=3)
        rng = np.random.default_rng(0)
        with paddle.no_grad():
            for name, parameter in model.named_parameters():
                scale = 1.0 if "table" in name else 0.15 * ("embedding.weight" not in name)
                noise = rng.normal(0.0, 1.0, parameter.shape).astype("float32") * np.float32(scale)
                parameter.set_value(parameter + paddle.to_tensor(noise))
        model.eval()
        return model

    return make


@pytest.fixture
def write(tmp_path, rules):
    """Write a model for CTranslate2; returns its variables and the folder."""

    def to(model, quantization="float32", rules=rules) -> tuple:
        held, folder = variables(model, rules, quantization), Path(tmp_path / quantization)
        folder.mkdir(exist_ok=True)
        pieces = [VOCABULARY.pieces] * (1 if model.encoder is None else 2)
        save(held, pieces, quantization, folder)
        return held, folder

    return to


@pytest.fixture
def call(capsys):
    """A command line → status, output, errors."""

    def to(*arguments):
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        out = capsys.readouterr()
        return end.value.code, out.out, out.err

    return to
