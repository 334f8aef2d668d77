"""The feed-forward variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_feed_forwards():
    return {
        "relu": "paddle_tfm_plugins.feed_forward.relu:ReLU",
        "gelu": "paddle_tfm_plugins.feed_forward.gelu:GELU",
        "swiglu": "paddle_tfm_plugins.feed_forward.swiglu:SwiGLU",
        "mixture_of_experts": "paddle_tfm_plugins.feed_forward.mixture_of_experts:MixtureOfExperts",
    }
