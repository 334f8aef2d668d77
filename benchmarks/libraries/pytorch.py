"""The sides `torch` and `torch-compile`: the same model and training step, written with `torch.nn.Transformer`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks import libraries
from benchmarks.workload import PeerSizes, Workload, counterparts_of, sinusoids


class Peer(nn.Module):
    """An encoder-decoder Transformer: embeddings, sinusoidal positions, `nn.Transformer`, an output matrix.

    Legend: B batch · S source length · T target length · C d_model · V vocabulary.
    """

    table: Tensor  # [max_length, C]

    def __init__(self, sizes: PeerSizes):
        super().__init__()
        self.pad_id, self.factor = sizes.pad_id, sizes.embedding_factor
        self.source_embedding = nn.Embedding(sizes.source_vocabulary, sizes.d_model, padding_idx=sizes.pad_id)
        self.target_embedding = nn.Embedding(sizes.target_vocabulary, sizes.d_model, padding_idx=sizes.pad_id)
        self.register_buffer("table", torch.from_numpy(sinusoids(sizes.max_length, sizes.d_model)), persistent=False)
        self.dropout = nn.Dropout(sizes.embedding_dropout)
        self.transformer = nn.Transformer(
            sizes.d_model,
            sizes.num_heads,
            sizes.encoder_layers,
            sizes.decoder_layers,
            sizes.d_ff,
            dropout=sizes.dropout,
            batch_first=True,
            norm_first=sizes.normalize_before,
        )
        for layer in [*self.transformer.encoder.layers, *self.transformer.decoder.layers]:
            layer.dropout.p = sizes.inner_dropout
        if not sizes.normalize_before:  # nn.Transformer ends a post-norm stack with a second norm; the paper does not
            self.transformer.encoder.norm = None
            self.transformer.decoder.norm = None
        self.output = nn.Linear(sizes.d_model, sizes.target_vocabulary)

    def embed(self, embedding: nn.Embedding, ids: Tensor) -> Tensor:
        """ids int64 [B, T] → [B, T, C]."""
        return self.dropout(embedding(ids) * self.factor + self.table[: ids.shape[1]])

    @staticmethod
    def future(length: int) -> Tensor:
        """Which keys each position may not see: bool [length, length]."""
        return torch.ones(length, length, dtype=torch.bool).triu(1)

    def hidden(self, source: Tensor, source_valid: Tensor, target_in: Tensor, target_valid: Tensor) -> Tensor:
        """ids int64 and validity bool, [B, S] and [B, T] → [B, T, C]. In PyTorch's masks, True hides a key."""
        return self.transformer(
            self.embed(self.source_embedding, source),
            self.embed(self.target_embedding, target_in),
            tgt_mask=self.future(target_in.shape[1]),
            src_key_padding_mask=~source_valid,
            tgt_key_padding_mask=~target_valid,
            memory_key_padding_mask=~source_valid,
            tgt_is_causal=True,
        )

    def forward(self, source: Tensor, source_valid: Tensor, target_in: Tensor, target_valid: Tensor) -> Tensor:
        """As `hidden` → logits [B, T, V]."""
        return self.output(self.hidden(source, source_valid, target_in, target_valid))

    def loss(
        self, source: Tensor, source_valid: Tensor, target_in: Tensor, target_valid: Tensor, target_out: Tensor
    ) -> Tensor:
        """The mean over real target tokens of their cross entropy, in nats: a scalar."""
        logits = self(source, source_valid, target_in, target_valid)
        return F.cross_entropy(logits.flatten(0, 1), target_out.flatten(), ignore_index=self.pad_id)


def copy_weights(
    weights: Mapping[str, np.ndarray], peer: nn.Module, names: Iterator[tuple[str, Sequence[str]]]
) -> None:
    """Set the parameters of a PyTorch model to those of one of our Transformers; see `counterparts_of`."""
    parameters = dict(peer.named_parameters())
    shapes = {name: parameter.shape for name, parameter in parameters.items()}
    with torch.no_grad():
        for name, array in counterparts_of(weights, shapes, names, transposed=True):
            parameters[name].copy_(torch.from_numpy(array))


