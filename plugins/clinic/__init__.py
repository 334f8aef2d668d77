"""The clinic: components that are wrong on purpose, each with one classic mistake, for `findings/why-mine-fails`.

Each declares in `expected_failures` which checks of the conformance kit detect its mistake. Use them to learn what a
mistake looks like in a learning curve, and for nothing else.
"""

from paddle_tfm.hookspecs import WrongOnPurpose, hookimpl


@hookimpl
def register_attentions():
    return {
        "clinic_plain_list": WrongOnPurpose("paddle_tfm_plugins.clinic.plain_list:PlainList"),
        "clinic_chained_heads": WrongOnPurpose("paddle_tfm_plugins.clinic.chained_heads:ChainedHeads"),
        "clinic_no_scale": WrongOnPurpose("paddle_tfm_plugins.clinic.no_scale:NoScale"),
        "clinic_sees_the_future": WrongOnPurpose("paddle_tfm_plugins.clinic.sees_the_future:SeesTheFuture"),
    }


@hookimpl
def register_positions():
    return {
        "clinic_one_vector": WrongOnPurpose("paddle_tfm_plugins.clinic.one_vector:OneVector"),
        "clinic_plus_sqrt": WrongOnPurpose("paddle_tfm_plugins.clinic.plus_sqrt:PlusSqrt"),
    }


@hookimpl
def register_placements():
    return {
        "clinic_shared_norm": WrongOnPurpose("paddle_tfm_plugins.clinic.shared_norm:SharedNorm"),
        "clinic_no_residual": WrongOnPurpose("paddle_tfm_plugins.clinic.no_residual:NoResidual"),
        "clinic_no_final_norm": WrongOnPurpose("paddle_tfm_plugins.clinic.no_final_norm:NoFinalNorm"),
    }


@hookimpl
def register_norms():
    return {
        "clinic_batch_statistics": WrongOnPurpose("paddle_tfm_plugins.clinic.batch_statistics:BatchStatistics"),
        "clinic_counts_padding": WrongOnPurpose("paddle_tfm_plugins.clinic.counts_padding:CountsPadding"),
    }


@hookimpl
def register_heads():
    return {"clinic_padding_in_loss": WrongOnPurpose("paddle_tfm_plugins.clinic.padding_in_loss:PaddingInLoss")}
