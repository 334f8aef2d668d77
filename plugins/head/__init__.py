"""The head variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_heads():
    return {
        "linear": "paddle_tfm_plugins.head.linear:LinearHead",
        "tied": "paddle_tfm_plugins.head.tied:TiedHead",
        "pointer": "paddle_tfm_plugins.head.pointer:PointerGenerator",
    }
