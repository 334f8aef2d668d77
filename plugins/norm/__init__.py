"""The norm variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_norms():
    return {
        "layer": "paddle_tfm_plugins.norm.layer:LayerNorm",
        "layer_std": "paddle_tfm_plugins.norm.layer_std:LayerStd",
        "batch": "paddle_tfm_plugins.norm.batch:BatchNorm",
        "regularized_batch": "paddle_tfm_plugins.norm.regularized_batch:RegularizedBatchNorm",
        "batch_per_position": "paddle_tfm_plugins.norm.batch_per_position:BatchNormPerPosition",
        "rms": "paddle_tfm_plugins.norm.rms:RMSNorm",
        "seednorm": "paddle_tfm_plugins.norm.seednorm:SeeDNorm",
        "gated": "paddle_tfm_plugins.norm.gated:GatedNorm",
        "power": "paddle_tfm_plugins.norm.power:PowerNorm",
        "group": "paddle_tfm_plugins.norm.group:GroupNorm",
        "scale": "paddle_tfm_plugins.norm.scale:ScaleNorm",
        "dyt": "paddle_tfm_plugins.norm.dyt:DynamicTanh",
        "derf": "paddle_tfm_plugins.norm.derf:DynamicErf",
        "none": "paddle_tfm_plugins.norm.none:NoNorm",
    }
