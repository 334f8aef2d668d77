"""The sides `torch-tuned` and `torch-bfloat16`: PyTorch's `nn.Transformer` with the documented settings that make it
fastest: `torch.set_flush_denormal`, fused Adam, clipping of all gradients in one call, and padding left out before the
output matrix; and its products in float32, or cast to bfloat16 by `torch.autocast`, which the processor decides about.
(`torch.set_float32_matmul_precision("medium")` changes neither numbers nor times of PyTorch 2.14 on a processor without
AMX.) Compiled it is another side, `torch-compile`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks import libraries
from benchmarks.libraries import pytorch
from benchmarks.workload import Workload, longest_output
from paddle_tfm.data.vocabulary import BOS, EOS, PAD


class Training(pytorch.Training):
    """The step of `Peer`."""

    settings = "fused Adam, denormals flushed, clipping in one call, no padding in the head"

    def __init__(self, folder: Path, side: str = "torch-tuned"):
        super().__init__(folder, side)
        torch.set_flush_denormal(True)
        self.casts = side == "torch-bfloat16"
        self.precision = "bfloat16 autocast" if self.casts else "float32"

    def backward(self, number: int) -> float:
        """The loss on batch `number`, after its backward pass."""
        tensors = map(torch.from_numpy, self.batches[number % len(self.batches)])
        with torch.autocast("cpu", torch.bfloat16, enabled=self.casts):
            loss = self._loss(*tensors)
        loss.backward()
        return loss.item()

    def clip(self, norm: float) -> None:
        """Scale all gradients so that their norm is at most `norm`."""
        nn.utils.clip_grad_norm_(self.peer.parameters(), norm, foreach=True)

    def _loss(self, source: Tensor, source_valid: Tensor, target_in: Tensor, valid: Tensor, target: Tensor) -> Tensor:
        h = self.peer.hidden(source, source_valid, target_in, valid)
        return F.cross_entropy(self.peer.output(h[valid]).float(), target[valid])


class Search(libraries.Search):
    """Greedy search with the weights of a run in `nn.Transformer`, under `torch.inference_mode`, where its encoder
    takes PyTorch's fast path. `nn.Transformer` has no cache: each step decodes the whole prefix."""

    settings = "inference_mode, the encoder's fast path"

    def __init__(self, folder: Path, side: str = "torch-tuned"):
        workload = Workload.read(folder)
        pytorch.set_threads()
        torch.set_flush_denormal(True)
        weights = dict(workload.weights)
        table = weights["target_embedding.weight"]
        weights.setdefault("source_embedding.weight", table)
        weights.setdefault("head.output.weight", table.T)
        weights["head.output.bias"] = np.zeros(len(table), np.float32)
        self.peer = pytorch.Peer(workload.peer_sizes)
        pytorch.copy_weights(weights, self.peer, pytorch.counterparts(self.peer))
        self.peer.eval()
        self.max_length, self.batches = workload.peer_sizes.max_length, workload.jobs()

    def turn(self, job: str, number: int = 0) -> list[list[int]]:
        """The ids of the greedy output of each sentence, without the end token."""
        with torch.inference_mode():
            return [ids for source, valid, *_ in self.batches[job] for ids in self._each(source, valid)]

    def _each(self, source: np.ndarray, valid: np.ndarray) -> Iterator[list[int]]:
        for row, length in zip(torch.from_numpy(source), valid.sum(1).tolist()):
            yield self._greedy(row[None, :length])

    def _greedy(self, source: Tensor) -> list[int]:
        """source int64 [1, S] → ids."""
        peer, ids = self.peer, [BOS]
        memory = peer.transformer.encoder(peer.embed(peer.source_embedding, source))
        forbidden: Sequence[int] = [PAD, BOS]
        for _ in range(longest_output(source.shape[1], self.max_length)):
            h = peer.embed(peer.target_embedding, torch.tensor([ids]))
            future = peer.future(len(ids))
            h = peer.transformer.decoder(h, memory, tgt_mask=future, tgt_is_causal=True)
            logits = peer.output(h[0, -1])
            logits[forbidden] = -torch.inf
            best = int(logits.argmax())
            if best == EOS:
                break
            ids.append(best)
        return ids[1:]
