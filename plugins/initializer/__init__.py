"""The initializer variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_initializers():
    return {
        "xavier": "paddle_tfm_plugins.initializer.xavier:Xavier",
        "normal": "paddle_tfm_plugins.initializer.normal:Normal",
        "uniform": "paddle_tfm_plugins.initializer.uniform:Uniform",
        "small": "paddle_tfm_plugins.initializer.small:Small",
        "gpt2": "paddle_tfm_plugins.initializer.gpt2:GPT2",
        "mup": "paddle_tfm_plugins.initializer.mup:MuP",
    }
