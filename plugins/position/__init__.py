"""The position variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_positions():
    return {
        "none": "paddle_tfm_plugins.position.none:NoPosition",
        "sinusoidal": "paddle_tfm_plugins.position.sinusoidal:Sinusoidal",
        "learned": "paddle_tfm_plugins.position.learned:Learned",
        "rotary": "paddle_tfm_plugins.position.rotary:Rotary",
        "alibi": "paddle_tfm_plugins.position.alibi:ALiBi",
        "shaw": "paddle_tfm_plugins.position.shaw:Shaw",
        "chain": "paddle_tfm_plugins.position.chain:Chain",
    }
