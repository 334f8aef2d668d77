"""The position variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_positions():
    return {
        "none": "paddle_tfm_plugins.position.none:NoPosition",
        "sinusoidal": "paddle_tfm_plugins.position.sinusoidal:Sinusoidal",
        "scaled_sinusoidal": "paddle_tfm_plugins.position.scaled_sinusoidal:ScaledSinusoidal",
        "learned": "paddle_tfm_plugins.position.learned:Learned",
        "rotary": "paddle_tfm_plugins.position.rotary:Rotary",
        "yarn": "paddle_tfm_plugins.position.yarn:YaRN",
        "pope": "paddle_tfm_plugins.position.pope:PoPE",
        "xpos": "paddle_tfm_plugins.position.xpos:XPos",
        "alibi": "paddle_tfm_plugins.position.alibi:ALiBi",
        "grape_a": "paddle_tfm_plugins.position.grape_a:GRAPEAdditive",
        "t5": "paddle_tfm_plugins.position.t5:T5",
        "kerple": "paddle_tfm_plugins.position.kerple:Kerple",
        "fire": "paddle_tfm_plugins.position.fire:FIRE",
        "shaw": "paddle_tfm_plugins.position.shaw:Shaw",
        "transformer_xl": "paddle_tfm_plugins.position.transformer_xl:TransformerXL",
        "cope": "paddle_tfm_plugins.position.cope:CoPE",
        "nope_hybrid": "paddle_tfm_plugins.position.nope_hybrid:NoPEHybrid",
        "randomized": "paddle_tfm_plugins.position.randomized:Randomized",
        "chain": "paddle_tfm_plugins.position.chain:Chain",
    }
