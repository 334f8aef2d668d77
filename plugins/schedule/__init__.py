"""The schedule variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_schedules():
    return {
        "constant": "paddle_tfm_plugins.schedule.constant:Constant",
        "noam": "paddle_tfm_plugins.schedule.noam:Noam",
        "inverse_sqrt": "paddle_tfm_plugins.schedule.inverse_sqrt:InverseSqrt",
        "cosine": "paddle_tfm_plugins.schedule.cosine:Cosine",
        "wsd": "paddle_tfm_plugins.schedule.wsd:WSD",
    }
