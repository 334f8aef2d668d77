"""The sides `paddle` and `paddle-tuned`: the same model and training step, written with `paddle.nn.Transformer` as
its manual describes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from benchmarks import libraries
from benchmarks.workload import PeerSizes, Workload, counterparts_of, sinusoids


class Peer(nn.Layer):
    """An encoder-decoder Transformer: embeddings, sinusoidal positions, `nn.Transformer`, an output matrix.

    Legend: B batch · S source length · T target length · C d_model · V vocabulary.

    `nn.Transformer` ends a post-norm stack with a second norm, which the paper does not have; it is removed.
    """

    def __init__(self, sizes: PeerSizes):
        super().__init__()
        self.pad_id, self.factor = sizes.pad_id, sizes.embedding_factor
        self.source_embedding = nn.Embedding(sizes.source_vocabulary, sizes.d_model, padding_idx=sizes.pad_id)
        self.target_embedding = nn.Embedding(sizes.target_vocabulary, sizes.d_model, padding_idx=sizes.pad_id)
        self.register_buffer("table", paddle.to_tensor(sinusoids(sizes.max_length, sizes.d_model)), persistable=False)
        self.dropout = nn.Dropout(sizes.embedding_dropout)
        self.transformer = nn.Transformer(
            sizes.d_model,
            sizes.num_heads,
            sizes.encoder_layers,
            sizes.decoder_layers,
            sizes.d_ff,
            dropout=sizes.dropout,
            act_dropout=sizes.inner_dropout,
            normalize_before=sizes.normalize_before,
        )
        if not sizes.normalize_before:
            self.transformer.encoder.norm = None
            self.transformer.decoder.norm = None
        self.output = nn.Linear(sizes.d_model, sizes.target_vocabulary)

    def embed(self, embedding: nn.Embedding, ids: Tensor) -> Tensor:
        """ids int64 [B, T] → [B, T, C]."""
        return self.dropout(embedding(ids) * self.factor + self.table[: ids.shape[1]])

    def forward(self, source: Tensor, source_valid: Tensor, target_in: Tensor, target_valid: Tensor) -> Tensor:
        """ids int64 and validity bool, [B, S] and [B, T] → logits [B, T, V]."""
        length = target_in.shape[1]
        source_mask = source_valid.unsqueeze([1, 2])  # [B, S] -> [B, 1, 1, S]
        causal = paddle.tril(paddle.ones([length, length], dtype="bool"))
        target_mask = paddle.logical_and(target_valid.unsqueeze([1, 2]), causal)  # [B, 1, T, T]
        h = self.transformer(
            self.embed(self.source_embedding, source),
            self.embed(self.target_embedding, target_in),
            source_mask,
            target_mask,
            source_mask,
        )
        return self.output(h)

    def loss(
        self, source: Tensor, source_valid: Tensor, target_in: Tensor, target_valid: Tensor, target_out: Tensor
    ) -> Tensor:
        """The mean over real target tokens of their cross entropy, in nats: a scalar."""
        logits = self(source, source_valid, target_in, target_valid)
        return F.cross_entropy(logits, target_out, ignore_index=self.pad_id)


def counterparts(peer: Peer) -> Iterator[tuple[str, Sequence[str]]]:
    """(our peer's name, the engine's name) of every parameter."""
    attention = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}
    feed_forward = {"linear1": "feed_forward.inner", "linear2": "feed_forward.output"}
    modules = {"output": "head.output"}
    for stack in ("encoder", "decoder"):
        theirs = getattr(peer.transformer, stack)
        blocks = {"self_attn": "self_attention"} | ({"cross_attn": "cross_attention"} if stack == "decoder" else {})
        one = feed_forward | {f"norm{i + 1}": f"placement.norms.{i}" for i in range(len(blocks) + 1)}
        for block, name in blocks.items():
            one |= {f"{block}.{part}": f"{name}.{ours}" for part, ours in attention.items()}
        for i in range(len(theirs.layers)):
            modules |= {
                f"transformer.{stack}.layers.{i}.{part}": f"{stack}.layers.{i}.{ours}" for part, ours in one.items()
            }
        if theirs.norm is not None:
            modules[f"transformer.{stack}.norm"] = f"{stack}.final_norm"
    for their_name, our_name in modules.items():
        for part in ("weight", "bias"):
            yield f"{their_name}.{part}", [f"{our_name}.{part}"]
    for name in ("source_embedding.weight", "target_embedding.weight"):
        yield name, [name]


class Training(libraries.Training):
    """The step of `Peer`."""

    def __init__(self, folder: Path, side: str = "paddle"):
        workload = Workload.read(folder)
        self.model, self.batches = Peer(workload.peer_sizes), workload.batches
        parameters = dict(self.model.named_parameters())
        shapes = {name: parameter.shape for name, parameter in parameters.items()}
        names = counterparts(self.model)
        for name, array in counterparts_of(workload.weights, shapes, names, transposed=False):
            parameters[name].set_value(array)
        self.optimizer = paddle.optimizer.Adam(
            workload.learning_rate,
            beta1=0.9,
            beta2=0.98,
            epsilon=1e-9,
            parameters=self.model.parameters(),
            grad_clip=None if workload.clip_norm is None else paddle.nn.ClipGradByGlobalNorm(workload.clip_norm),
        )

    def first_loss(self) -> float:
        """The loss of the first batch, without dropout."""
        self.model.eval()
        loss = float(self.model.loss(*map(paddle.to_tensor, self.batches[0])))
        self.model.train()
        return loss

    def step(self, number: int) -> None:
        """One step on batch `number`, modulo the number of batches."""
        loss = self.model.loss(*map(paddle.to_tensor, self.batches[number % len(self.batches)]))
        loss.backward()
        self.optimizer.step()
        self.optimizer.clear_grad()
        float(loss)
        if paddle.device.get_device() != "cpu":
            paddle.device.synchronize()
