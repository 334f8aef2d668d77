"""The attention variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_attentions():
    return {
        "multihead": "paddle_tfm_plugins.attention.multihead:MultiHead",
        "single_head": "paddle_tfm_plugins.attention.single_head:SingleHead",
        "full_width_heads": "paddle_tfm_plugins.attention.full_width_heads:FullWidthHeads",
        "linear": "paddle_tfm_plugins.attention.linear:LinearAttention",
    }
