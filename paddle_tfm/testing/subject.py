"""What is checked: one component, alone and inside small real models, at every site where it may stand."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm.components import Entry
from paddle_tfm.data.batches import Batch
from paddle_tfm.data.vocabulary import BOS, PAD
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.model.build import build
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.plugins import Provider
from paddle_tfm.protocols import LayerSite
from paddle_tfm.recipe import loading as recipes
from paddle_tfm.recipe.model_plan import plan_model
from paddle_tfm.recipe.settings import ModelSettings
from paddle_tfm.recipe.sites import PER_SITE, at_site, sites
from paddle_tfm.registry import Registry, component_kind

VOCABULARY, FIRST_WORD, MAX_LENGTH = 13, 4, 32
PROBE = "probe of every way"


@dataclass(frozen=True)
class Size:
    """A small model, and the lengths of the sentences that go through it."""

    d_model: int
    num_heads: int
    d_ff: int
    encoder_layers: int
    decoder_layers: int
    source_lengths: tuple[int, ...]
    target_lengths: tuple[int, ...]


USUAL = Size(16, 2, 24, 2, 2, (5, 3, 4), (4, 6, 2))
ODD = Size(24, 3, 20, 1, 3, (7, 1, 3), (1, 5, 9))
ALONE = Size(8, 1, 12, 2, 1, (3,), (5,))


def batch(size: Size, extra_padding: int = 0, seed: int = 0, padding: int = PAD) -> Batch:
    """Random sentences of the size's lengths; what is written is made of words that were read. `padding` is the id that
    stands where nothing is."""
    rng = np.random.default_rng([seed, 77])
    source = [rng.integers(FIRST_WORD, VOCABULARY, length) for length in size.source_lengths]
    target = [rng.choice(words, length) for words, length in zip(source, size.target_lengths)]
    source_ids, source_valid = _pad(source, extra_padding, padding)
    target_ids, target_valid = _pad(target, extra_padding, padding)
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


def _pad(rows, extra: int, padding: int) -> tuple[np.ndarray, np.ndarray]:
    ids = np.full((len(rows), max(map(len, rows)) + extra), padding, dtype=np.int64)
    valid = np.zeros(ids.shape, dtype=bool)
    for i, row in enumerate(rows):
        ids[i, : len(row)], valid[i, : len(row)] = row, True
    return ids, valid


@contextmanager
def default_dtype(name: str) -> Iterator[None]:
    """Parameters made meanwhile are of this dtype."""
    before = paddle.get_default_dtype()
    paddle.set_default_dtype(name)
    try:
        yield
    finally:
        paddle.set_default_dtype(before)


def move(layer: nn.Layer, rng: np.random.Generator) -> None:
    """Values that a method begins with, as after some training: zeros are drawn, others keep their sign and change in size."""
    for parameter in layer.parameters():
        if getattr(parameter, "keep_initial", False):
            value, drawn = parameter.numpy(), rng.normal(size=parameter.shape)
            parameter.set_value(np.where(value == 0, drawn, value * np.exp(drawn / 2)).astype(value.dtype))


def open_gates(layer: nn.Layer, rng: np.random.Generator) -> None:
    """Kept parameters that are zero throughout, drawn: behind a closed gate there is nothing to see."""
    for parameter in layer.parameters():
        if getattr(parameter, "keep_initial", False) and not parameter.numpy().any():
            parameter.set_value(rng.normal(size=parameter.shape).astype(parameter.numpy().dtype))


@dataclass(frozen=True)
class Scene:
    """A size of model with the component at certain sites; models and batches are made anew whenever asked for."""

    subject: Subject
    size: Size
    settings: ModelSettings
    where: str

    def __str__(self) -> str:
        size = self.size
        return (
            f"{size.encoder_layers}+{size.decoder_layers} layers, d_model {size.d_model}, {size.num_heads} heads, "
            f"{self.where}"
        )

    def model(self, dtype: str = "float32", seed: int = 3, dropout: float = 0.0, moved: bool = True) -> Transformer:
        """In evaluation mode; `moved`: as after some training. Running statistics are not at their start, nor are the values
        that the method begins with: what holds where heads are not mixed yet, or a gate is shut, may not hold later."""
        settings = self.settings.model_copy(update={"dropout": dropout})
        with default_dtype(dtype):
            made = build(plan_model(settings, self.subject.registry), VOCABULARY, VOCABULARY, seed)
        if moved:
            move(made, np.random.default_rng([seed, 9]))
            made.train()
            with paddle.no_grad():
                made(self.batch(seed=5))
        made.eval()
        return made

    def batch(self, extra_padding: int = 0, seed: int = 0, padding: int = PAD) -> Batch:
        """Sentences of this scene's lengths, see `batch`."""
        return batch(self.size, extra_padding, seed, padding)

    def mine(self, model: nn.Layer) -> list[nn.Layer]:
        """The component's instances in a model."""
        return [layer for layer in model.sublayers(include_self=True) if isinstance(layer, self.subject.cls)]


