"""Kernels for a CPU and for a GPU: formulas of layers and ops, faster, the same numbers."""

from paddle_tfm.hookspecs import hookimpl

ROOM = "paddle_tfm_plugins.kernel"


@hookimpl
def register_kernels():
    return {
        "add_outer": f"{ROOM}.rows:AddOuterByProduct",
        "argmax": f"{ROOM}.rows:ArgmaxByNumPy",
        "attend": f"{ROOM}.attend:AttendAsOne",
        "attend_gpu": f"{ROOM}.gpu:AttendByPaddle",
        "dropped": f"{ROOM}.dropped:DroppedInOnePass",
        "layer_norm": f"{ROOM}.layer_norm:LayerNormByRows",
        "linear": f"{ROOM}.linear:LinearByProducts",
        "log_softmax": f"{ROOM}.softmax:LogSoftmaxInPlace",
        "log_sum_exp": f"{ROOM}.softmax:LogSumExpByProduct",
        "lstm": f"{ROOM}.lstm:LSTMByPaddle",
        "mean_over_channels": f"{ROOM}.rows:MeanByProduct",
        "multi_head": f"{ROOM}.multi_head:MultiHeadAsOne",
        "outer": f"{ROOM}.rows:OuterByProduct",
        "rms_gpu": f"{ROOM}.gpu:RMSNormByPaddle",
        "relu": f"{ROOM}.relu:ReLUAsOne",
        "softmax_nll": f"{ROOM}.softmax:SoftmaxNLL",
        "sum_over_rows": f"{ROOM}.rows:SumByProduct",
        "top_k": f"{ROOM}.rows:TopKByBlocks",
    }
