"""A model as CTranslate2's variables: names of its binary format → arrays and numbers.

Read from CTranslate2's sources (src/layers, 4.8): which norms and attributes of a layer it looks for, and what it
computes with them. What the rule of a component answers gets its place here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import paddle

from paddle_tfm.export.ctranslate2.attention import (
    Projections,
    distance_table,
    matrix,
    position_numbers,
    position_table,
)
from paddle_tfm.export.ctranslate2.rules import ExportRefused, Rules
from paddle_tfm.model.stack import Layer, Stack
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm.protocols.component import Component

TARGET = "ctranslate2"
MIN_POSITIONS = 1024  # rows of a table of positions, where the model's longest text is shorter
ACTIVATIONS = {"RELU": 0, "SWISH": 2, "GELU": 3, "GELU_SIGMOID": 4}  # ctranslate2.specs.common_spec.Activation
LAYER_NORM_EPS, RMS_NORM_EPS = 1e-5, 1e-6  # CTranslate2's own, where a model's configuration names none


@dataclass(frozen=True)
class Variables:
    """What a model is to CTranslate2.

    Args:
        arrays: by name, such as encoder/layer_0/ffn/linear_0/weight.
        eps: of all its norms; None: CTranslate2's own (1e-5 for layer norm, 1e-6 for RMS norm).
        positions: the longest text that its tables hold.
        prompt_at_once: of a decoder-only model, whether a prompt may be fed at once. Where its attention has a window
            or a bias by distance, CTranslate2 (4.8) is right for one token at a time only.
        source_end: whether the source has an end token.
    """

    arrays: dict[str, Any]
    eps: float | None
    positions: int
    prompt_at_once: bool
    source_end: bool = True


def variables(model: Transformer, rules: Rules, quantization: str = "float32") -> Variables:
    """The variables of a model.

    Args:
        quantization: what they are made for.
    Raises:
        ExportRefused: CTranslate2 cannot hold one of its components; the message names it.
    """
    return _Exporter(model, rules, quantization).variables()


class _Exporter:
    def __init__(self, model: Transformer, rules: Rules, quantization: str):
        self.model, self.rules, self.quantization = model, rules, quantization
        self.length = max(model.max_length, MIN_POSITIONS)
        self.arrays: dict[str, Any] = {}
        self.eps: dict[tuple[str, float], str] = {}  # (layer | rms, eps) → the norm's name
        self.cosines: list[tuple[str, Projections, float, bool]] = []  # those whose norm depends on `eps`
        self.prompt_at_once = True

    def variables(self) -> Variables:
        model = self.model
        if model.decoder is None:
            raise ExportRefused("an encoder-only model writes no text: CTranslate2 decodes with a decoder")
        for name, stack in model.stacks().items():
            self._stack(name, stack)
        head = self.rules.held(model.head)
        self.arrays["decoder/projection/weight"] = np.ascontiguousarray(head["weight"])
        if head["bias"] is not None:
            self.arrays["decoder/projection/bias"] = head["bias"]
        eps = self._common_eps()
        for scope, projections, gain, cross in self.cosines:
            projections.normalize(gain, RMS_NORM_EPS if eps is None else eps, self.quantization != "int16")
            self._put(scope, projections.variables(cross))
        return Variables(self.arrays, eps, self.length, self.prompt_at_once, model.source_end)

    # ------------------------------------------------------------------------------------------------------ components

    def _put(self, scope: str, arrays: Mapping[str, Any]) -> None:
        self.arrays |= {f"{scope}/{name}": value for name, value in arrays.items()}

    def _norm(self, scope: str, norm: Component) -> None:
        answer = self.rules.held(norm)
        kind = "layer" if "beta" in answer else "rms"
        self.eps.setdefault((kind, float(answer["eps"])), self.rules.name(norm))
        self._put(scope, {name: answer[name] for name in ("gamma", "beta") if name in answer})

    def _common_eps(self) -> float | None:
        """The eps of all norms, None for CTranslate2's own."""
        if set(self.eps) <= {("layer", LAYER_NORM_EPS), ("rms", RMS_NORM_EPS)}:
            return None
        if len({eps for _, eps in self.eps}) > 1:
            listing = ", ".join(f"{name} {eps:g}" for (_, eps), name in self.eps.items())
            raise ExportRefused(f"the norms of this model differ in eps ({listing}), and CTranslate2 has one for all")
        return next(iter(self.eps))[1]

    # ---------------------------------------------------------------------------------------------------------- stacks

    def _stack(self, name: str, stack: Stack) -> None:
        model = self.model
        embedding = model.target_embedding if name == "decoder" else model.source_embedding
        embedding = model.target_embedding if embedding is None else embedding
        if embedding is None:
            raise ExportRefused(f"the {name} has no embedding")
        scope = f"{name}/embeddings" if name == "decoder" else f"{name}/embeddings_0"
        self.arrays[f"{scope}/weight"] = embedding.weight.numpy()
        self.arrays[f"{name}/scale_embeddings"] = np.float32(embedding.factor)
        if name == "encoder":
            self.arrays[f"{name}/embeddings_merge"] = np.int8(0)
        encodings = list(stack.encodings) * (1 if stack.encodings[0].per_layer else len(stack.layers))
        answers = [self._position_answer(encoding) if encoding.uses() else {} for encoding in encodings]
        for encoding in stack.cross_encodings:
            if encoding.uses():
                raise self.rules.refused(encoding, "stands in cross-attention, where CTranslate2 knows no positions")
        if "adds" in answers[0] and len(answers[0]) > 1:
            reason = "acts on embeddings and on scores, and CTranslate2 drops the former beside the latter"
            raise self.rules.refused(encodings[0], reason)
        self.apart = _apart(stack.encodings[0])
        heads = {self._layer(f"{name}/layer_{i}", stack, layer, answers[i]) for i, layer in enumerate(stack.layers)}
        if len(heads) > 1:
            raise ExportRefused(f"the attentions of the {name} differ in heads, and CTranslate2 has one number for all")
        windows = {self.rules.held(layer.self_attention).get("window") for layer in stack.layers}
        if len(windows) > 1 and any("by_distance" in answer for answer in answers):
            reason = "has a window in some layers only, beside a bias by distance, which CTranslate2 computes once"
            raise self.rules.refused(stack.layers[0].self_attention, reason)
        self.arrays[f"{name}/num_heads"] = np.int16(heads.pop())
        if self._needs_table(answers[0], f"{name}/layer_0/self_attention"):
            table = position_table(answers[0].get("adds"), embedding.weight.shape[1], self.length)
            self.arrays[f"{name}/position_encodings/encodings"] = table
        if stack.final_norm is not None:
            self._norm(f"{name}/layer_norm", stack.final_norm)

    def _position_answer(self, encoding: PositionalEncoding) -> dict:
        """What an encoding answers, at the positions that it gives to those of a text."""
        answer = self.rules.held(encoding)
        if (apart := _apart(encoding)) == 1:
            return answer
        moved = {
            "adds": lambda x, positions: encoding.embed(x, encoding.remap(positions, None)),
            "by_distance": lambda q, k: encoding.bias(encoding.remap(q, None), encoding.remap(k, None)),
        }
        if answer.keys() - moved.keys() - {"alibi"}:
            reason = f"lets positions stand {apart} apart, which CTranslate2 does not for this encoding"
            raise self.rules.refused(encoding, reason)
        return {key: moved[key] for key in answer if key in moved}

    def _needs_table(self, answer: Mapping[str, Any], attention: str) -> bool:
        """Whether CTranslate2 adds a table of positions; without ours, its own sinusoid. It does where the lowest
        attention has no encoding."""
        if f"{attention}/relative_attention_bias" in self.arrays:
            return False
        return not answer or "adds" in answer

    def _layer(self, scope: str, stack: Stack, layer: Layer, position: Mapping[str, Any]) -> int:
        """The variables of a layer; returns its number of heads."""
        name = stack.stack_name
        placement = self.rules.held(layer.placement)
        self.arrays[f"{name}/pre_norm"] = np.int8("after_sum" not in placement)
        branches = (
            ["self_attention", "attention", "ffn"] if layer.cross_attention is not None else ["self_attention", "ffn"]
        )
        self._placement(scope, branches, layer, placement)
        scales = placement.get("branch_scales", [None] * len(branches))
        heads = {self._attention(f"{scope}/self_attention", name, layer.self_attention, position, scales[0])}
        if layer.cross_attention is not None:
            heads.add(self._attention(f"{scope}/attention", "cross", layer.cross_attention, {}, scales[1]))
        self._feed_forward(scope, name, layer.feed_forward, scales[-1])
        if len(heads) > 1:
            raise ExportRefused(f"the attentions of the {name} differ in heads, and CTranslate2 has one number for all")
        return heads.pop()

    def _placement(self, scope: str, branches: list[str], layer: Layer, answer: Mapping[str, Any]) -> None:
        if answer.get("embedding") is not None:
            self._norm(f"{scope.split('/')[0]}/layernorm_embedding", answer["embedding"])
        if answer.get("top") is not None:
            self._norm(f"{scope.split('/')[0]}/layer_norm", answer["top"])
        if "shared" in answer:
            if len(branches) > 2 or scope.startswith("encoder"):
                reason = "runs sublayers side by side, which CTranslate2 does in decoder-only models alone"
                raise self.rules.refused(layer.placement, reason)
            self._norm(f"{scope}/shared_layer_norm", answer["shared"])
        elif "after" in answer:
            before = {
                "self_attention": "input",
                "attention": "external_pre_encoder_attention",
                "ffn": "pre_feedforward",
            }
            after = {
                "self_attention": "post_attention",
                "attention": "external_post_encoder_attention",
                "ffn": "post_feedforward",
            }
            for names, norms in ((before, answer["before"]), (after, answer["after"])):
                for branch, norm in zip(branches, norms):
                    self._norm(f"{scope}/{names[branch]}_layer_norm", norm)
        else:
            for branch, norm in zip(branches, answer["after_sum"] if "after_sum" in answer else answer["before"]):
                self._norm(f"{scope}/{branch}/layer_norm", norm)

    def _attention(
        self, scope: str, site: str, attention: Component, position: Mapping[str, Any], scale: np.ndarray | None
    ) -> int:
        """The variables of an attention at a site (encoder, decoder: self-attention; cross); returns its heads."""
        answer = self.rules.held(attention)
        projections = Projections(answer)
        window, bias, causal = answer.get("window"), position.get("by_distance"), site == "decoder"
        if window is not None:
            window //= self.apart  # of positions, as tokens
        if causal and (window is not None or (bias is not None and not position.get("alibi"))):
            self.prompt_at_once = False
        numbers = position_numbers(position, projections.head_dim)
        if causal and position.get("alibi"):
            self.arrays |= {"decoder/alibi": np.int8(1), "decoder/alibi_use_positive_positions": np.int8(0)}
            bias = None
        if causal and window is not None:
            numbers["sliding_window"] = np.int32(window + 1)  # with the query's own place
            window = None
        if window is not None and "adds" in position:
            projections.hide_beyond(window)
            window = None
        if bias is not None or window is not None:
            numbers |= distance_table(bias, window, causal, projections.heads, self.length)
        projections.numbers |= numbers
        if scale is not None:
            projections.scale_output(scale)
        if answer.keys() & {"cosine", "query_norm"} and site == "cross":
            reason = "normalizes each head, and CTranslate2's cross-attention all heads of a query together"
            raise self.rules.refused(attention, reason)
        if "cosine" in answer:
            self.cosines.append((scope, projections, answer["cosine"], site == "cross"))
        if "query_norm" in answer:
            self._norm(f"{scope}/q_norm", answer["query_norm"])
            self._norm(f"{scope}/k_norm", answer["key_norm"])
        self._put(scope, projections.variables(site == "cross"))
        return projections.heads

    def _feed_forward(self, scope: str, name: str, feed_forward: Component, scale: np.ndarray | None) -> None:
        answer = self.rules.held(feed_forward)
        self.arrays[f"{name}/activation"] = np.int8(ACTIVATIONS[answer["activation"]])
        linears = {"linear_0": answer["inner"], "linear_0_noact": answer.get("factor"), "linear_1": answer["output"]}
        for part, linear in linears.items():
            if linear is not None:
                weight, bias = matrix(linear)
                if scale is not None and part == "linear_1":
                    weight, bias = weight * scale[:, None], bias * scale
                self._put(f"{scope}/ffn/{part}", {"weight": np.ascontiguousarray(weight), "bias": bias})


def _apart(encoding: PositionalEncoding) -> int:
    """How far neighbours stand apart in evaluation."""
    positions = encoding.remap(paddle.arange(2, dtype="int64").unsqueeze(0), None)
    return int(positions[0, 1] - positions[0, 0])
