"""The side `joeynmt`: the same model and training step in JoeyNMT's own code (arXiv:1907.12484)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import joeynmt.model
import numpy as np
import torch
from joeynmt.batch import Batch
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary

from benchmarks import libraries
from benchmarks.libraries import pytorch
from benchmarks.workload import ALPHA, BEAM, Workload, longest_output
from paddle_tfm.data.vocabulary import BOS, EOS, PAD, UNKNOWN


class Training(pytorch.TorchTraining):
    """The step of JoeyNMT's training manager, on our batches. Its output matrix has no bias, and its norms add 1e-6
    to the variance where ours add 1e-5."""

    def __init__(self, folder: Path, side: str = "joeynmt"):
        workload = Workload.read(folder)
        model = build(workload.sizes)
        model.loss_function = ("crossentropy", 0.0)
        weights = {name: array for name, array in workload.weights.items() if name != "head.output.bias"}
        pytorch.copy_weights(weights, model, counterparts(model))
        super().__init__(model, workload)

    def backward(self, number: int) -> float:
        """The loss on batch `number`, after its backward pass."""
        peer_batch = batch(self.batches[number % len(self.batches)])
        peer_batch.sort_by_src_length()
        total, _, _, _ = self.model(return_type="loss", **vars(peer_batch))
        loss = peer_batch.normalize(total, "tokens")
        loss.backward()
        return loss.item()


class Search(libraries.Search):
    """JoeyNMT's search with the weights of a run."""

    def __init__(self, folder: Path, side: str = "joeynmt"):
        workload = Workload.read(folder)
        pytorch.set_threads()
        self.model = build({**workload.sizes, "tied": "head.output.weight" not in workload.weights})
        pytorch.copy_weights(workload.weights, self.model, counterparts(self.model))
        self.model.eval()
        self.max_length, self.batches = workload.sizes["max_length"], workload.jobs()

    def turn(self, job: str, number: int = 0) -> list[list[int]]:
        """The ids of the best output of each sentence, without the end token."""
        outputs_of_batch = []
        for arrays in self.batches[job]:
            peer_batch = batch(arrays)
            length = longest_output(int(peer_batch.src_length.max()), self.max_length)
            outputs, _, _ = search(self.model, peer_batch, length, BEAM if job == "beam" else 1, ALPHA)
            for ids in outputs.tolist():
                ids = ids[: ids.index(EOS)] if EOS in ids else ids
                outputs_of_batch.append([i for i in ids if i != PAD])
        return outputs_of_batch


def build(sizes: dict) -> joeynmt.model.Model:
    """JoeyNMT's Transformer of these sizes.

    Raises:
        ValueError: `inner_dropout` differs from `dropout`: JoeyNMT has one rate inside a layer.
    """
    if sizes["inner_dropout"] != sizes["dropout"]:
        raise ValueError(f"`inner_dropout` must be `dropout` in JoeyNMT, but is {sizes['inner_dropout']}")
    stack = {
        "type": "transformer",
        "hidden_size": sizes["d_model"],
        "ff_size": sizes["d_ff"],
        "num_heads": sizes["num_heads"],
        "dropout": sizes["dropout"],
        "layer_norm": "pre" if sizes["normalize_before"] else "post",
        "embeddings": {
            "embedding_dim": sizes["d_model"],
            "scale": sizes["scale_embedding"],
            "dropout": sizes["embedding_dropout"],
        },
    }
    config = {
        "encoder": {**stack, "num_layers": sizes["encoder_layers"]},
        "decoder": {**stack, "num_layers": sizes["decoder_layers"]},
        "tied_embeddings": sizes.get("share_embeddings", False),
        "tied_softmax": sizes.get("tied", False),
    }
    return joeynmt.model.build_model(
        config, vocabulary(sizes["source_vocabulary"]), vocabulary(sizes["target_vocabulary"])
    )


def vocabulary(size: int) -> Vocabulary:
    """A vocabulary of `size` words, with the special tokens at our ids."""
    special = {"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNKNOWN}
    peer = Vocabulary.__new__(Vocabulary)
    peer._itos = [f"word {i}" for i in range(size)]
    for name, i in special.items():
        peer._itos[i] = f"<{name}>"
    peer._stoi = {word: i for i, word in enumerate(peer._itos)}
    peer.specials, peer.lang_tags = [f"<{name}>" for name in special], []
    peer.pad_index, peer.bos_index, peer.eos_index, peer.unk_index, peer.sep_index = PAD, BOS, EOS, UNKNOWN, None
    return peer


def batch(arrays: Sequence[np.ndarray]) -> Batch:
    """One of our batches as JoeyNMT's, whose target has the begin and the end token."""
    source, source_valid, target_in, _, target_out = arrays
    return Batch(
        src=torch.from_numpy(source),
        src_length=torch.from_numpy(source_valid.sum(1)),
        src_prompt_mask=None,
        trg=torch.from_numpy(np.concatenate([target_in[:, :1], target_out], 1)),
        trg_prompt_mask=None,
        indices=torch.arange(len(source)),
        device=torch.device("cpu"),
        pad_index=PAD,
        eos_index=EOS,
    )


def counterparts(model: joeynmt.model.Model) -> Iterator[tuple[str, Sequence[str]]]:
    """(JoeyNMT's name, the engine's names) of every parameter."""
    attention = {"q_layer": "query", "k_layer": "key", "v_layer": "value", "output_layer": "output"}
    for stack in ("encoder", "decoder"):
        theirs = getattr(model, stack)
        blocks = {"src_src_att": "self_attention"}
        norms = ["layer_norm", "feed_forward.layer_norm"]
        if stack == "decoder":
            blocks = {"trg_trg_att": "self_attention", "src_trg_att": "cross_attention"}
            norms = ["x_layer_norm", "dec_layer_norm", "feed_forward.layer_norm"]
        pairs = {
            f"{block}.{part}": f"{name}.{ours}" for block, name in blocks.items() for part, ours in attention.items()
        }
        pairs |= {"feed_forward.pwff_layer.0": "feed_forward.inner", "feed_forward.pwff_layer.3": "feed_forward.output"}
        pairs |= {norm: f"placement.norms.{k}" for k, norm in enumerate(norms)}
        for part in ("weight", "bias"):
            for i in range(len(theirs.layers)):
                for their_name, our_name in pairs.items():
                    yield f"{stack}.layers.{i}.{their_name}.{part}", [f"{stack}.layers.{i}.{our_name}.{part}"]
            if theirs.layer_norm is not None:
                yield f"{stack}.layer_norm.{part}", [f"{stack}.final_norm.{part}"]
    tied = model.decoder.output_layer.weight is model.trg_embed.lut.weight
    if model.src_embed is model.trg_embed:
        yield "src_embed.lut.weight", ["target_embedding.weight"]
    else:
        yield "src_embed.lut.weight", ["source_embedding.weight"]
        yield "trg_embed.lut.weight", ["target_embedding.weight"]
    if not tied:
        yield "decoder.output_layer.weight", ["head.output.weight"]
