"""The optimizer variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_optimizers():
    return {
        "adam": "paddle_tfm_plugins.optimizer.adam:Adam",
        "adamw": "paddle_tfm_plugins.optimizer.adamw:AdamW",
    }
