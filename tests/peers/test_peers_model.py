"""Whole models with the weights of PyTorch's, x-transformers' and Transformers' own: embeddings, positions, every layer
with its norms, cross-attention, masks, head."""

import math

import numpy as np
import paddle
import pytest
from peer_cases import SOURCE_VALID, VALID, as_they_are, copy, halves, single, transposed

from paddle_tfm import build_model
from paddle_tfm.protocols import Memory, Tap

pytestmark = pytest.mark.peers
torch = pytest.importorskip("torch")
C, H, FF, V, LONGEST = 16, 4, 24, 29, 32
SIZES = [f"model.d_model={C}", f"model.num_heads={H}", f"model.d_ff={FF}", f"model.max_length={LONGEST}"]
SHARED = ["model.share_embeddings=true", "vocabulary.shared=true"]
DECODER_ONLY = [
    "model.encoder_layers=0",
    "model.decoder_layers=2",
    "model.scale_embedding=false",
    "evaluate.metrics=[perplexity]",
    "evaluate.best=perplexity",
]
EPS = 2.0**-17  # 7.6e-6, and exact: Paddle's kernel of layer normalization takes it as a float32 in float64 too
NO_BIAS = "{name: multihead, bias: false}"


@pytest.fixture
def make(precision, rng):
    """A model of the base recipe with these overrides, whose vectors are random too; and its weights by name."""

    def build(*overrides):
        model = build_model("base", [*SIZES, *overrides], source_vocabulary=V, target_vocabulary=V)
        for parameter in model.parameters():
            if parameter.ndim < 2 or 1 in parameter.shape:
                values = rng.normal(0.5, 0.3, size=parameter.shape)
                parameter.set_value(precision.ours(values))
        model.eval()
        return model, {name: value.numpy() for name, value in model.named_parameters()}

    return build


def ids(rng, valid):
    return np.where(valid, rng.integers(4, V, size=valid.shape), 0)


@pytest.fixture
def texts(rng):
    """Source and target with padding: ids and validity of each."""
    return ids(rng, SOURCE_VALID), SOURCE_VALID, ids(rng, VALID), VALID


def log_probs(model, source, source_valid, target, valid):
    """[N, V] at the real tokens of the target."""
    memory = (
        model.encode(paddle.to_tensor(source), paddle.to_tensor(source_valid)) if model.encoder is not None else None
    )
    h, _ = model.decode(paddle.to_tensor(target), model.start(memory), paddle.to_tensor(valid))
    return model.head.log_probs(h, memory).numpy()[valid]


# ---------------------------------------------------------------------------------------------------- encoder-decoders


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_the_transformer_is_pytorchs(make, precision, agree, texts, placement, activation):
    """torch.nn.Transformer between torch.nn.Embedding and torch.nn.Linear, as `python -m benchmarks` builds it; beside it
    stand only the sinusoids. tests/benchmarks compares losses and gradients. A post-norm stack of PyTorch's ends with a
    second norm, which is taken away."""
    from benchmarks.libraries.pytorch import Peer, copy_weights, counterparts
    from benchmarks.workload import PeerSizes

    model, w = make(
        f"model.placement={placement}", f"model.feed_forward={activation}", f"model.norm={{name: layer, eps: {EPS}}}"
    )
    sizes = PeerSizes(V, V, C, H, FF, 2, 2, 0.0, 0.0, 0.0, LONGEST, 0, normalize_before=placement == "pre")
    theirs = Peer(sizes)
    theirs.transformer = torch.nn.Transformer(
        C, H, 2, 2, FF, 0.0, activation, layer_norm_eps=EPS, batch_first=True, norm_first=placement == "pre"
    )
    if placement == "post":
        theirs.transformer.encoder.norm = theirs.transformer.decoder.norm = None
    copy_weights(w, theirs, counterparts(theirs))
    theirs.table = precision.theirs(sinusoids())
    expected = theirs.eval()(*(torch.from_numpy(array) for array in texts)).log_softmax(-1)
    agree(log_probs(model, *texts), expected[VALID])


def sinusoids():
    """PE(p, 2i) = sin(p / 10000^(2i / C)), PE(p, 2i + 1) = cos of the same, in float64."""
    angle = np.arange(LONGEST)[:, None] / 10000.0 ** (np.arange(0, C, 2) / C)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(LONGEST, C)


