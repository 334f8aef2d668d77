"""The search variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_searches():
    return {
        "greedy": "paddle_tfm_plugins.search.greedy:Greedy",
        "beam": "paddle_tfm_plugins.search.beam:Beam",
        "sampling": "paddle_tfm_plugins.search.sampling:Sampling",
    }
