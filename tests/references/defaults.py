"""What every shipped component is where a recipe says nothing: the default of each option and the value that each
trained number starts from, with the place where these numbers stand. `test_defaults.py` holds the classes to it.

A number that is the paper's is held to the paper. Where ours is another one, the source says the paper's and why ours
differs. What a class leaves to the recipe's initializer (matrices and tables without the mark `keep_initial`) and
biases that start at zero are not listed.
"""

from dataclasses import dataclass, field

import numpy as np

D_MODEL = 64  # what starting values are looked at with
HEADS = 4


@dataclass(frozen=True)
class Held:
    """source: where the numbers stand. options: option → default. starts: parameter → where it starts."""

    source: str
    options: dict = field(default_factory=dict)
    starts: dict = field(default_factory=dict)


def held(source, /, *, starts=None, **options):
    return Held(source, options, starts or {})


@dataclass(frozen=True)
class Normal:
    """Drawn from N(0, deviation²)."""

    deviation: float


@dataclass(frozen=True)
class Uniform:
    """Drawn evenly from low to high, once `of` is applied to what is trained."""

    low: float
    high: float
    of: object = np.asarray


def softplus(x):
    return np.log1p(np.exp(x))


def log_softplus(x):
    return np.log(softplus(x))


IDENTITY = "the identity matrix"
MULTIHEAD = {"bias": True, "head_dim": None}
TWO_LAYERS = {"bias": True, "inner_dropout": 0.0}
GAINS = {"weight": 1.0}
BOUNDED = {
    "max_ratio": 2.0,
    "max_extra": 20,
    "min_length": 0,
    "max_length": None,
    "no_repeat_ngram": 0,
    "unknown": True,
}
TRANSFORMER_ADAM = {"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9}

ATTENTION = {
    "multihead": held(
        "arXiv:1706.03762, section 3.2.2: D = d_model / H; biases as in tensor2tensor's dense", **MULTIHEAD
    ),
    "raw_keys": held(
        "arXiv:1804.00344, marian-dev/src/models/transformer.h: eps 1e-6",
        starts={"query_norm.weight": 1.0},
        eps=1e-6,
        first=False,
        **MULTIHEAD,
    ),
    "single_head": held("arXiv:1706.03762, equation 1: no bias, nothing else to choose", head_size=None, bias=False),
    "grouped_query": held(
        "arXiv:1911.02150: one head of keys and values; arXiv:2305.13245 has 8", kv_heads=1, bias=True
    ),
    "local": held("ours, for short texts: arXiv:2004.05150 has 256 on each side (w = 512)", window=16, **MULTIHEAD),
    "talking_heads": held(
        "arXiv:2003.02436 leaves the mixers' start open; ours: as multihead",
        starts={"mix_scores": IDENTITY, "mix_weights": IDENTITY},
        **MULTIHEAD,
    ),
    "lora": held(
        "arXiv:2106.09685, table 6 and section 4.2: W_q and W_v, r = 8; alpha = r, as huggingface/peft's LoraConfig",
        starts={"query.up": 0.0, "value.up": 0.0},
        rank=8,
        alpha=8.0,
        projections=["query", "value"],
        **MULTIHEAD,
    ),
    "cosine": held(
        "arXiv:2010.04245, section 3: g starts at log2(L² − L), L the texts' 97.5th percentile; ours: L = 32",
        starts={"gain": np.log2(32**2 - 32)},
        length=32,
        **MULTIHEAD,
    ),
    "gated": held("qiuzh20/gated_attention: elementwise, no biases", bias=False, head_dim=None, per_head=False),
    "differential": held(
        "arXiv:2410.05258, microsoft/unilm Diff-Transformer/multihead_diffattn.py: λ's vectors from N(0, 0.1²)",
        starts={"head_norm.weight": 1.0} | {f"lambda_{name}": Normal(0.1) for name in ("q1", "k1", "q2", "k2")},
        bias=False,
    ),
    "full_width_heads": held("ours, as multihead", bias=True),
    "linear": held("idiap/fast-transformers, AttentionLayer: four projections with biases", bias=True),
    "synthesizer": held(
        "arXiv:2005.00743, section 3: the dense one first; the width of its hidden layer is ours",
        mode="dense",
        hidden=None,
        rank=None,
        bias=True,
    ),
    "recurrent": held(
        "forget bias 1: Jozefowicz et al. 2015, section 4",
        starts={
            "ahead.bias": np.repeat([0.0, 1.0, 0.0, 0.0], D_MODEL),
        },
        hidden=None,
        forget_bias=1.0,
    ),
    "convolution": held(
        "ours, for shallow models: arXiv:1901.10430, section 5, has 3, 7, 15 and then 31",
        kernel=7,
        dynamic=False,
        bias=True,
    ),
    "qk_norm": held(
        "arXiv:2505.09388 (Qwen 3): RMS, for each head",
        starts={"query_norm.weight": 1.0, "key_norm.weight": 1.0},
        norm="rms",
        per_head=True,
        **MULTIHEAD,
    ),
    "sinks": held(
        "openai/gpt-oss learns them; their start at 0 is ours", starts={"sink": 0.0}, learned=True, **MULTIHEAD
    ),
    "exclusive": held("arXiv:2603.09078: nothing to choose beyond multihead", **MULTIHEAD),
    "value_residual": held(
        "arXiv:2410.17897 and Zcchill/Value-Residual-Learning: 0.5 and 0.5, fixed",
        first=0.5,
        own=0.5,
        learned=False,
        **MULTIHEAD,
    ),
    "canon": held(
        "arXiv:2512.17351: a kernel of 4; its start is nn.Conv1d's, as facebookresearch/PhysicsLM4 leaves it",
        starts={"canon.weight": Uniform(-0.5, 0.5)},
        kernel=4,
        **MULTIHEAD,
    ),
    "merged": held("arXiv:2512.14856; its heads are grouped and normalized, ours as multihead", **MULTIHEAD),
    "scalable_softmax": held(
        "arXiv:2501.19399: s starts at 0.168, 1 / the mean of log n over 1,024 tokens",
        starts={"scale": 0.168},
        scale=0.168,
        **MULTIHEAD,
    ),
    "sigmoid": held("arXiv:2409.04431, section 3: b = −log n, n the number of keys", length=None, **MULTIHEAD),
    "interleaved": held(
        "arXiv:2408.00118: every second layer; its window is 4,096, ours for short texts",
        every=2,
        window=16,
        **MULTIHEAD,
    ),
    "mla": held(
        "arXiv:2405.04434, DeepSeek-V2-Lite: queries from x; widths follow from D",
        starts={"latent_norm.weight": 1.0},
        head_dim=None,
        latent=None,
        rotary_dim=None,
        query_latent=None,
    ),
    "forgetting": held("zhixuan-lin/forgetting-transformer: no bias but the gate's", bias=False, head_dim=None),
    "gated_deltanet": held(
        "fla-org/flash-linear-attention, layers/gated_deltanet.py: values twice as wide, kernels of 4, A from [0, 16), "
        "time steps from [0.001, 0.1]",
        starts={
            "kernel": Uniform(-0.5, 0.5),
            "log_rate": Uniform(0.0, 16.0, np.exp),
            "norm.weight": 1.0,
            "fade_bias": Uniform(np.log(0.001), np.log(0.1), log_softplus),
        },
        head_dim=None,
        expand=2,
        kernel=4,
    ),
    "kimi_delta": held(
        "fla-org/flash-linear-attention, layers/kda.py: values as wide as keys, A from [1, 16), a bias of the gate",
        starts={
            "kernel": Uniform(-0.5, 0.5),
            "log_rate": Uniform(1.0, 16.0, np.exp),
            "norm.weight": 1.0,
            "fade_bias": Uniform(np.log(0.001), np.log(0.1), log_softplus),
        },
        head_dim=None,
        expand=1,
        kernel=4,
    ),
}

NORM = {
    "layer": held("arXiv:1607.06450; 1e-5 is PyTorch's and fairseq's", starts=GAINS, eps=1e-5, bias=True),
    "layer_std": held("The Annotated Transformer 2018, LayerNorm(features, eps=1e-6)", starts=GAINS, eps=1e-6),
    "batch": held(
        "arXiv:1502.03167; the constants are PyTorch's BatchNorm1d",
        starts=GAINS | {"running_mean": 0.0, "running_variance": 1.0},
        eps=1e-5,
        momentum=0.1,
        population=0,
    ),
    "batch_per_position": held(
        "as batch; arXiv:1603.09025",
        starts=GAINS | {"running_mean": 0.0, "running_variance": 1.0},
        eps=1e-5,
        momentum=0.1,
        population=0,
    ),
    "rms": held("arXiv:1910.07467; 1e-6 is T5's and LLaMA's (arXiv:2302.13971)", starts=GAINS, eps=1e-6),
    "power": held(
        "arXiv:2003.07845, sIncerass/powernorm mask_powernorm.py: alpha_fwd = alpha_bkw = 0.9, eps 1e-5; "
        "warmup_iters 10,000 there, ours 200 for short runs",
        starts=GAINS | {"running_square": 1.0, "running_gradient": 0.0, "passes": 0.0},
        warmup=200,
        eps=1e-5,
        momentum=0.1,
        gradient_momentum=0.1,
        population=0,
    ),
    "group": held(
        "arXiv:1803.08494 has 32 groups of images' channels; ours 4, for narrow models",
        starts=GAINS,
        groups=4,
        eps=1e-5,
    ),
    "scale": held(
        "arXiv:1910.05895, section 2.2 and tnq177/transformers_without_tears: g starts at sqrt(d), eps 1e-5",
        starts={"weight": D_MODEL**0.5},
        eps=1e-5,
    ),
    "dyt": held("arXiv:2503.10622, section 4: α₀ = 0.5", starts=GAINS | {"alpha": 0.5}, alpha=0.5),
    "none": held("ours: nothing to choose"),
    "seednorm": held(
        "arXiv:2510.22777: α from 1, β from 0, so that it starts as rms; eps as in rms",
        starts=GAINS | {"alpha": 1.0, "beta": 0.0},
        eps=1e-6,
    ),
    "gated": held("arXiv:2601.22966: a rank of 16; eps as in rms", starts=GAINS, rank=16, eps=1e-6),
    "derf": held("arXiv:2512.10938: α = 0.5, s = 0", starts=GAINS | {"alpha": 0.5, "shift": 0.0}, alpha=0.5, shift=0.0),
    "regularized_batch": held(
        "arXiv:2210.05153, the authors' for pre-norm on IWSLT 2014",
        starts=GAINS | {"running_mean": 0.0, "running_variance": 1.0},
        mean_weight=0.1,
        variance_weight=0.01,
        momentum=0.05,
        eps=1e-5,
        population=0,
    ),
}

PLACEMENT = {
    "pre": held("arXiv:2002.04745: nothing to choose"),
    "post": held("arXiv:1706.03762: nothing to choose"),
    "res_post": held("arXiv:2111.09883: nothing to choose"),
    "sandwich": held("arXiv:2105.13290: nothing to choose"),
    "steps": held(
        "arXiv:1804.00344: Marian's --transformer-postprocess dan",
        before="",
        after="dan",
        self_before=None,
        embedding="",
        top="",
    ),
    "peri": held("arXiv:2502.02732, section 3: the norm of the embeddings is its option"),
    "parallel": held("arXiv:2204.02311, section 2: nothing to choose"),
    "sub_ln": held("arXiv:2210.06423; microsoft/torchscale: not in cross-attention", gain=True),
    "admin": held("arXiv:2004.08249: ω is 1 until it is profiled", starts={"omegas.*": 1.0}),
    "deepnorm": held("arXiv:2203.00555, section 4: with the initial scale", gain=True),
    "rezero": held("arXiv:2003.04887 and majumderb/rezero: α = 0, one for a layer", starts={"gate": 0.0}),
    "keel": held("arXiv:2601.19895: α = L, the number of sublayers", alpha=None),
    "layer_scale": held("arXiv:2103.17239, section 2: 0.1 up to 18 layers", starts={"scales.*": 0.1}, initial=None),
    "hybrid_norm": held("arXiv:2503.04598: HybridNorm; its HybridNorm* has a first layer of its own", pre_first=False),
    "mix_ln": held("arXiv:2412.13795: a quarter", share=0.25),
    "residual_dual": held("arXiv:2304.14802: nothing to choose"),
    "mhc": held(
        "arXiv:2512.24880, section 4: n = 4, 20 iterations, α from 0.01; the rest as FFTYYY/mhc-lite hyper_conn/mhc.py",
        starts={
            "reads.*": 2 * np.eye(4)[:3] - 1,
            "writes.*": 2 * np.eye(4)[:3] - 1,
            "mixes.*": 8 * np.eye(4) - 8,
            "maps.*": 0.0,
            "scales.*": 0.01,
        },
        streams=4,
        iterations=20,
    ),
    "attention_residuals": held(
        "arXiv:2603.15031: each sublayer's output apart, queries from 0", starts={"queries.*": 0.0}, block=1
    ),
    "hyper_connections": held(
        "arXiv:2409.19606, section 2.3 and algorithm 2: reads stream k mod n, mixes by the identity; dynamic from 0.01",
        starts={
            "alphas.*": np.stack([np.c_[np.eye(4)[k], np.eye(4)] for k in range(3)]),
            "betas.*": 1.0,
            "maps.*": 0.0,
            "alpha_scales.*": 0.01,
            "beta_scales.*": 0.01,
        },
        streams=4,
        dynamic=True,
    ),
}

POSITION = {
    "none": held("ours: nothing to choose"),
    "sinusoidal": held("arXiv:1706.03762, section 3.5: 10000", base=10000.0, halves=False),
    "scaled_sinusoidal": held(
        "arXiv:1809.08895, section 3.2: α starts at 1", starts={"alpha": 1.0}, initial=1.0, base=10000.0
    ),
    "learned": held(
        "fairseq/models/fconv.py of arXiv:1705.03122: N(0, 0.1²)", starts={"weight": Normal(0.1)}, initial=0.1
    ),
    "rotary": held("arXiv:2104.09864, section 3.2.2: 10000, all channels", base=10000.0, fraction=1.0),
    "xpos": held(
        "arXiv:2212.10554, section 2.2: γ = 0.4; microsoft/torchscale xpos.py: scale base 512",
        base=10000.0,
        scale_base=512.0,
        gamma=0.4,
    ),
    "pope": held(
        "arXiv:2509.10534: base 10000, and δ starts at 0 for length generalization, in lucidrains/x-transformers always",
        starts={"delta": 0.0},
        base=10000.0,
        spread=0.0,
    ),
    "alibi": held("arXiv:2108.12409, section 3: the slopes follow from the number of heads"),
    "grape_a": held(
        "model-architectures/GRAPE, llama-mha-grape-a-querykeygated.py: softplus(a) = 1, vectors from N(0, 1 / D)",
        starts={
            "rate": np.log(np.e - 1),
            "of_query": Normal((D_MODEL // HEADS) ** -0.5),
            "of_key": Normal((D_MODEL // HEADS) ** -0.5),
        },
    ),
    "t5": held("arXiv:1910.10683, section 2.1: 32 embeddings, up to 128", buckets=32, max_distance=128),
    "kerple": held(
        "chijames/KERPLE: r1 from [0.01, 2] and r2 from [0.01, 1], drawn evenly (arXiv:2205.09921)",
        starts={"raw1": Uniform(0.01, 2.0, softplus), "raw2": Uniform(0.01, 1.0, softplus)},
        kernel="log",
    ),
    "fire": held(
        "arXiv:2310.04418, appendix: width 32, c = 0.1, L = 512, trained; biases as PyTorch's Linear(1, 32)",
        starts={"c": 0.1, "factor": 1.0, "inner.bias": Uniform(-1.0, 1.0)},
        width=32,
        threshold=512.0,
    ),
    "shaw": held("arXiv:1803.02155, section 4.1: k = 16 in the base model, both terms", clip=16, with_values=True),
    "transformer_xl": held("arXiv:1901.02860, R as in arXiv:1706.03762", base=10000.0),
    "randomized": held(
        "ours: the range is the task's, which arXiv:2305.16843 sets to 2048",
        longest=None,
        stride=None,
    ),
    "chain": held("ours: nothing to choose"),
    "yarn": held(
        "arXiv:2309.00071, section 3.2: α = 1, β = 32 turns, s = 16",
        factor=16.0,
        trained_length=None,
        base=10000.0,
        fast=32.0,
        slow=1.0,
    ),
    "cope": held("arXiv:2405.18719, listing: the table starts at 0", starts={"table": 0.0}, positions=None),
    "nope_hybrid": held("arXiv:2501.18795: no positions in every 4th layer", encoding=None, every=4),
}

FEED_FORWARD = {
    "canon": held(
        "arXiv:2512.17351: a kernel of 4; its start is nn.Conv1d's, as facebookresearch/PhysicsLM4 leaves it",
        starts={"canon.weight": Uniform(-0.5, 0.5)},
        kernel=4,
    ),
    "token_shift": held(
        "BlinkDL/RWKV-LM, RWKV-v4: both μ start at (c / C)^(1 − l / L), here of layer 0",
        starts={"mix_receptance": np.arange(D_MODEL) / D_MODEL, "mix_key": np.arange(D_MODEL) / D_MODEL},
    ),
    "relu": held("arXiv:1706.03762, equation 2", **TWO_LAYERS),
    "gelu": held("arXiv:1606.08415, as relu", **TWO_LAYERS),
    "swish": held("arXiv:1710.05941: β = 1, as relu", beta=1.0, **TWO_LAYERS),
    "relu_squared": held("arXiv:2109.08668, as relu", **TWO_LAYERS),
    "swiglu": held(
        "arXiv:2002.05202 has no biases and 2/3 of d_ff; ours as relu", equal_parameters=False, **TWO_LAYERS
    ),
    "geglu": held("arXiv:2002.05202 has no biases and 2/3 of d_ff; ours as relu", equal_parameters=False, **TWO_LAYERS),
    "reglu": held("arXiv:2002.05202 has no biases and 2/3 of d_ff; ours as relu", equal_parameters=False, **TWO_LAYERS),
    "mixture_of_experts": held(
        "α = 0.01: arXiv:2101.03961, section 2.2; two experts a token: arXiv:2006.16668; of four, ours",
        experts=4,
        top_k=2,
        balance_weight=0.01,
        **TWO_LAYERS,
    ),
    "deepseek_moe": held(
        "arXiv:2412.19437, section 4.2: γ = 0.001, α = 0.0001, one shared expert; of 256 experts 8, ours of 8 two",
        starts={"balance": 0.0},
        experts=8,
        top_k=2,
        shared=1,
        bias_rate=0.001,
        sequence_balance_weight=0.0001,
        bias=False,
        inner_dropout=0.0,
    ),
}

HEAD = {
    "linear": held("ours, as a linear layer of PyTorch", bias=True, cap=None),
    "tied": held("arXiv:1608.05859: no bias; no cap, for Gemma 2's 30 belongs to Gemma 2", bias=False, cap=None),
    "pointer_coverage": held("arXiv:1704.04368, equation 13: λ = 1, section 5", coverage_weight=1.0, bias=True),
    "pointer": held("arXiv:1704.04368, equation 4: with b", bias=True),
    "pointer_network": held("arXiv:1506.03134; what a position stands for is ours", output="word"),
    "fix": held(
        "arXiv:1910.05895, section 2.3: g starts at sqrt(d) and is trained",
        starts={"scale": D_MODEL**0.5},
        scale=None,
        learned=True,
        tied=False,
        bias=False,
    ),
    "adaptive": held(
        "arXiv:1609.04309, section 4: widths fall by 4; where it is cut is ours", cutoffs=None, factor=4, bias=False
    ),
}

INITIALIZER = {
    "xavier": held("Glorot and Bengio 2010, equation 16: nothing to choose"),
    "normal": held("arXiv:1810.04805 (BERT) and GPT-2: 0.02", std=0.02),
    "uniform": held("ours: fairseq's LSTMs have ±0.1", low=-0.1, high=0.1),
    "small": held("arXiv:1910.05895, section 2.1: nothing to choose"),
    "gpt2": held("openai/gpt-2, model.py: 0.02", std=0.02),
    "mup": held("arXiv:2203.03466, table 3; the width that was tuned is ours", base_width=256),
}

SCHEDULE = {
    "constant": held("arXiv:1412.6980, algorithm 1: 0.001", learning_rate=1e-3),
    "noam": held("arXiv:1706.03762, section 5.3: 4000 steps", factor=1.0, warmup=4000),
    "inverse_sqrt": held("warm-up as noam; the peak is ours", peak=1e-3, warmup=4000),
    "cosine": held(
        "ours; arXiv:1608.03983, equation 5, has η_min = 0 in its experiments", peak=1e-3, warmup=0, floor=0.0
    ),
    "wsd": held(
        "arXiv:2404.06395, section 4.3: a tenth does; the rest ours", peak=1e-3, warmup=0, decay=0.1, floor=0.0
    ),
}

OPTIMIZER = {
    "adam": held("arXiv:1706.03762, section 5.3", **TRANSFORMER_ADAM),
    "adamw": held("adam's; decay 0.01 as PyTorch's AdamW, of arXiv:1711.05101", **TRANSFORMER_ADAM, weight_decay=0.01),
    "radam": held("adam's, so that both compare; arXiv:1908.03265 has PyTorch's 0.999 and 1e-8", **TRANSFORMER_ADAM),
    "lion": held(
        "arXiv:2302.06675, algorithm 2: 0.9 and 0.99; the decay is the task's", beta1=0.9, beta2=0.99, weight_decay=0.0
    ),
    "adafactor": held(
        "arXiv:1804.04235, algorithm 6: ε1 = 1e-30, ε2 = 1e-3, d = 1, β̂2 = 1 − t^−0.8",
        decay=0.8,
        clip=1.0,
        relative=False,
        epsilon1=1e-30,
        epsilon2=1e-3,
    ),
    "muon": held(
        "KellerJordan/Muon, muon.py: momentum 0.95, nesterov, 5 steps; the rest by adamw as here",
        momentum=0.95,
        nesterov=True,
        iterations=5,
        **TRANSFORMER_ADAM,
        weight_decay=0.01,
    ),
    "normuon": held(
        "arXiv:2510.05491 and zichongli5/NorMuon, normuon.py: 0.95 and 0.95; the rest as muon",
        neuron_beta=0.95,
        momentum=0.95,
        nesterov=True,
        iterations=5,
        **TRANSFORMER_ADAM,
        weight_decay=0.01,
    ),
    "cautious_adamw": held("as adamw; arXiv:2510.12402 adds no option", **TRANSFORMER_ADAM, weight_decay=0.01),
    "sgd": held("arXiv:1212.0901: momentum 0.9", momentum=0.9, nesterov=False, weight_decay=0.0),
    "soap": held(
        "nikhilvyas/SOAP, soap.py: 0.95 and 0.95, 1e-8, decay 0.01, every 10th step, up to 10,000",
        beta1=0.95,
        beta2=0.95,
        preconditioner_beta=0.95,
        epsilon=1e-8,
        weight_decay=0.01,
        frequency=10,
        max_dim=10000,
    ),
    "schedule_free": held(
        "arXiv:2405.15682; facebookresearch/schedule_free, adamw_schedulefree.py",
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-8,
        weight_decay=0.0,
    ),
}

SEARCH = {
    "greedy": held("ours: bounds", **BOUNDED),
    "beam": held(
        "arXiv:1706.03762, section 6.1: α = 0.6, at most 4 there; 5 is fairseq's",
        size=5,
        alpha=0.6,
        penalty="gnmt",
        narrowing=False,
        **BOUNDED,
    ),
    "sampling": held(
        "ours: the model's own distribution", temperature=1.0, top_k=None, top_p=1.0, samples=1, seed=1, **BOUNDED
    ),
}

DEFAULTS = {
    "attention": ATTENTION,
    "norm": NORM,
    "placement": PLACEMENT,
    "position": POSITION,
    "feed_forward": FEED_FORWARD,
    "head": HEAD,
    "initializer": INITIALIZER,
    "schedule": SCHEDULE,
    "optimizer": OPTIMIZER,
    "search": SEARCH,
}