@pytest.mark.parametrize("feed_forward, projection", [("relu", "relu"), ("swiglu", "gated-silu")])
@single
def test_a_model_of_our_parts_is_t5(make, agree, texts, feed_forward, projection):
    """Pre-norm by RMS, biases by distance, no biases of layers, one table for both embeddings and the head. T5 does
    not divide scores by sqrt(D): its queries' weights are ours divided by that. Nor does it multiply the table by
    sqrt(C) at the bottom; its first version divides by that on top, so that the last norm's gain is ours times that,
    its later ones do not."""
    peer = pytest.importorskip("transformers")
    model, w = make(
        *SHARED, "model.norm=rms", "model.position=t5", f"model.attention={NO_BIAS}", "model.scale_embedding=false",
        f"model.feed_forward={{name: {feed_forward}, bias: false}}", "model.head=tied",
    )  # fmt: skip
    theirs = peer.T5ForConditionalGeneration(
        peer.T5Config(
            vocab_size=V, d_model=C, d_kv=C // H, d_ff=FF, num_heads=H, num_layers=2, num_decoder_layers=2,
            pad_token_id=0, eos_token_id=2, decoder_start_token_id=1, dropout_rate=0.0, layer_norm_epsilon=1e-6,
            feed_forward_proj=projection, tie_word_embeddings=feed_forward == "relu",  # so it knows its first version
        )
    )  # fmt: skip
    table = w["target_embedding.weight"]
    tables = ("shared", "encoder.embed_tokens", "decoder.embed_tokens", "lm_head")
    arrays = {f"{name}.weight": table for name in tables}
    inner = {"wi_0": "gate", "wi_1": "up"} if feed_forward == "swiglu" else {"wi": "inner"}
    for stack in ("encoder", "decoder"):
        blocks = [("SelfAttention", "self_attention")] + [("EncDecAttention", "cross_attention")] * (stack == "decoder")
        arrays[f"{stack}.final_layer_norm.weight"] = w[f"{stack}.final_norm.weight"]
        arrays[f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = w[
            f"{stack}.encodings.0.table"
        ]
        for i in range(2):
            for k, (block, name) in enumerate(blocks):
                pairs = {"q": "query", "k": "key", "v": "value", "o": "output"}
                their, our = f"{stack}.block.{i}.layer.{k}.{block}", f"{stack}.layers.{i}.{name}"
                arrays |= transposed(w, {f"{their}.{a}": f"{our}.{b}" for a, b in pairs.items()})
                arrays[f"{their}.q.weight"] = arrays[f"{their}.q.weight"] / math.sqrt(C // H)
            their, our = f"{stack}.block.{i}.layer.{len(blocks)}.DenseReluDense", f"{stack}.layers.{i}.feed_forward"
            arrays |= transposed(w, {f"{their}.{a}": f"{our}.{b}" for a, b in (inner | {"wo": "output"}).items()})
            for k in range(len(blocks) + 1):
                arrays[f"{stack}.block.{i}.layer.{k}.layer_norm.weight"] = w[
                    f"{stack}.layers.{i}.placement.norms.{k}.weight"
                ]
    if feed_forward == "relu":
        arrays["decoder.final_layer_norm.weight"] = arrays["decoder.final_layer_norm.weight"] * math.sqrt(C)
    copy(theirs, arrays)
    agree(log_probs(model, *texts), encoder_decoder(theirs, *texts))


def encoder_decoder(theirs, source, source_valid, target, valid):
    """Log-probabilities of a model of Transformers at the real tokens of the target."""
    out = theirs(
        input_ids=torch.from_numpy(source),
        attention_mask=torch.from_numpy(source_valid.astype(np.int64)),
        decoder_input_ids=torch.from_numpy(target),
        decoder_attention_mask=torch.from_numpy(valid.astype(np.int64)),
    )
    return out.logits.log_softmax(-1)[valid]


@single
def test_a_model_of_our_parts_is_marian(make, agree, texts):
    """Post-norm with sinusoidal positions, of which Marian has all sines before all cosines: its d_model channels are
    ours in that order, wherever a weight meets the residual stream."""
    peer = pytest.importorskip("transformers")
    model, w = make(*SHARED, "model.placement=post", "model.head={name: linear, bias: false}")
    theirs = peer.MarianMTModel(
        peer.MarianConfig(
            vocab_size=V, d_model=C, encoder_layers=2, decoder_layers=2, encoder_attention_heads=H, pad_token_id=0,
            decoder_attention_heads=H, encoder_ffn_dim=FF, decoder_ffn_dim=FF, activation_function="relu", dropout=0.0,
            max_position_embeddings=LONGEST, scale_embedding=True, eos_token_id=2, decoder_start_token_id=1,
            tie_word_embeddings=False, forced_eos_token_id=2,
        )
    )  # fmt: skip
    table = halves(w["target_embedding.weight"], 1)
    arrays = {f"model.{name}.weight": table for name in ("shared", "encoder.embed_tokens", "decoder.embed_tokens")}
    arrays["lm_head.weight"] = halves(w["head.output.weight"].T, 1)
    attention = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}
    for stack in ("encoder", "decoder"):
        places = getattr(theirs.model, stack).embed_positions
        arrays[f"model.{stack}.embed_positions.weight"] = places.create_weight().numpy()
        blocks = [("self_attn", "self_attention")] + [("encoder_attn", "cross_attention")] * (stack == "decoder")
        for i in range(2):
            their, our = f"model.{stack}.layers.{i}", f"{stack}.layers.{i}"
            names = {f"{their}.{a}.{x}": f"{our}.{b}.{y}" for a, b in blocks for x, y in attention.items()}
            names |= {f"{their}.fc1": f"{our}.feed_forward.inner", f"{their}.fc2": f"{our}.feed_forward.output"}
            for name, array in transposed(w, names).items():
                out = (
                    "out_proj" in name or "fc2" in name
                )  # its outputs are channels of the stream, the others' inputs are
                if name.endswith("weight"):
                    arrays[name] = halves(array.T, 1).T if out else halves(array, 1)
                else:
                    arrays[name] = halves(array, 1) if out else array
            norms = [f"{block}_layer_norm" for block, _ in blocks] + ["final_layer_norm"]
            pairs = {f"{their}.{norm}": f"{our}.placement.norms.{k}" for k, norm in enumerate(norms)}
            arrays |= {name: halves(array, 1) for name, array in as_they_are(w, pairs).items()}
    copy(theirs, arrays)
    agree(log_probs(model, *texts), encoder_decoder(theirs, *texts))


# ------------------------------------------------------------------------------------------------------ decoders alone


def llama_like(w, heads, kv_heads, norms, final="model.norm", projections=None, shift=0.0):
    """The weights of Llama and its kin: {theirs: array}. `norms` says which of a layer's norms is which of ours;
    `shift` is what their gains lack. Rotary channels stand in halves."""
    arrays = {
        "model.embed_tokens.weight": w["target_embedding.weight"],
        "lm_head.weight": w["head.output.weight"].T if "head.output.weight" in w else w["target_embedding.weight"],
        f"{final}.weight": w["decoder.final_norm.weight"] - shift,
    }
    for i in range(2):
        their, our = f"model.layers.{i}", f"decoder.layers.{i}"
        for name, ours, count in (("q", "query", heads), ("k", "key", kv_heads)):
            arrays[f"{their}.self_attn.{name}_proj.weight"] = halves(w[f"{our}.self_attention.{ours}.weight"], count).T
        pairs = {
            f"{their}.self_attn.{a}_proj": f"{our}.self_attention.{b}" for a, b in (("v", "value"), ("o", "output"))
        }
        mlp = projections or {"gate_proj": "gate", "up_proj": "up", "down_proj": "output"}
        arrays |= transposed(w, pairs | {f"{their}.mlp.{a}": f"{our}.feed_forward.{b}" for a, b in mlp.items()})
        arrays |= {f"{their}.{a}.weight": w[f"{our}.{b}.weight"] - shift for a, b in norms.items()}
    return arrays


def decoder_only(theirs, target, valid):
    out = theirs(input_ids=torch.from_numpy(target), attention_mask=torch.from_numpy(valid.astype(np.int64)))
    return out.logits.log_softmax(-1)[valid]


PRE = {"input_layernorm": "placement.norms.0", "post_attention_layernorm": "placement.norms.1"}
LLAMA = [
    *DECODER_ONLY,
    "model.norm={name: rms, eps: 1.0e-6}",
    "model.position=rotary",
    "model.feed_forward={name: swiglu, bias: false}",
]
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
UNTIED = "model.head={name: linear, bias: false}"


def config(kv_heads=H, **more):
    options = {
        "vocab_size": V, "hidden_size": C, "intermediate_size": FF, "num_hidden_layers": 2, "num_attention_heads": H,
        "num_key_value_heads": kv_heads, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
    }  # fmt: skip
    return options | more


@single
def test_a_model_of_our_parts_is_llama(make, agree, texts):
    """Grouped queries, RMS, rotary positions, SwiGLU."""
    peer = pytest.importorskip("transformers")
    model, w = make(*LLAMA, "model.attention={name: grouped_query, kv_heads: 2, bias: false}", UNTIED)
    theirs = copy(peer.LlamaForCausalLM(peer.LlamaConfig(**config(2))), llama_like(w, H, 2, PRE))
    agree(log_probs(model, *texts), decoder_only(theirs, *texts[2:]))


@single
def test_a_model_of_our_parts_is_mistral(make, agree, texts):
    """A window: Mistral's counts the token itself, ours does not."""
    peer = pytest.importorskip("transformers")
    model, w = make(*LLAMA, "model.attention={name: local, window: 2, bias: false}", UNTIED)
    theirs = peer.MistralForCausalLM(peer.MistralConfig(**config(), sliding_window=3, head_dim=C // H))
    agree(log_probs(model, *texts), decoder_only(copy(theirs, llama_like(w, H, H, PRE)), *texts[2:]))


@single
def test_sandwich_and_geglu_are_gemma_2s(make, agree, texts):
    """A norm at both ends of each branch; gains without their 1, the embedding's table as output matrix. Its
    softcapping is switched off, and its GELU is by erf."""
    peer = pytest.importorskip("transformers")
    model, w = make(
        *LLAMA, "model.placement=sandwich", "model.scale_embedding=true", "model.head=tied",
        "model.feed_forward={name: geglu, bias: false}",
        "model.attention={name: grouped_query, kv_heads: 2, bias: false}",
    )  # fmt: skip
    options = config(
        2, head_dim=C // H, query_pre_attn_scalar=C // H, hidden_activation="gelu", tie_word_embeddings=True
    )
    theirs = peer.Gemma2ForCausalLM(
        peer.Gemma2Config(**options, attn_logit_softcapping=None, final_logit_softcapping=None)
    )
    norms = {
        "input_layernorm": "placement.norms.0",
        "post_attention_layernorm": "placement.branch_norms.0",
        "pre_feedforward_layernorm": "placement.norms.1",
        "post_feedforward_layernorm": "placement.branch_norms.1",
    }
    copy(theirs, llama_like(w, H, 2, norms, shift=1.0))
    agree(log_probs(model, *texts), decoder_only(theirs, *texts[2:]))


@single
def test_res_post_is_olmo_2s(make, agree, texts):
    """A norm on each branch before the sum. Its norms of queries and keys, of which ours has no kind, are taken out."""
    peer = pytest.importorskip("transformers")
    model, w = make(*LLAMA, "model.placement=res_post", f"model.attention={NO_BIAS}", UNTIED)
    theirs = peer.Olmo2ForCausalLM(peer.Olmo2Config(**config()))
    for layer in theirs.model.layers:
        layer.self_attn.q_norm = layer.self_attn.k_norm = torch.nn.Identity()
    norms = {
        "post_attention_layernorm": "placement.norms.0",
        "post_feedforward_layernorm": "placement.norms.1",
    }
    agree(log_probs(model, *texts), decoder_only(copy(theirs, llama_like(w, H, H, norms)), *texts[2:]))


@single
def test_sub_ln_is_bitnets(make, agree, texts):
    """A norm before each output matrix too. (What BitNet does to numbers of few bits is no part of this class.)"""
    peer = pytest.importorskip("transformers")
    model, w = make(*LLAMA, "model.placement=sub_ln", f"model.attention={NO_BIAS}", UNTIED)
    theirs = peer.BitNetForCausalLM(peer.BitNetConfig(**config(), hidden_act="silu", rope_parameters=ROPE))
    norms = PRE | {
        "self_attn.attn_sub_norm": "self_attention.inner_norm",
        "mlp.ffn_sub_norm": "feed_forward.inner_norm",
    }
    agree(log_probs(model, *texts), decoder_only(copy(theirs, llama_like(w, H, H, norms)), *texts[2:]))


@single
def test_a_model_of_our_parts_is_gpt_2(make, agree, texts):
    """Learned positions, GELU by erf, the embedding's table as output matrix. Its matrices are [in, out] as ours."""
    peer = pytest.importorskip("transformers")
    model, w = make(*DECODER_ONLY, "model.position=learned", "model.feed_forward=gelu", "model.head=tied")
    theirs = peer.GPT2LMHeadModel(
        peer.GPT2Config(
            vocab_size=V, n_positions=LONGEST, n_embd=C, n_layer=2, n_head=H, n_inner=FF, activation_function="gelu",
            pad_token_id=0, bos_token_id=1, eos_token_id=2,
        )
    )  # fmt: skip
    arrays = {f"{name}.weight": w["target_embedding.weight"] for name in ("transformer.wte", "lm_head")}
    arrays["transformer.wpe.weight"] = w["decoder.encodings.0.weight"]
    pairs = {"transformer.ln_f": "decoder.final_norm"}
    for i in range(2):
        their, our = f"transformer.h.{i}", f"decoder.layers.{i}"
        for part in ("weight", "bias"):
            qkv = [w[f"{our}.self_attention.{name}.{part}"] for name in ("query", "key", "value")]
            arrays[f"{their}.attn.c_attn.{part}"] = np.concatenate(qkv, -1)
        pairs |= {
            f"{their}.attn.c_proj": f"{our}.self_attention.output",
            f"{their}.mlp.c_fc": f"{our}.feed_forward.inner",
        }
        pairs |= {f"{their}.mlp.c_proj": f"{our}.feed_forward.output"}
        pairs |= {f"{their}.ln_{k + 1}": f"{our}.placement.norms.{k}" for k in range(2)}
    copy(theirs, arrays | as_they_are(w, pairs))
    agree(log_probs(model, *texts), decoder_only(theirs, *texts[2:]))


@single
def test_parallel_is_gpt_js(make, agree, texts):
    """One norm a layer, both sublayers beside each other; rotary channels in pairs, as ours."""
    peer = pytest.importorskip("transformers")
    model, w = make(
        *DECODER_ONLY, "model.placement=parallel", "model.position=rotary", "model.feed_forward=gelu",
        f"model.attention={NO_BIAS}",
    )  # fmt: skip
    theirs = peer.GPTJForCausalLM(
        peer.GPTJConfig(
            vocab_size=V, n_positions=LONGEST, n_embd=C, n_layer=2, n_head=H, n_inner=FF, activation_function="gelu",
            rotary_dim=C // H, pad_token_id=0, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False,
        )
    )  # fmt: skip
    arrays = {"transformer.wte.weight": w["target_embedding.weight"]}
    pairs, norms = {"lm_head": "head.output"}, {"transformer.ln_f": "decoder.final_norm"}
    attention = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}
    for i in range(2):
        their, our = f"transformer.h.{i}", f"decoder.layers.{i}"
        pairs |= {f"{their}.attn.{a}": f"{our}.self_attention.{b}" for a, b in attention.items()}
        pairs |= {
            f"{their}.mlp.fc_in": f"{our}.feed_forward.inner",
            f"{their}.mlp.fc_out": f"{our}.feed_forward.output",
        }
        norms |= {f"{their}.ln_1": f"{our}.placement.norms.0"}
    copy(theirs, arrays | transposed(w, pairs) | as_they_are(w, norms))
    agree(log_probs(model, *texts), decoder_only(theirs, *texts[2:]))


@single
def test_a_model_of_our_parts_is_mpt(make, agree, texts):
    """ALiBi; norms and layers without biases; the feed-forward is four times as wide as the stream."""
    peer = pytest.importorskip("transformers")
    model, w = make(
        *DECODER_ONLY, "model.position=alibi", f"model.d_ff={4 * C}", f"model.attention={NO_BIAS}",
        "model.feed_forward={name: gelu, bias: false}", "model.head=tied", "model.norm={name: layer, bias: false}",
    )  # fmt: skip
    theirs = peer.MptForCausalLM(
        peer.MptConfig(vocab_size=V, d_model=C, n_heads=H, n_layers=2, max_seq_len=LONGEST, layer_norm_epsilon=1e-5)
    )
    arrays = {f"{name}.weight": w["target_embedding.weight"] for name in ("transformer.wte", "lm_head")}
    pairs, norms = {}, {"transformer.norm_f": "decoder.final_norm"}
    for i in range(2):
        their, our = f"transformer.blocks.{i}", f"decoder.layers.{i}"
        qkv = [w[f"{our}.self_attention.{name}.weight"].T for name in ("query", "key", "value")]
        arrays[f"{their}.attn.Wqkv.weight"] = np.concatenate(qkv)
        pairs |= {f"{their}.attn.out_proj": f"{our}.self_attention.output"}
        pairs |= {
            f"{their}.ffn.up_proj": f"{our}.feed_forward.inner",
            f"{their}.ffn.down_proj": f"{our}.feed_forward.output",
        }
        norms |= {f"{their}.norm_{k + 1}": f"{our}.placement.norms.{k}" for k in range(2)}
    copy(theirs, arrays | transposed(w, pairs) | as_they_are(w, norms))
    agree(log_probs(model, *texts), decoder_only(theirs, *texts[2:]))


# -------------------------------------------------------------------------------------------------- stacks by placement


def x_transformers_stack(w, stack, placement, across):
    """The weights of x_transformers.Encoder or Decoder: its layers are single sublayers, each with the norms before it,
    after the branch and after the sum."""
    arrays, kinds = {}, ["self_attention", *(["cross_attention"] if across else []), "feed_forward"]
    for i in range(2):
        for k, kind in enumerate(kinds):
            their, our = f"layers.{len(kinds) * i + k}", f"{stack}.layers.{i}"
            slot = 2 if placement in ("post", "deepnorm", "admin") else 0
            arrays[f"{their}.0.{slot}.gamma"] = w[f"{our}.placement.norms.{k}.weight"]
            if placement == "sandwich":
                arrays[f"{their}.0.1.gamma"] = w[f"{our}.placement.branch_norms.{k}.weight"]
            if placement == "admin":
                arrays[f"{their}.2.residual_scale"] = w[f"{our}.placement.omegas.{k}"]
            branch = f"{their}.1"
            if placement == "layer_scale":
                arrays[f"{branch}.gamma"] = w[f"{our}.placement.scales.{k}"]
                branch = f"{branch}.fn"
            names = {"to_q": "query", "to_k": "key", "to_v": "value", "to_out": "output"}
            names = {"ff.0.0": "inner", "ff.2": "output"} if kind == "feed_forward" else names
            arrays |= transposed(w, {f"{branch}.{a}": f"{our}.{kind}.{b}" for a, b in names.items()})
    if f"{stack}.final_norm.weight" in w:
        arrays["final_norm.gamma"] = w[f"{stack}.final_norm.weight"]
    return arrays


PLACEMENTS = {
    "pre": {},
    "post": {"pre_norm": False},
    "sandwich": {"sandwich_norm": True},
    "layer_scale": {"use_layerscale": True},
    "admin": {"pre_norm": False, "scale_residual": True},
    "deepnorm": {"pre_norm": False},  # and the constant of the stack
}


@pytest.mark.parametrize("placement", PLACEMENTS)
@single
def test_placements_are_those_of_x_transformers(make, precision, agree, rng, placement):
    """An encoder of two layers, and a decoder of two that looks across at what the encoder gave."""
    peer = pytest.importorskip("x_transformers")
    model, w = make(
        f"model.placement={placement}", "model.norm={name: layer, bias: false}", "model.position=none",
        f"model.attention={NO_BIAS}", "model.feed_forward=gelu",
    )  # fmt: skip
    stacks = {}
    for stack, kind in (("encoder", peer.Encoder), ("decoder", peer.Decoder)):
        options = dict(PLACEMENTS[placement])
        if placement == "deepnorm":
            # 2203.00555, table 1, for N = M = 2: 0.81 (N⁴ M)^(1/16) and (3 M)^(1/4)
            options["scale_residual_constant"] = 0.81 * 2 ** (5 / 16) if stack == "encoder" else 6**0.25
        theirs = kind(
            dim=C, depth=2, heads=H, attn_dim_head=C // H, ff_mult=FF / C, cross_attend=stack == "decoder",
            norm_add_unit_offset=False, **options,
        )  # fmt: skip
        stacks[stack] = copy(theirs, x_transformers_stack(w, stack, placement, stack == "decoder"))
    x, y = rng.normal(size=(*SOURCE_VALID.shape, C)), rng.normal(size=(*VALID.shape, C))
    encoded, where = model.encoder(precision.ours(x), paddle.to_tensor(SOURCE_VALID), Tap())
    expected = stacks["encoder"](precision.theirs(x), mask=torch.from_numpy(SOURCE_VALID))
    agree(encoded.numpy()[SOURCE_VALID], expected[SOURCE_VALID])
    visible = paddle.to_tensor(SOURCE_VALID)
    state = model.decoder.start(Memory(encoded, where, visible, paddle.zeros(SOURCE_VALID.shape, "int64")))
    decoded, _ = model.decoder(precision.ours(y), state, paddle.to_tensor(VALID), Tap())
    expected = stacks["decoder"](
        precision.theirs(y),
        context=expected,
        mask=torch.from_numpy(VALID),
        context_mask=torch.from_numpy(SOURCE_VALID),
    )
    agree(decoded.numpy()[VALID], expected[VALID])
