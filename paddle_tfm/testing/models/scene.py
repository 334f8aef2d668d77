"""A small real model with the component at certain sites, and sentences that go through it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm.data.batches import Batch
from paddle_tfm.data.vocabulary import BOS, PAD
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Memory, Tap
from paddle_tfm.recipe.settings import ModelSettings
from paddle_tfm.testing.models.model_under_test import Dtype, ModelUnderTest, drop_nothing, gradient_through, same_draws
from paddle_tfm.testing.models.size import FIRST_WORD, VOCABULARY, Size

SETTLING = 5  # passes more; with a momentum of 0.1 half of the running values is then the batch's, and not a tenth
SHORT = 12  # tokens of a text of which each is looked at
MIN_LOG_PROB = -50.0  # log-probabilities below are the same: a word that is ruled out has some very negative number


def make_batch(size: Size, extra_padding: int = 0, seed: int = 0, padding: int = PAD) -> Batch:
    """Random sentences of the size's lengths; what is written is made of words that were read. `padding` is the id that
    stands where nothing is."""
    rng = np.random.default_rng([seed, 77])
    source = [rng.integers(FIRST_WORD, VOCABULARY, length) for length in size.source_lengths]
    target = [rng.choice(words, length) for words, length in zip(source, size.target_lengths)]
    source_ids, source_valid = pad(source, extra_padding, padding)
    target_ids, target_valid = pad(target, extra_padding, padding)
    begin = np.full((len(target), 1), BOS, dtype=np.int64)
    shifted = np.where(target_valid, np.concatenate([begin, target_ids[:, :-1]], 1), padding)
    return Batch(
        source=source_ids,
        source_valid=source_valid,
        copy_ids=source_ids,
        target_in=shifted,
        target_out=target_ids,
        target_copy=target_ids,
        target_valid=target_valid,
        extra=0,
        index=np.arange(len(source)),
        tokens=int(target_valid.sum()),
    ).tensors()


def pad(rows: list[np.ndarray], extra: int, padding: int) -> tuple[np.ndarray, np.ndarray]:
    """(ids int64, valid bool) [B, longest + extra]."""
    ids = np.full((len(rows), max(map(len, rows)) + extra), padding, dtype=np.int64)
    valid = np.zeros(ids.shape, dtype=bool)
    for i, row in enumerate(rows):
        ids[i, : len(row)], valid[i, : len(row)] = row, True
    return ids, valid


@contextmanager
def default_dtype(name: Dtype) -> Iterator[None]:
    """Parameters created meanwhile are of this dtype."""
    before = paddle.get_default_dtype()
    paddle.set_default_dtype(name)
    try:
        yield
    finally:
        paddle.set_default_dtype(before)


def move(layer: nn.Layer, rng: np.random.Generator) -> None:
    """Values that a method begins with, as after some training: zeros are drawn, others keep their sign and change in
    size."""
    for name, parameter in layer.named_parameters():
        if getattr(parameter, "keep_initial", False) or _shut(name, parameter):
            value, noise = parameter.numpy(), rng.normal(size=parameter.shape)
            parameter.set_value(np.where(value == 0, noise, value * np.exp(noise / 2)).astype(value.dtype))


def open_gates(layer: nn.Layer, rng: np.random.Generator) -> None:
    """Parameters that a method starts at zero throughout, drawn: behind a closed gate there is nothing to see."""
    for name, parameter in layer.named_parameters():
        if _shut(name, parameter):
            parameter.set_value(rng.normal(size=parameter.shape).astype(parameter.numpy().dtype))


def _shut(name: str, parameter: Tensor) -> bool:
    """Whether it starts at zero throughout and may be a gate. What no initializer draws needs no mark for that; a bias
    shuts nothing."""
    kept = getattr(parameter, "keep_initial", False)
    plain = parameter.ndim <= 1 and "bias" not in name.rpartition(".")[2]
    return (kept or plain) and not parameter.numpy().any()


@dataclass(frozen=True)
class Scene(ModelUnderTest[Transformer]):
    """A size of model with the component at certain sites; `where` says which."""

    subject: Any  # a ComponentUnderTest, whose module makes scenes
    size: Size
    settings: ModelSettings
    where: str

    def __str__(self) -> str:
        size = self.size
        layers = f"{size.encoder_layers}+{size.decoder_layers} layers"
        return f"{layers}, d_model {size.d_model}, {size.num_heads} heads, {self.where}"

    def model(self, dtype: Dtype = "float32", seed: int = 3, dropout: float = 0.0, moved: bool = True) -> Transformer:
        """In evaluation mode; `moved`: as after some training. Running statistics are not at their start, nor are the
        values that the method begins with: what holds where heads are not mixed yet, or a gate is shut, may not hold
        later."""
        settings = self.settings.model_copy(update={"dropout": dropout})
        with default_dtype(dtype):
            model = self.subject.make(settings, seed)
        if dropout == 0.0:
            drop_nothing(model)
        if moved:
            move(model, np.random.default_rng([seed, 9]))
            self._settle(model)
        model.eval()
        return model

    @paddle.no_grad()
    def _settle(self, model: Transformer) -> None:
        """Have running statistics move towards those of a batch: after one pass they are still far away, and where
        these divide by too little, values of thousands leave few digits."""
        model.train()
        before = {name: buffer.numpy() for name, buffer in self.buffers(model).items()}
        model(self.batch(seed=5))
        if any((buffer.numpy() != before[name]).any() for name, buffer in self.buffers(model).items()):
            for _ in range(SETTLING):
                model(self.batch(seed=5))

    def buffers(self, model: Transformer) -> dict[str, Tensor]:
        return model.built_buffers()

    def instances(self, model: nn.Layer) -> list[nn.Layer]:
        """The component's instances in a model."""
        return [layer for layer in model.sublayers(include_self=True) if isinstance(layer, self.subject.cls)]

    # ---------------------------------------------------------------------------------------------------------- batches

    def batch(self, extra_padding: int = 0, seed: int = 0, padding: int = PAD) -> Batch:
        """Sentences of this scene's lengths, see `make_batch`."""
        return make_batch(self.size, extra_padding, seed, padding)

    def padded_batches(self) -> Iterator[tuple[str, Batch]]:
        yield "with 4 more columns of padding", self.batch(extra_padding=4)
        yield "with 4 more columns of padding, of other ids", self.batch(extra_padding=4, padding=7)

    def without_source(self, batch: Batch, rows: list[int]) -> Batch:
        valid = batch.source_valid.numpy().copy()
        valid[rows] = False
        return batch.replace(source_valid=paddle.to_tensor(valid))

    def other_ids(self, ids: Tensor) -> Tensor:
        return (ids + 5) % VOCABULARY

    def other_words(self, ids: Tensor) -> Tensor:
        count = VOCABULARY - FIRST_WORD
        return paddle.where(ids >= FIRST_WORD, (ids - FIRST_WORD + 1) % count + FIRST_WORD, ids)

    # ---------------------------------------------------------------------------------------------------------- outputs

    def decoder_outputs(self, model: Transformer, batch: Batch) -> np.ndarray:
        """h and the head's log-probabilities [B, T, C + V]"""
        with paddle.no_grad(), same_draws(model):
            return with_log_probs(model, *model(batch)).numpy()

    def outputs(self, model: Transformer, batch: Batch) -> np.ndarray:
        """Log-probabilities at real target tokens [N, V]."""
        with paddle.no_grad(), same_draws(model):
            h, memory = model(batch)
            return real(model.head.log_probs(h, memory), batch)

    def losses(self, model: Transformer, batch: Batch, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        tap = Tap()
        with same_draws(model):
            loss = batch.tokens * model.loss(batch, smoothing, tap)
        return loss - sum(batch.tokens * each for each in tap.aux_losses.values()), loss

    def gradients_by_position(self, model: Transformer, batch: Batch) -> Iterator[tuple[int, np.ndarray]]:
        if model.decoder is None or model.target_embedding is None:
            return
        x = model.target_embedding(batch.target_in).detach()
        x.stop_gradient = False
        h, _ = model.decoder(x, model.start(self.memory(model, batch)), batch.target_valid, Tap())
        row = int(np.argmax(self.size.target_lengths))  # the longest
        length = self.size.target_lengths[row]
        for t in range(length) if length < SHORT else (0, length // 2, length - 2):
            value = h[row, t].sum() + 0.1 * (h[row, t] ** 2).sum()
            gradient = gradient_through(model.decoder, value, x, retain_graph=True)
            yield t, gradient.abs().sum(-1)[row].numpy()

    # --------------------------------------------------------------------------------------------------------- decoding

    def memory(self, model: Transformer, batch: Batch) -> Memory | None:
        """What the decoder attends to; None without an encoder."""
        return model.encode(batch.source, batch.source_valid, batch.copy_ids, batch.extra)

    def stepwise_outputs(self, model: Transformer, batch: Batch, chunks: list[int]) -> np.ndarray:
        """The same as `decoder_outputs`, decoded through the cache, so many tokens at a time (the last number again and
        again)."""
        parts: list[Tensor] = []
        head: tuple[Tensor, ...] = ()
        begin = 0
        with paddle.no_grad():
            memory = self.memory(model, batch)
            state = model.start(memory)
            while begin < batch.target_in.shape[1]:
                chunk = chunks[min(len(parts), len(chunks) - 1)]
                part = slice(begin, begin + chunk)
                h, state = model.decode(batch.target_in[:, part], state, batch.target_valid[:, part])
                of_tokens = []
                for t in range(h.shape[1]):
                    log_probs, head = model.head.step(h[:, t : t + 1], memory, head)
                    of_tokens.append(log_probs.clip(min=MIN_LOG_PROB).astype(h.dtype))
                parts.append(paddle.concat([h, paddle.stack(of_tokens, 1)], -1))
                begin += chunk
        return paddle.concat(parts, 1).numpy()


def with_log_probs(model: Transformer, h: Tensor, memory: Memory | None) -> Tensor:
    """h [B, T, C] and what the head says of it [B, T, C + V]: a leak may be in either."""
    log_probs = model.head.log_probs(h, memory)
    return paddle.concat([h, log_probs.clip(min=MIN_LOG_PROB).astype(h.dtype)], -1)


def encoder_output(memory: Memory | None) -> Tensor:
    """x [B, S, C] of a memory.

    Raises:
        ValueError: there is none, for the model has no encoder.
    """
    if memory is None:
        raise ValueError("only a model with an encoder has an encoder's output, but this one has no encoder")
    return memory.x


def embeddings(model: Transformer) -> list[nn.Layer]:
    """Its tables of words: one or two."""
    tables = (model.source_embedding, model.target_embedding)
    return list({id(table): table for table in tables if table is not None}.values())


def real(h: Tensor, batch: Batch) -> np.ndarray:
    """The rows of h [B, T, C] that belong to real target tokens [N, C]."""
    return h.numpy()[batch.target_valid.numpy()]
