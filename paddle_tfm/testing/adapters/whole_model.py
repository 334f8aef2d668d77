"""A whole encoder-decoder model of anybody's, `model(source, target_in) -> logits`, looked at from outside."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.data.batches import Batch
from paddle_tfm.errors import UserError
from paddle_tfm.testing.adapters.arguments import constructor, first
from paddle_tfm.testing.invariants import WHOLE_MODEL
from paddle_tfm.testing.models.model_under_test import Dtype, ModelUnderTest, drop_nothing, same_draws

VOCABULARY, MAX_LENGTH, FIRST_WORD, WORD = 17, 96, 3, 5
LENGTHS = ((6, 3, 4), (4, 6, 2))  # of sources, of targets
LONG_LENGTHS = ((70, 3, 4), (4, 72, 2))
EQUAL_LENGTHS = ((4, 2, 4, 3), (4, 3, 2, 4))  # as many sentences as tokens and heads
STEPS = 30  # of training, after which a gate that was shut is open
LONGEST = max(map(max, LONG_LENGTHS))
SIZES = {"d_model": 32, "num_heads": 4, "head_dim": 8, "d_ff": 48, "layers": 2, "vocabulary": VOCABULARY}


class WholeModel(ModelUnderTest[nn.Layer]):
    """A model class, built small; ids from 3 on are words, 1 begins a target (2 if 1 is `pad_id`), `pad_id` pads.

    Raises:
        UserError: the constructor needs what the kit does not know, or the model cannot be built or called.
    """

    foreign = True
    training_dtype: Dtype = "float32"
    training_tolerance = 5e-5
    steps, learning_rate, loss_ratio = 120, 2e-3, 0.5
    trained_for = 0
    """Steps that `model()` makes before it gives a model."""

    def __init__(self, cls: type, options: Mapping[str, object], pad_id: int = 0):
        self.cls, self.options, self.pad_id = cls, options, pad_id
        self.expected_failures: Mapping[str, str] = getattr(cls, "expected_failures", {})
        self.kind, self.name = WHOLE_MODEL, cls.__name__
        self.lengths: tuple[tuple[int, ...], tuple[int, ...]] = LENGTHS
        self.scenes = [self]
        try:
            model = self.model()
            self.built_with = frozenset(path for path, _ in model.named_buffers())
            self.logits(model, self.batch())
        except UserError:
            raise
        except Exception as error:
            text = " ".join(str(error).split())[:300]
            wrap = (
                "; where a model is called otherwise, check a class around it" if isinstance(error, TypeError) else ""
            )
            raise UserError(
                f"{cls.__name__}(…)(source [3, 6], target_in [3, 6]) fails: {type(error).__name__}: {text}{wrap}"
            ) from error
        long, equal = copy.copy(self), copy.copy(self)
        long.lengths, equal.lengths = LONG_LENGTHS, EQUAL_LENGTHS
        self.scenes_of_equal_sizes = (equal,)
        refusal = long._refusal()
        self.long_scenes = () if refusal else (long,)
        self.notes = (f"not with texts of {LONGEST} words, which it does not take: {refusal}",) if refusal else ()
        """What was not looked at, and why: sentences for the report."""

    def _refusal(self) -> str:
        """Why the model does not take such texts: one with a table of 64 positions need not; "" if it does."""
        try:
            self.logits(self.model(), self.batch())
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        return ""

    def __str__(self) -> str:
        names = {LONG_LENGTHS: f"texts of {LONGEST} words", EQUAL_LENGTHS: "4 sentences of 4 words"}
        return names.get(self.lengths, "")

    def model(self, dtype: Dtype = "float32", seed: int = 1, dropout: float = 0.0, moved: bool = True) -> nn.Layer:
        """In evaluation mode, with its initial values: what training would move is not known of somebody else's
        class."""
        ids = {"pad_id": self.pad_id, "bos_id": self.begin}
        values = {**SIZES, **ids, "max_length": MAX_LENGTH, "dropout": dropout}
        paddle.seed(seed)
        model = self.cls(**constructor(self.cls, values, self.options))
        if dropout == 0.0:
            drop_nothing(model)
        if self.trained_for:
            self._train(model)
        model.eval()
        return model

    def after_training(self) -> WholeModel:
        """The same, its models after a few steps of training."""
        later = copy.copy(self)
        later.__dict__.pop("evaluated_model", None)
        later.trained_for = STEPS
        return later

    def _train(self, model: nn.Layer) -> None:
        model.train()
        adam = paddle.optimizer.Adam(self.learning_rate, parameters=model.parameters())
        for _ in range(self.trained_for):
            self.losses(model, self.batch())[1].backward()
            adam.step()
            adam.clear_grad()

    @property
    def begin(self) -> int:
        """The id that begins a target."""
        return 1 if self.pad_id != 1 else 2

    def buffers(self, model: nn.Layer) -> dict[str, Tensor]:
        return {path: buffer for path, buffer in model.named_buffers() if path in self.built_with}

    # ---------------------------------------------------------------------------------------------------------- batches

    def batch(self, extra_padding: int = 0, seed: int = 0) -> Batch:
        """Each target token is the word of the source at its place, if there is one."""
        rng = np.random.default_rng([seed, 3])
        words = [i for i in range(FIRST_WORD, VOCABULARY) if i != self.pad_id]
        longest = max(map(max, self.lengths))
        source, target_in = (
            np.full((len(self.lengths[0]), longest + extra_padding), self.pad_id, dtype=np.int64) for _ in range(2)
        )
        for ids, lengths in zip((source, target_in), self.lengths):
            for row, length in zip(ids, lengths):
                row[:length] = rng.choice(words, length)
        target_in[:, 0] = self.begin
        source_valid, target_valid = source != self.pad_id, target_in != self.pad_id
        tokens = int((source_valid & target_valid).sum())
        parts = (source, source_valid, source, target_in, source, source, target_valid)
        return Batch(*parts, extra=0, index=np.arange(len(source)), tokens=tokens).tensors()

    def padded_batches(self) -> Iterator[tuple[str, Batch]]:
        batch, longer = self.batch(), self.batch(extra_padding=4)
        source = {"source": longer.source, "source_valid": longer.source_valid, "copy_ids": longer.copy_ids}
        target = {"target_in": longer.target_in, "target_valid": longer.target_valid}
        yield "with 4 more columns of padding in the source", batch.replace(**source)
        yield "with 4 more columns of padding in the target", batch.replace(**target)

    def without_source(self, batch: Batch, rows: list[int]) -> Batch:
        source, valid = batch.source.numpy().copy(), batch.source_valid.numpy().copy()
        source[rows], valid[rows] = self.pad_id, False
        return batch.replace(source=paddle.to_tensor(source), source_valid=paddle.to_tensor(valid))

    def other_ids(self, ids: Tensor, step: int = 1) -> Tensor:
        return (ids - FIRST_WORD + step) % (VOCABULARY - FIRST_WORD) + FIRST_WORD

    def other_words(self, ids: Tensor, step: int = 1) -> Tensor:
        return paddle.where((ids >= FIRST_WORD) & (ids != self.pad_id), self.other_ids(ids, step), ids)

    def different_words(self, count: int) -> Tensor:
        """So many words, each another one [count]."""
        words = [i for i in range(FIRST_WORD, VOCABULARY) if i != self.pad_id]
        return paddle.to_tensor(words[:count], dtype="int64")

    def last_word_changed(self, ids: Tensor) -> Tensor:
        """The last word of the longest text is another one."""
        changed = ids.clone()
        row = int(np.argmax((ids.numpy() != self.pad_id).sum(1)))
        changed[row, 5] = next(i for i in range(FIRST_WORD, VOCABULARY) if i not in (self.pad_id, int(ids[row, 5])))
        return changed

    # ---------------------------------------------------------------------------------------------------------- outputs

    def logits(self, model: nn.Layer, batch: Batch) -> np.ndarray:
        """[B, T, V]"""
        with paddle.no_grad(), same_draws(model):
            return self._logits(model, batch).numpy()

    def _logits(self, model: nn.Layer, batch: Batch) -> Tensor:
        """[B, T, V], also of a model that returns [B · T, V], as a loss takes it."""
        logits = first(model(batch.source, batch.target_in))
        rows, columns = batch.target_in.shape
        return logits.reshape([rows, columns, -1]) if logits.shape[:-1] == [rows * columns] else logits

    def decoder_outputs(self, model: nn.Layer, batch: Batch) -> np.ndarray:
        return self.logits(model, batch)

    def outputs(self, model: nn.Layer, batch: Batch) -> np.ndarray:
        """Logits at real target tokens [N, V]."""
        return self.logits(model, batch)[batch.target_valid.numpy()]

    def losses(self, model: nn.Layer, batch: Batch, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        with same_draws(model):
            logits = self._logits(model, batch)
        length = min(batch.target_out.shape[1], logits.shape[1])
        logits, target = logits[:, :length], batch.target_out[:, :length]
        known = batch.target_valid[:, :length] & (target != self.pad_id)
        losses = F.cross_entropy(logits, target.unsqueeze(-1), reduction="none").squeeze(-1)
        total = paddle.where(known, losses, paddle.zeros_like(losses)).sum()
        return total, total
