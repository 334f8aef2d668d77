"""The head variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_heads():
    return {
        "linear": "paddle_tfm_plugins.head.linear:LinearHead",
        "tied": "paddle_tfm_plugins.head.tied:TiedHead",
        "pointer": "paddle_tfm_plugins.head.pointer:PointerGenerator",
        "pointer_coverage": "paddle_tfm_plugins.head.pointer_coverage:PointerCoverage",
        "pointer_network": "paddle_tfm_plugins.head.pointer_network:PointerNetwork",
        "fix": "paddle_tfm_plugins.head.fix:FixNorm",
        "adaptive": "paddle_tfm_plugins.head.adaptive:AdaptiveSoftmax",
    }
