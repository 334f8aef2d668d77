"""How CTranslate2 holds the components that ship with paddle_tfm. A class that is not here it does not hold."""

from paddle_tfm.hookspecs import hookimpl

RULES = {  # kind → module:class in its package → rule in the module of that kind here
    "attention": {
        "multihead:MultiHead": "multihead",
        "full_width_heads:FullWidthHeads": "multihead",
        "lora:LoRA": "lora",
        "grouped_query:GroupedQuery": "multihead",
        "single_head:SingleHead": "single_head",
        "local:Local": "local",
        "interleaved:Interleaved": "interleaved",
        "cosine:Cosine": "cosine",
        "qk_norm:QKNorm": "qk_norm",
    },
    "norm": {"layer:LayerNorm": "layer", "rms:RMSNorm": "rms", "scale:ScaleNorm": "scale"},
    "placement": {
        "pre:Pre": "pre",
        "post:Post": "post",
        "sandwich:Sandwich": "sandwich",
        "peri:Peri": "peri",
        "layer_scale:LayerScale": "layer_scale",
        "parallel:Parallel": "parallel",
        "steps:Steps": "steps",
    },
    "position": {
        "none:NoPosition": "none",
        "sinusoidal:Sinusoidal": "added",
        "scaled_sinusoidal:ScaledSinusoidal": "added",
        "learned:Learned": "added",
        "t5:T5": "by_distance",
        "kerple:Kerple": "by_distance",
        "alibi:ALiBi": "alibi",
        "rotary:Rotary": "rotary",
        "shaw:Shaw": "shaw",
        "chain:Chain": "chain",
        "nope_hybrid:NoPEHybrid": "nope_hybrid",
        "randomized:Randomized": "randomized",
    },
    "feed_forward": {
        "relu:ReLU": "two_layers",
        "gelu:GELU": "two_layers",
        "swish:Swish": "swish",
        "swiglu:SwiGLU": "gated",
        "geglu:GEGLU": "gated",
        "reglu:ReGLU": "gated",
    },
    "head": {"linear:LinearHead": "linear", "tied:TiedHead": "tied"},
    "search": {"greedy:Greedy": "greedy", "beam:Beam": "beam"},
}


@hookimpl
def register_ctranslate2_rules():
    package = "paddle_tfm_plugins"
    return {
        f"{package}.{kind}.{cls}": f"{package}.ctranslate2.{kind}:{rule}"
        for kind, rules in RULES.items()
        for cls, rule in rules.items()
    }
