"""Constructors of ordinary layers: what the kit gives them under the names that authors use."""

from dataclasses import dataclass

import pytest
from paddle import nn

from paddle_tfm.testing.adapters.arguments import constructor, without_dropout, without_width

VALUES = {"d_model": 16, "d_ff": 24, "dropout": 0.1, "num_heads": 2}


@dataclass
class ModelArgs:
    dim: int = 4096
    n_heads: int = 32
    eps: float = 1e-5


class OfDataclass(nn.Layer):
    def __init__(self, args: ModelArgs):
        super().__init__()


class OfConfig(nn.Layer):
    """As nanoGPT's."""

    def __init__(self, config):
        super().__init__()
        self.widths = [config.n_embd, getattr(config, "bias", True), config["n_head"], config.dropout]


def test_a_config_object_holds_what_the_kit_has_under_its_author_s_names():
    (config,) = constructor(OfDataclass, VALUES, {"eps": 1e-3}).values()
    assert config == ModelArgs(dim=16, n_heads=2, eps=1e-3)
    layer = OfConfig(**constructor(OfConfig, VALUES, {}))
    assert layer.widths == [16, True, 2, 0.1]
    assert OfConfig(**constructor(OfConfig, VALUES, {"bias": False})).widths[1] is False


def test_what_a_config_lacks_is_named():
    config = constructor(OfConfig, VALUES, {})["config"]
    with pytest.raises(AttributeError, match=r"reads `expansion` of its config, .* --option expansion=…"):
        _ = config.expansion


class Named(nn.Layer):
    def __init__(self, dim, hidden_dim, dropout):
        super().__init__()


class Alone(nn.Layer):
    def __init__(self, hidden_size):
        super().__init__()


def test_what_a_constructor_does_not_take_is_not_looked_for():
    assert (without_dropout(Named), without_width(Named)) == ({}, {})
    assert without_dropout(OfConfig) == {} and without_dropout(OfDataclass)
    assert without_dropout(Alone) and without_width(Alone) and without_width(OfConfig)
