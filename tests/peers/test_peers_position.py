"""Positional encodings with the weights of Transformers', x-transformers' own: alone, and inside an attention."""

import numpy as np
import pytest
from peer_cases import (
    D_MODEL,
    DECODER,
    ENCODER,
    GIVEN,
    HEAD_DIM,
    HEADS,
    LENGTH,
    MAX_LENGTH,
    additive,
    attend,
    copy,
    positions,
    sentences,
    single,
    transposed,
)

pytestmark = pytest.mark.peers
torch = pytest.importorskip("torch")
SELF = pytest.mark.parametrize("site", [ENCODER, DECODER], ids=str)
LONG = 300  # beyond the last border of T5's buckets
POSITION = {"d_model": D_MODEL, "num_heads": HEADS, "head_dim": HEAD_DIM, "max_length": MAX_LENGTH}


def interleaved(channels):
    """Channels [..., C] from sines, then cosines, to sines and cosines by turns."""
    return np.stack(np.split(channels, 2, -1), -1).reshape(channels.shape)


# ----------------------------------------------------------------------------------------- added to the embeddings


@single
def test_scaled_sinusoidal_is_that_of_x_transformers(build, precision, agree, rng):
    """The same permutation of channels. Its scale starts at 1 / sqrt(C), ours at 1. Its angles are float32."""
    modules = pytest.importorskip("x_transformers.x_transformers")
    ours, w = build("position", "scaled_sinusoidal", **POSITION, site=ENCODER)
    theirs = copy(modules.ScaledSinusoidalEmbedding(D_MODEL), {"scale": w["alpha"]})
    x = rng.normal(size=(3, MAX_LENGTH, D_MODEL))
    expected = interleaved(theirs(precision.theirs(x)).detach().numpy()) + x.astype(precision.dtype)
    agree(ours.embed(precision.ours(x), positions(MAX_LENGTH)), expected)


# ---------------------------------------------------------------------------------------------------------- rotations


@single
def test_xpos_gives_the_scores_of_x_transformers(build, precision, agree, rng):
    """Its powers count from the middle of the sentence, ours from its beginning: scores, of differences, are the same.
    Compared where keys are not later than queries, which is what a causal attention looks at."""
    modules = pytest.importorskip("x_transformers.x_transformers")
    ours, _ = build("position", {"name": "xpos", "scale_base": 64.0}, **POSITION, site=DECODER)
    q, k = rng.normal(size=(2, 3, HEADS, MAX_LENGTH, HEAD_DIM))
    angles, scale = modules.RotaryEmbedding(HEAD_DIM, use_xpos=True, scale_base=64).forward_from_seq_len(MAX_LENGTH)
    theirs = modules.apply_rotary_pos_emb(precision.theirs(q), angles, scale) @ modules.apply_rotary_pos_emb(
        precision.theirs(k), angles, scale**-1
    ).transpose(-1, -2)
    token_positions = positions(MAX_LENGTH)
    mine = ours.query(precision.ours(q), token_positions).numpy() @ ours.key(
        precision.ours(k), token_positions
    ).numpy().swapaxes(-1, -2)
    past = np.tril(np.ones((MAX_LENGTH, MAX_LENGTH), bool))
    agree(mine[..., past], theirs[..., torch.from_numpy(past)])


# ------------------------------------------------------------------------------------------------- biases on the scores


@pytest.mark.parametrize("buckets, max_distance", [(32, 128), (8, 20), (16, 50)])
@SELF
def test_t5_is_that_of_transformers(build, precision, agree, site, buckets, max_distance):
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    spec = {"name": "t5", "buckets": buckets, "max_distance": max_distance}
    ours, w = build("position", spec, **POSITION, site=site)
    config = t5.T5Config(
        d_model=D_MODEL, d_kv=HEAD_DIM, num_heads=HEADS, relative_attention_num_buckets=buckets,
        relative_attention_max_distance=max_distance, is_decoder=site.causal,
    )  # fmt: skip
    theirs = t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    copy(theirs.relative_attention_bias, {"weight": w["table"]})
    mine, expected = ours.bias(positions(LONG), positions(LONG)), theirs.compute_bias(LONG, LONG)
    past = np.tril(np.ones((LONG, LONG), bool)) if site.causal else np.ones((LONG, LONG), bool)
    agree(mine.numpy()[..., past], expected[..., torch.from_numpy(past)])


# ------------------------------------------------------------------------------------------- terms on content and place


FOUR = {"linear_q": "query", "linear_k": "key", "linear_v": "value", "linear_out": "output"}


def wav2vec(site, clip=3, **options):
    """The self-attention of Wav2Vec2-BERT, which knows both relative encodings."""
    module = pytest.importorskip("transformers.models.wav2vec2_bert.modeling_wav2vec2_bert")
    config = module.Wav2Vec2BertConfig(
        hidden_size=D_MODEL, num_attention_heads=HEADS, attention_dropout=0.0, attn_implementation="eager",
        left_max_position_embeddings=clip, right_max_position_embeddings=clip, max_source_positions=MAX_LENGTH,
        **options,
    )  # fmt: skip
    return module.Wav2Vec2BertSelfAttention(config), module.Wav2Vec2BertRelPositionalEmbedding(config)


@SELF
def test_shaws_keys_are_wav2vec2_berts(build, precision, agree, rng, site):
    """`relative_key`. Nobody seems to have the term on the values."""
    ours, w = build("attention", "multihead", **GIVEN, site=site)
    encoding, tables = build("position", {"name": "shaw", "clip": 3, "with_values": False}, **POSITION, site=site)
    theirs, _ = wav2vec(site, position_embeddings_type="relative_key")
    copy(theirs, transposed(w, FOUR) | {"distance_embedding.weight": tables["key_table"]})
    x, valid, source, source_valid = sentences(rng, site)
    expected, _ = theirs(precision.theirs(x), additive(precision, valid, LENGTH, site.causal))
    agree(attend(ours, precision, site, x, valid, source, source_valid, encoding), expected[valid])


@single
@SELF
def test_transformer_xl_is_wav2vec2_berts(build, precision, agree, rng, site):
    """`relative`, with sinusoids of float32 and of signed distances, as ours."""
    ours, w = build("attention", "multihead", **GIVEN, site=site)
    encoding, own = build("position", "transformer_xl", **POSITION, site=site)
    theirs, sinusoids = wav2vec(site, position_embeddings_type="relative")
    own = {"linear_pos.weight": own["relative.weight"].T, "pos_bias_u": own["u"], "pos_bias_v": own["v"]}
    copy(theirs, transposed(w, FOUR) | own)
    x, valid, source, source_valid = sentences(rng, site)
    mask = additive(precision, valid, LENGTH, site.causal)
    expected, _ = theirs(precision.theirs(x), mask, sinusoids(precision.theirs(x)))
    agree(attend(ours, precision, site, x, valid, source, source_valid, encoding), expected[valid])
