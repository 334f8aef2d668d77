"""The side `ctranslate2`: the weights of a run, decoded by CTranslate2 (OpenNMT's engine for CPUs, in C++)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec

from paddle_tfm.bench.workload import Workload, longest_output, sinusoids
from paddle_tfm.data.vocabulary import BOS, EOS, PAD, UNKNOWN


class Decoder:
    """CTranslate2's search with the weights of a run, in float32. Batches are divided among as many workers as there
    are threads; a single sentence uses all threads. Its length penalty differs from ours: |output|^alpha."""

    def __init__(self, workload: Workload, request: dict):
        threads = int(os.environ["OMP_NUM_THREADS"])
        with tempfile.TemporaryDirectory() as folder:
            spec(workload.sizes, workload.weights).save(folder)
            num_threads = {"beam": (threads, 1), "single": (1, threads)}
            self.translators = {
                job: ctranslate2.Translator(
                    folder, device="cpu", compute_type="float32", inter_threads=inter, intra_threads=intra
                )
                for job, (inter, intra) in num_threads.items()
            }
        self.request, self.max_length, self.batches = request, workload.sizes["max_length"], workload.jobs()

    def decode(self, job: str) -> list[list[int]]:
        """The ids of the best output of each sentence, without the end token."""
        size = self.request["beam"] if job == "beam" else 1
        pending = []
        for source, valid, *_ in self.batches[job]:
            texts = [[str(i) for i in row[:length]] for row, length in zip(source.tolist(), valid.sum(1).tolist())]
            pending += self.translators[job].translate_batch(
                texts,
                beam_size=size,
                length_penalty=self.request["alpha"],
                max_decoding_length=longest_output(source.shape[1], self.max_length),
                suppress_sequences=[[str(PAD)], [str(BOS)]],
                asynchronous=True,
            )
            if job == "single":
                pending[-1].result()
        return [[int(piece) for piece in output.result().hypotheses[0]] for output in pending]


def spec(sizes: Mapping, weights: Mapping[str, np.ndarray]) -> TransformerSpec:
    """CTranslate2's specification of the model; its matrices are [out, in]."""
    layers = sizes["encoder_layers"], sizes["decoder_layers"]
    model_spec = TransformerSpec.from_config(layers, sizes["num_heads"], pre_norm=sizes["normalize_before"])
    shared, scale = sizes.get("share_embeddings", False), sizes["scale_embedding"]
    table = weights["target_embedding.weight"]
    model_spec.encoder.embeddings[0].weight = table if shared else weights["source_embedding.weight"]
    model_spec.decoder.embeddings.weight = table
    model_spec.encoder.scale_embeddings = model_spec.decoder.scale_embeddings = bool(scale)
    head = weights.get("head.output.weight")
    model_spec.decoder.projection.weight = table if head is None else np.ascontiguousarray(head.T)
    for name, stack in (("encoder", model_spec.encoder), ("decoder", model_spec.decoder)):
        stack.position_encodings.encodings = sinusoids(sizes["max_length"], sizes["d_model"])
        if sizes["normalize_before"]:
            _norm(stack.layer_norm, weights, f"{name}.final_norm")
        for i, layer in enumerate(stack.layer):
            path = f"{name}.layers.{i}"
            blocks = {"self_attention": (layer.self_attention, [["query", "key", "value"], ["output"]])}
            if name == "decoder":
                blocks["cross_attention"] = layer.attention, [["query"], ["key", "value"], ["output"]]
            for k, (block, (attention, parts)) in enumerate(blocks.items()):
                for linear, names in zip(attention.linear, parts):
                    _linear(linear, weights, [f"{path}.{block}.{part}" for part in names])
                _norm(attention.layer_norm, weights, f"{path}.placement.norms.{k}")
            _linear(layer.ffn.linear_0, weights, [f"{path}.feed_forward.inner"])
            _linear(layer.ffn.linear_1, weights, [f"{path}.feed_forward.output"])
            _norm(layer.ffn.layer_norm, weights, f"{path}.placement.norms.{len(blocks)}")
    special = {"unk_token": UNKNOWN, "bos_token": BOS, "eos_token": EOS, "decoder_start_token": BOS}
    for name, i in special.items():
        setattr(model_spec.config, name, str(i))
    model_spec.config.add_source_bos = model_spec.config.add_source_eos = False
    model_spec.register_source_vocabulary([str(i) for i in range(sizes["source_vocabulary"])])
    model_spec.register_target_vocabulary([str(i) for i in range(sizes["target_vocabulary"])])
    model_spec.validate()
    return model_spec


def _linear(linear, weights: Mapping[str, np.ndarray], paths: list[str]) -> None:
    """Set one matrix and bias of CTranslate2 to several of ours, concatenated."""
    linear.weight = np.ascontiguousarray(np.concatenate([weights[f"{path}.weight"].T for path in paths]))
    linear.bias = np.concatenate([weights[f"{path}.bias"] for path in paths])


def _norm(norm, weights: Mapping[str, np.ndarray], path: str) -> None:
    norm.gamma, norm.beta = weights[f"{path}.weight"], weights[f"{path}.bias"]
