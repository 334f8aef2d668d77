"""The feed-forward variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_feed_forwards():
    return {
        "relu": "paddle_tfm_plugins.feed_forward.relu:ReLU",
        "gelu": "paddle_tfm_plugins.feed_forward.gelu:GELU",
        "swish": "paddle_tfm_plugins.feed_forward.swish:Swish",
        "relu_squared": "paddle_tfm_plugins.feed_forward.relu_squared:ReLUSquared",
        "swiglu": "paddle_tfm_plugins.feed_forward.swiglu:SwiGLU",
        "geglu": "paddle_tfm_plugins.feed_forward.geglu:GEGLU",
        "reglu": "paddle_tfm_plugins.feed_forward.reglu:ReGLU",
        "mixture_of_experts": "paddle_tfm_plugins.feed_forward.mixture_of_experts:MixtureOfExperts",
        "deepseek_moe": "paddle_tfm_plugins.feed_forward.deepseek_moe:DeepSeekMoE",
        "canon": "paddle_tfm_plugins.feed_forward.canon:Canon",
        "token_shift": "paddle_tfm_plugins.feed_forward.token_shift:TokenShift",
    }
