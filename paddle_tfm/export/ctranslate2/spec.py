"""Variables as a specification of CTranslate2, which writes its binary format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import paddle

from paddle_tfm.data.vocabulary import BOS, EOS, SPECIAL, UNKNOWN
from paddle_tfm.errors import UserError
from paddle_tfm.export.ctranslate2.variables import Variables
from paddle_tfm.language import _

QUANTIZATIONS = ("float32", "int8", "int16", "bfloat16")
TESTED = (4, 8, 1)  # before, a damaged file could write beyond its memory


def load_ctranslate2() -> ModuleType:
    """The package ctranslate2.

    Raises:
        UserError: it is not installed, or too old.
    """
    how = 'pip install "ctranslate2>=4.8.1" (in a clone: pip install -e ".[ctranslate2]")'
    try:
        import ctranslate2
    except ImportError as error:
        raise UserError(_("CTranslate2 is not installed: {how}").format(how=how)) from error
    version = tuple(int(part) for part in ctranslate2.__version__.split(".")[:3] if part.isdecimal())
    if version < TESTED:
        text = _("CTranslate2 must be of version 4.8.1 or later, but is {version}: {how}")
        raise UserError(text.format(version=ctranslate2.__version__, how=how))
    return ctranslate2


def open_export(engine: str, folder: Path, compute_type: str, **threads: int) -> Any:
    """CTranslate2's `Translator` or `Generator` of an export.

    Raises:
        UserError: it cannot be loaded.
    """
    try:
        return getattr(load_ctranslate2(), engine)(str(folder), device="cpu", compute_type=compute_type, **threads)
    except (RuntimeError, ValueError) as error:
        raise UserError(f"{folder}: CTranslate2 cannot load it: {error}; remove it to export again") from error


def tokens(pieces: Sequence[str]) -> list[str]:
    """The pieces of a vocabulary, all different: one that is there already is followed by its id."""
    ids: dict[str, int] = {}
    for i, piece in enumerate(pieces):
        while piece in ids:
            piece = f"{piece}\N{SYMBOL FOR UNIT SEPARATOR}{i}"
        ids[piece] = i
    return list(ids)


def save(variables: Variables, vocabularies: Sequence[Sequence[str]], quantization: str, folder: Path) -> None:
    """Write model.bin, config.json and vocabularies.

    Args:
        vocabularies: those of source and target; of a decoder-only model, its own.
        quantization: one of QUANTIZATIONS.
    """
    load_ctranslate2()
    from ctranslate2.specs import model_spec, transformer_spec

    class Node(model_spec.LayerSpec):
        """Variables under one name."""

        def __init__(self, tree: Mapping[str, Any]):
            for name, value in tree.items():
                setattr(self, name, Node(value) if isinstance(value, dict) else value)
            if "weight" in tree:  # of a matrix or an embedding: these are quantized
                self.weight_scale = model_spec.OPTIONAL

    class BFloat16(model_spec.NumpyVariable):
        """float32 as bfloat16, rounded by Paddle: CTranslate2's own needs PyTorch."""

        def __init__(self, array: np.ndarray):
            super().__init__(paddle.to_tensor(array).astype("bfloat16").numpy())  # uint16

        @property
        def dtype(self) -> str:
            return "bfloat16"

    def rounded(spec, name: str, value: Any) -> None:
        if isinstance(value, model_spec.Variable) and value.dtype == "float32" and not value.is_scalar():
            setattr(spec, name.rpartition("/")[2], BFloat16(value.numpy()))

    tree = _tree(variables.arrays)
    both = len(vocabularies) == 2
    base: Any = model_spec.SequenceToSequenceModelSpec if both else model_spec.LanguageModelSpec

    class Spec(base):
        """A whole model. Its name and revision say how CTranslate2 reads it."""

        name = "TransformerSpec" if both else "TransformerDecoderSpec"
        revision = 7 if both else 8

        def __init__(self):
            super().__init__()
            for part, children in tree.items():
                setattr(self, part, Node(children))

        def get_default_config(self):
            kind = transformer_spec.TransformerConfig if both else transformer_spec.TransformerDecoderModelConfig
            return kind(layer_norm_epsilon=variables.eps)

        def get_source_vocabulary_size(self):
            return [len(vocabularies[0])]

        def get_target_vocabulary_size(self):
            return len(vocabularies[1])

        def get_vocabulary_size(self):
            return len(vocabularies[0])

    spec = Spec()
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = SPECIAL[UNKNOWN], SPECIAL[BOS], SPECIAL[EOS]
    if both:
        spec.config.decoder_start_token, spec.config.add_source_eos = SPECIAL[BOS], variables.source_end
        spec.register_source_vocabulary(tokens(vocabularies[0]))
        spec.register_target_vocabulary(tokens(vocabularies[1]))
    else:
        spec.register_vocabulary(tokens(vocabularies[0]))
    spec.validate()
    spec.optimize("float32" if quantization == "bfloat16" else quantization)
    if quantization == "bfloat16":
        model_spec.visit_spec(spec, rounded)
    spec.save(str(folder))


def _tree(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """encoder/layer_0/ffn/linear_0/weight → nested mappings."""
    tree: dict[str, Any] = {}
    for path, value in arrays.items():
        *scopes, name = path.split("/")
        node = tree
        for scope in scopes:
            node = node.setdefault(scope, {})
        node[name] = value
    return tree