class Subject:
    """A component with its options: what the checks look at.

    Raises:
        UserError: it cannot be built anywhere; the sentence says why.
    """

    def __init__(self, registry: Registry, kind: str, name: str, options: Mapping[str, object] | None = None):
        self.registry, self.kind, self.name = registry, kind, name
        self.cls = registry.entry(kind, name).load()
        self.spec = {"name": name, **self._parts(), **(options or {})}
        of_parts = [registry.entry(*part).load() for part in self._same_kind()]
        self.expected_failures: Mapping[str, str] = {
            check: reason
            for cls in [*of_parts, self.cls]
            for check, reason in getattr(cls, "expected_failures", {}).items()
        }
        self.refusals: dict[str, str] = self._accepted[2]
        """Site → the sentence with which the component refuses it."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def _parts(self) -> dict[str, object]:
        """Options that must be given and are components themselves: the one of base.yaml."""
        found = {}
        for key, option in self.registry.options(self.kind, self.name).items():
            nested = component_kind(option.annotation)
            if option.required and nested:
                part = self.base[nested[0]]
                found[key] = [part] if nested[1] else part
        return found

    def _same_kind(self) -> Iterator[tuple[str, str]]:
        """(kind, name) of its parts that are of its kind, such as the encodings of a chain: their expected failures are its own."""
        for part in list(self.registry.resolve(self.kind, self.spec, self.kind).walk())[1:]:
            if part.kind == self.kind:
                yield part.kind, part.name

    @cached_property
    def base(self) -> dict[str, object]:
        """The model section of base.yaml: what stands wherever the component does not."""
        return recipes.load("base").runs()[0].settings.model.model_dump()

    def build(self, site: LayerSite | None = None, **given: object):
        """The component alone."""
        given = {"site": site, "max_length": MAX_LENGTH, "dropout": 0.0, "inner_norm": None, **given}
        return self.registry.build(self.kind, self.spec, self.kind, **given)

    # ---------------------------------------------------------------------------------------------------- in models

    def settings(self, size: Size, chosen: object, **others: object) -> ModelSettings:
        """The model section with `chosen` as this kind's value, and `others` as theirs."""
        values = copy.deepcopy(self.base) | {
            "d_model": size.d_model,
            "num_heads": size.num_heads,
            "d_ff": size.d_ff,
            "encoder_layers": size.encoder_layers,
            "decoder_layers": size.decoder_layers,
            "dropout": 0.0,
            "embedding_dropout": None,
            "max_length": MAX_LENGTH,
            self.kind: chosen,
            **others,
        }
        return ModelSettings(**values)

    def at(self, places: list[str]) -> object:
        """A per-site value: this component at `places`, base.yaml's elsewhere."""
        value: dict[str, dict[str, object]] = {}
        for stack, sublayer in sites(self.kind):
            usual = at_site(self.kind, self.base[self.kind], stack, sublayer)[1]
            chosen = self.spec if f"{stack}.{sublayer}" in places else usual
            if chosen is not None:
                value.setdefault(stack, {})[sublayer] = chosen
        return value

    def _refusal(self, chosen: object) -> str:
        """Why no model can be built with this value; "" if one can."""
        try:
            build(plan_model(self.settings(USUAL, chosen), self.registry), VOCABULARY, VOCABULARY)
        except RecipeError as error:
            return "; ".join(dict.fromkeys(problem.message for problem in error.problems))
        except UserError as error:
            return str(error)
        return ""

    @cached_property
    def _accepted(self) -> tuple[object, list[tuple[str, object]], dict[str, str]]:
        """(this kind's value with the component wherever it may stand, the same for each place alone, refusals)."""
        if self.kind not in ModelSettings.model_fields:
            return None, [], {}
        if self.kind not in PER_SITE:
            if refusal := self._refusal(self.spec):
                raise UserError(f"{self} cannot be built: {refusal}")
            return self.spec, [], {}
        alone, refusals, accepted = [], {}, []
        for stack, sublayer in sites(self.kind):
            name = f"{stack}.{sublayer}"
            chosen = self.at([name])
            refusal = self._refusal(chosen)
            if refusal:
                refusals[name] = refusal
            else:
                accepted.append(name)
                alone.append((name, chosen))
        if not accepted:
            raise UserError(f"{self} cannot be built at any site: {'; '.join(dict.fromkeys(refusals.values()))}")
        everywhere = self.at(accepted)
        if refusal := self._refusal(everywhere):
            raise UserError(f"{self} cannot stand at several sites at once: {refusal}")
        return everywhere, alone, refusals

    def site(self, prefer: str = "") -> LayerSite:
        """A site where the component may stand: the one preferred, if it may."""
        names = [name for name, _ in self._accepted[1]]
        stack, sublayer = (prefer if prefer in names else names[0]).split(".")
        return LayerSite(stack, sublayer, 0, USUAL.encoder_layers, USUAL.decoder_layers)

    @property
    def places(self) -> list[str]:
        """Where it may stand, such as "decoder.cross"."""
        return [name for name, _ in self._accepted[1]]

    @cached_property
    def scenes(self) -> list[Scene]:
        """Several sizes with the component wherever it may stand, and each place alone."""
        everywhere, alone, refusals = self._accepted
        where = "at every site" if not refusals else "at " + ", ".join(name for name, _ in alone)
        found = [
            Scene(self, size, self.settings(size, everywhere), where)
            for size in (USUAL, ODD, ALONE)
            if self._fits(size, everywhere)
        ]
        if self.kind == "attention":
            found.append(Scene(self, USUAL, self._probed(everywhere), f"{where}, under encodings of every way"))
        if len(alone) > 1:
            found += [Scene(self, USUAL, self.settings(USUAL, chosen), f"at {name}") for name, chosen in alone]
        return found

    def _probed(self, everywhere: object) -> ModelSettings:
        """With an encoding that acts in all ways that the attention accepts."""
        from paddle_tfm.testing.probe import Probe

        self.registry.add(Entry("position", PROBE, Probe, Provider("paddle_tfm", "testing", "")))
        probe = {"name": PROBE, "ways": sorted(self.cls.supports)}
        rest = {"name": PROBE, "ways": sorted(self.cls.supports - {"embed"})}
        places = [place.split(".") for place in self.places]
        position: dict[str, object] = {"encoder": self.base["position"], "decoder": {"self": self.base["position"]}}
        if ["encoder", "self"] in places:
            position["encoder"] = probe
        if ["decoder", "self"] in places:
            position["decoder"]["self"] = probe
        if ["decoder", "cross"] in places:
            position["decoder"]["cross"] = rest
        return self.settings(USUAL, everywhere, position=position)

    def _fits(self, size: Size, chosen: object) -> bool:
        try:
            build(plan_model(self.settings(size, chosen), self.registry), VOCABULARY, VOCABULARY)
        except UserError:
            return False
        return True


def real(h: Tensor, given: Batch) -> np.ndarray:
    """The rows of h [B, T, C] that belong to real target tokens, as an array."""
    return h.numpy()[given.target_valid.numpy()]