def counterparts(peer: Peer) -> Iterator[tuple[str, Sequence[str]]]:
    """(our peer's name, the engine's names) of every parameter."""
    pairs = {"output": ["head.output"]}
    for stack in ("encoder", "decoder"):
        theirs = getattr(peer.transformer, stack)
        blocks = {"self_attn": "self_attention"} | ({"multihead_attn": "cross_attention"} if stack == "decoder" else {})
        for i in range(len(theirs.layers)):
            their_layer, our_layer = f"transformer.{stack}.layers.{i}", f"{stack}.layers.{i}"
            for block, name in blocks.items():
                for part in ("weight", "bias"):
                    yield (
                        f"{their_layer}.{block}.in_proj_{part}",
                        [f"{our_layer}.{name}.{x}.{part}" for x in ("query", "key", "value")],
                    )
                pairs[f"{their_layer}.{block}.out_proj"] = [f"{our_layer}.{name}.output"]
            pairs[f"{their_layer}.linear1"] = [f"{our_layer}.feed_forward.inner"]
            pairs[f"{their_layer}.linear2"] = [f"{our_layer}.feed_forward.output"]
            for k in range(len(blocks) + 1):
                pairs[f"{their_layer}.norm{k + 1}"] = [f"{our_layer}.placement.norms.{k}"]
        if theirs.norm is not None:
            pairs[f"transformer.{stack}.norm"] = [f"{stack}.final_norm"]
    for name, ours in pairs.items():
        for part in ("weight", "bias"):
            yield f"{name}.{part}", [f"{one}.{part}" for one in ours]
    for name in ("source_embedding.weight", "target_embedding.weight"):
        yield name, [name]


def set_threads() -> None:
    """Let PyTorch use as many threads as the environment says."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


class TorchTraining(libraries.Training):
    """The step of any PyTorch model; a subclass says how it takes the loss of a batch (`backward`)."""

    settings = "fused Adam"

    def __init__(self, model: nn.Module, workload: Workload):
        set_threads()
        self.model = model
        self.batches, self.clip_norm = workload.batches, workload.clip_norm
        # The fused one is PyTorch's fastest on a CPU.
        self.optimizer = torch.optim.Adam(
            model.parameters(), workload.learning_rate, betas=(0.9, 0.98), eps=1e-9, fused=True
        )

    def first_loss(self) -> float:
        """The loss of the first batch, without dropout."""
        self.model.eval()
        loss = self.backward(0)
        self.optimizer.zero_grad()
        self.model.train()
        return loss

    def step(self, number: int) -> None:
        """One step on batch `number`, modulo the number of batches."""
        self.backward(number)
        if self.clip_norm is not None:
            self.clip(self.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def clip(self, norm: float) -> None:
        """Scale all gradients so that their norm is at most `norm`."""
        nn.utils.clip_grad_norm_(self.model.parameters(), norm)

    def backward(self, number: int) -> float:
        """The loss on batch `number`, after its backward pass."""
        raise NotImplementedError


class Training(TorchTraining):
    """The step of `Peer`, eager or compiled."""

    def __init__(self, folder: Path, side: str = "torch"):
        self.workload = Workload.read(folder)
        self.peer = Peer(self.workload.peer_sizes)
        copy_weights(self.workload.weights, self.peer, counterparts(self.peer))
        self.loss = torch.compile(self.peer.loss) if side == "torch-compile" else self.peer.loss
        super().__init__(self.peer, self.workload)

    def backward(self, number: int) -> float:
        """The loss on batch `number`, after its backward pass."""
        loss = self.loss(*map(torch.from_numpy, self.batches[number % len(self.batches)]))
        loss.backward()
        return loss.item()
