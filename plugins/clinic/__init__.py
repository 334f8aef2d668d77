"""The clinic: components that are wrong on purpose, each with one classic mistake, for `findings/why-mine-fails`.

Every one declares by `expected_failures` which checks of the conformance kit find its mistake. Use them to learn what a mistake looks
like in a learning curve, and for nothing else.
"""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_attentions():
    return {
        "clinic_plain_list": "paddle_tfm_plugins.clinic.plain_list:PlainList",
        "clinic_chained_heads": "paddle_tfm_plugins.clinic.chained_heads:ChainedHeads",
        "clinic_no_scale": "paddle_tfm_plugins.clinic.no_scale:NoScale",
        "clinic_sees_the_future": "paddle_tfm_plugins.clinic.sees_the_future:SeesTheFuture",
    }


@hookimpl
def register_positions():
    return {
        "clinic_one_vector": "paddle_tfm_plugins.clinic.one_vector:OneVector",
        "clinic_plus_sqrt": "paddle_tfm_plugins.clinic.plus_sqrt:PlusSqrt",
    }


@hookimpl
def register_placements():
    return {
        "clinic_shared_norm": "paddle_tfm_plugins.clinic.shared_norm:SharedNorm",
        "clinic_no_residual": "paddle_tfm_plugins.clinic.no_residual:NoResidual",
        "clinic_no_final_norm": "paddle_tfm_plugins.clinic.no_final_norm:NoFinalNorm",
    }


@hookimpl
def register_norms():
    return {
        "clinic_batch_statistics": "paddle_tfm_plugins.clinic.batch_statistics:BatchStatistics",
        "clinic_counts_padding": "paddle_tfm_plugins.clinic.counts_padding:CountsPadding",
    }


@hookimpl
def register_heads():
    return {"clinic_padding_in_loss": "paddle_tfm_plugins.clinic.padding_in_loss:PaddingInLoss"}
