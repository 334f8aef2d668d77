"""The attention variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_attentions():
    return {
        "multihead": "paddle_tfm_plugins.attention.multihead:MultiHead",
        "lora": "paddle_tfm_plugins.attention.lora:LoRA",
        "single_head": "paddle_tfm_plugins.attention.single_head:SingleHead",
        "grouped_query": "paddle_tfm_plugins.attention.grouped_query:GroupedQuery",
        "local": "paddle_tfm_plugins.attention.local:Local",
        "talking_heads": "paddle_tfm_plugins.attention.talking_heads:TalkingHeads",
        "cosine": "paddle_tfm_plugins.attention.cosine:Cosine",
        "qk_norm": "paddle_tfm_plugins.attention.qk_norm:QKNorm",
        "gated": "paddle_tfm_plugins.attention.gated:Gated",
        "differential": "paddle_tfm_plugins.attention.differential:Differential",
        "raw_keys": "paddle_tfm_plugins.attention.raw_keys:RawKeys",
        "full_width_heads": "paddle_tfm_plugins.attention.full_width_heads:FullWidthHeads",
        "sinks": "paddle_tfm_plugins.attention.sinks:Sinks",
        "sigmoid": "paddle_tfm_plugins.attention.sigmoid:SigmoidAttention",
        "exclusive": "paddle_tfm_plugins.attention.exclusive:Exclusive",
        "value_residual": "paddle_tfm_plugins.attention.value_residual:ValueResidual",
        "scalable_softmax": "paddle_tfm_plugins.attention.scalable_softmax:ScalableSoftmax",
        "interleaved": "paddle_tfm_plugins.attention.interleaved:Interleaved",
        "merged": "paddle_tfm_plugins.attention.merged:Merged",
        "canon": "paddle_tfm_plugins.attention.canon:Canon",
        "mla": "paddle_tfm_plugins.attention.mla:MultiHeadLatent",
        "forgetting": "paddle_tfm_plugins.attention.forgetting:Forgetting",
        "gated_deltanet": "paddle_tfm_plugins.attention.gated_deltanet:GatedDeltaNet",
        "kimi_delta": "paddle_tfm_plugins.attention.kimi_delta:KimiDelta",
        "linear": "paddle_tfm_plugins.attention.linear:LinearAttention",
        "synthesizer": "paddle_tfm_plugins.attention.synthesizer:Synthesizer",
        "recurrent": "paddle_tfm_plugins.attention.recurrent:Recurrent",
        "convolution": "paddle_tfm_plugins.attention.convolution:Convolution",
    }
