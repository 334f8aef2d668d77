"""The placement variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_placements():
    return {
        "pre": "paddle_tfm_plugins.placement.pre:Pre",
        "post": "paddle_tfm_plugins.placement.post:Post",
        "res_post": "paddle_tfm_plugins.placement.res_post:ResPost",
        "sandwich": "paddle_tfm_plugins.placement.sandwich:Sandwich",
        "peri": "paddle_tfm_plugins.placement.peri:Peri",
        "parallel": "paddle_tfm_plugins.placement.parallel:Parallel",
        "hybrid_norm": "paddle_tfm_plugins.placement.hybrid_norm:HybridNorm",
        "mix_ln": "paddle_tfm_plugins.placement.mix_ln:MixLN",
        "residual_dual": "paddle_tfm_plugins.placement.residual_dual:ResidualDual",
        "hyper_connections": "paddle_tfm_plugins.placement.hyper_connections:HyperConnections",
        "mhc": "paddle_tfm_plugins.placement.mhc:ManifoldHyperConnections",
        "attention_residuals": "paddle_tfm_plugins.placement.attention_residuals:AttentionResiduals",
        "sub_ln": "paddle_tfm_plugins.placement.sub_ln:SubLN",
        "admin": "paddle_tfm_plugins.placement.admin:Admin",
        "deepnorm": "paddle_tfm_plugins.placement.deepnorm:DeepNorm",
        "keel": "paddle_tfm_plugins.placement.keel:Keel",
        "rezero": "paddle_tfm_plugins.placement.rezero:ReZero",
        "steps": "paddle_tfm_plugins.placement.steps:Steps",
        "layer_scale": "paddle_tfm_plugins.placement.layer_scale:LayerScale",
    }
