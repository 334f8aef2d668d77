"""The sizes of model that a benchmark knows by name."""

from __future__ import annotations

SIZES: dict[str, dict[str, int]] = {
    "tiny": {"d_model": 64, "num_heads": 4, "d_ff": 256, "encoder_layers": 2, "decoder_layers": 2},
    "small": {"d_model": 256, "num_heads": 4, "d_ff": 1024, "encoder_layers": 3, "decoder_layers": 3},
    "base": {"d_model": 512, "num_heads": 8, "d_ff": 2048, "encoder_layers": 6, "decoder_layers": 6},
}
