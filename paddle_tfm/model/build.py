"""From a recipe's model section to a Transformer: the right component at each site, refusals collected, initial values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import paddle
from paddle import nn

from paddle_tfm import randomness
from paddle_tfm.data.vocabulary import PAD, UNKNOWN
from paddle_tfm.errors import Problem, RecipeError
from paddle_tfm.layers import Dropout, Embedding
from paddle_tfm.model.stack import Decoder, Encoder, Layer
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import LayerSite, Placement, PositionalEncoding, Profile, Tap
from paddle_tfm.recipe.settings import BOTH, ModelSettings, at_site
from paddle_tfm.registry import Registry, Spec, parameters


def build(
    model: ModelSettings, registry: Registry, source_vocabulary: int, target_vocabulary: int, seed: int = 1
) -> Transformer:
    """A Transformer with initial values that are a function of (seed, parameter path).

    Raises:
        RecipeError: every component that refused its site or its neighbour, all at once.
    """
    return _Builder(model, registry, seed).transformer(source_vocabulary, target_vocabulary)


class _Builder:
    def __init__(self, model: ModelSettings, registry: Registry, seed: int):
        self.model, self.registry, self.seed = model, registry, seed
        self.settings = model.model_dump()
        self.problems: list[Problem] = []

    def transformer(self, source_vocabulary: int, target_vocabulary: int) -> Transformer:
        model = self.model
        if model.share_embeddings and source_vocabulary != target_vocabulary:
            where = "model.share_embeddings"
            self.problems.append(Problem(where, "needs one vocabulary for both sides; set vocabulary.shared=true"))
        source_embedding = target_embedding = None
        if model.decoder_layers:
            target_embedding = self._embedding(target_vocabulary)
        if model.encoder_layers and not (model.share_embeddings and model.decoder_layers):
            source_embedding = self._embedding(source_vocabulary)
        given = {"vocab_size": target_vocabulary, "unknown_id": UNKNOWN, "pad_id": PAD}
        if model.decoder_layers:
            given["embedding"] = target_embedding
        elif model.share_embeddings:
            given["embedding"] = source_embedding
        built = Transformer(
            source_embedding,
            target_embedding,
            self._stack("encoder") if model.encoder_layers else None,
            self._stack("decoder") if model.decoder_layers else None,
            self._one("head", "model.head", model.head, "head", **given),
            model.max_length,
            model.labels,
        )
        if model.shape != BOTH and built.head is not None and built.head.extends_vocabulary:
            sentence = (
                f"'{Spec.parse(model.head).name}' copies words of a source into a target, but a model that is "
                f"{model.shape} has only one of them"
            )
            self.problems.append(Problem("model.head", sentence))
        if self.problems:
            raise RecipeError("recipe", list(dict.fromkeys(self.problems)))
        initializer = self._one("initializer", "model.initializer", model.initializer, "initializer")
        if self.problems:
            raise RecipeError("recipe", self.problems)
        initialize(built, initializer, self.seed)
        return built

    def _embedding(self, vocabulary: int) -> Embedding:
        return Embedding(vocabulary, self.model.d_model, PAD, UNKNOWN, self.model.scale_embedding)

    def _one(self, kind: str, path: str, spec: object, place: str, **given):
        """A component, its own draws a function of (seed, place); a refusal is collected and a blank returned."""
        paddle.seed(randomness.digest(self.seed, "build", place) >> 1)
        try:
            return self.registry.build(kind, spec, path, d_model=self.model.d_model, **given)
        except RecipeError as error:
            self.problems += error.problems
            return None

    def _at(self, kind: str, site: LayerSite) -> tuple[str, object]:
        below, spec = at_site(kind, self.settings[kind], site.stack, site.sublayer)
        return f"model.{kind}{below}", spec

    def _norm(self, site: LayerSite, width: int, role: str = "norm") -> nn.Layer:
        path, spec = self._at("norm", site)
        given = {"site": site, "max_length": self.model.max_length}
        paddle.seed(randomness.digest(self.seed, "build", f"{site}.{role}") >> 1)
        return self.registry.build("norm", spec, path, d_model=width, **given)

    def _site(self, stack: str, sublayer: str, layer: int) -> LayerSite:
        return LayerSite(stack, sublayer, layer, self.model.encoder_layers, self.model.decoder_layers)

    def _stack(self, stack: str) -> nn.Layer | None:
        model = self.model
        count = model.encoder_layers if stack == "encoder" else model.decoder_layers
        placement = self._class("placement", self._site(stack, "self", 0))
        layers = [self._layer(stack, i, placement) for i in range(count)]
        encodings = self._encodings(stack, "self", count)
        across = stack == "decoder" and model.encoder_layers > 0
        cross_encodings = self._encodings(stack, "cross", count) if across else []
        final_norm = None
        if placement is not None and placement.final_norm:
            site = self._site(stack, "final", count)
            final_norm = self._collected(lambda: self._norm(site, model.d_model))
        if self.problems:
            return None
        dropout = model.dropout if model.embedding_dropout is None else model.embedding_dropout
        kind = Encoder if stack == "encoder" else Decoder
        return kind(stack, layers, encodings, cross_encodings, final_norm, dropout)

    def _collected(self, make):
        try:
            return make()
        except RecipeError as error:
            self.problems += error.problems
            return None

    def _class(self, kind: str, site: LayerSite) -> type | None:
        path, spec = self._at(kind, site)
        if problems := self.registry.check(kind, spec, path):
            self.problems += problems
            return None
        return self.registry.entry(kind, Spec.parse(spec).name).load()

    def _layer(self, stack: str, i: int, placement: type[Placement] | None) -> Layer | None:
        across = stack == "decoder" and self.model.encoder_layers > 0
        names = ["self", "cross", "feed_forward"] if across else ["self", "feed_forward"]
        sites = [self._site(stack, name, i) for name in names]
        branches = {site.sublayer: self._branch(site, placement) for site in sites}
        path, spec = self._at("placement", sites[0])
        wrapping = self._one(
            "placement",
            path,
            spec,
            f"{stack}.{i}.placement",
            sites=sites,
            norm=self._norm,
            dropout=self.model.dropout,
        )
        if self.problems:
            return None
        return Layer(branches["self"], branches.get("cross"), branches["feed_forward"], wrapping)

    def _branch(self, site: LayerSite, placement: type[Placement] | None) -> nn.Layer | None:
        model = self.model
        kind = "feed_forward" if site.sublayer == "feed_forward" else "attention"
        path, spec = self._at(kind, site)
        given: dict[str, object] = {"dropout": model.dropout, "site": site, "inner_norm": None}
        if kind == "feed_forward":
            given["d_ff"] = model.d_ff
        else:
            given |= {"num_heads": model.num_heads, "max_length": model.max_length}
        if placement is not None and placement.inner_norm:
            given["inner_norm"] = lambda width: self._norm(site, width, "inner_norm")
            cls = self._class(kind, site)
            if cls is not None and "inner_norm" not in parameters(cls):
                sentence = (
                    f"'{Spec.parse(spec).name}' has no norm before its output projection, which the placement asks for"
                )
                self.problems.append(Problem(path, sentence))
        return self._one(kind, path, spec, str(site), **given)

    def _encodings(self, stack: str, sublayer: str, count: int) -> list[nn.Layer]:
        site = self._site(stack, sublayer, 0)
        path, spec = self._at("position", site)
        if spec is None:
            return [PositionalEncoding()]
        attention = self._class("attention", site)
        if attention is None:
            return []
        attention_spec = Spec.parse(self._at("attention", site)[1])
        geometry = self._geometry(attention, attention_spec, self._at("attention", site)[0])
        if geometry is None:
            return []
        made = []
        while not made or (made[0] is not None and made[0].per_layer and len(made) < count):
            given = {"site": self._site(stack, sublayer, len(made)), "max_length": self.model.max_length}
            given |= {"num_heads": geometry.score_heads, "head_dim": geometry.head_dim}
            made.append(self._one("position", path, spec, f"{stack}.{sublayer}.{len(made)}.position", **given))
        if made[0] is not None:
            self._compatible(made[0], Spec.parse(spec).name, attention, attention_spec.name, site, path)
        return made

    def _geometry(self, attention: type, spec: Spec, path: str):
        given: Mapping[str, object] = {"d_model": self.model.d_model, "num_heads": self.model.num_heads}
        try:
            return attention.geometry(**{**given, **spec.options})
        except ValueError as error:
            self.problems.append(Problem(path, f"'{spec.name}' refuses: {error}"))
            return None

    def _compatible(
        self, encoding, name: str, attention: type, attention_name: str, site: LayerSite, path: str
    ) -> None:
        uses = encoding.uses()
        if site.sublayer == "cross" and "embed" in uses:
            self.problems.append(
                Problem(
                    path, f"'{name}' is added to embeddings, so it has no place in cross-attention; choose it per stack"
                )
            )
        if refused := uses - attention.supports - {"embed"}:
            self.problems.append(
                Problem(
                    path,
                    f"'{name}' acts through {', '.join(sorted(refused))}, which attention '{attention_name}' does not "
                    f"honour (it accepts {', '.join(sorted(attention.supports)) or 'nothing'})",
                )
            )


# ------------------------------------------------------------------------------------------------------ initial values


def initialize(model: Transformer, initializer, seed: int) -> None:
    """Draw every matrix and table that is not marked by `keep_initial` from (seed, its path); zero the padding rows; apply the
    placements' branch gain; tell every dropout its path, every parameter its name."""
    tables = {id(layer.weight): layer for layer in model.sublayers() if isinstance(layer, (Embedding, nn.Embedding))}
    for path, parameter in model.named_parameters():
        parameter.name = path
        if parameter.ndim < 2 or getattr(parameter, "keep_initial", False):
            continue
        role = "embedding" if id(parameter) in tables else "weight"
        drawn = initializer.draw(randomness.generator(seed, "initial", path), tuple(parameter.shape), role)
        if role == "embedding" and isinstance(tables[id(parameter)], Embedding):
            drawn[tables[id(parameter)].pad_id] = 0.0
        parameter.set_value(np.asarray(drawn, dtype=np.dtype(str(parameter.dtype).removeprefix("paddle."))))
    for layer in (layer for stack in model.stacks().values() for layer in stack.layers):
        if layer.placement.branch_gain != 1.0:
            for weight in (weight for branch in layer.branches() for weight in branch.branch_weights()):
                weight.set_value(weight * layer.placement.branch_gain)
    for path, layer in model.named_sublayers():
        if isinstance(layer, Dropout):
            layer.path = path


def calibrate(model: Transformer, batch) -> None:
    """Let placements set initial values from one pass over data (Admin). Free of dropout; nothing to do for most."""
    base = Placement.calibrate.__func__
    wanting = {
        name: stack
        for name, stack in model.stacks().items()
        if type(stack.layers[0].placement).calibrate.__func__ is not base
    }
    if not wanting:
        return
    training, tap = model.training, Tap(recording=True)
    model.eval()
    with paddle.no_grad():
        model(batch, tap)
    if training:
        model.train()
    for name, stack in wanting.items():
        seen = [(path, value) for path, value in tap.recorded if path.startswith(f"{name}.")]
        entry = next(float(value.var()) for path, value in seen if path == f"{name}.input")
        branches = [float(value.var()) for path, value in seen if path.endswith(".branch")]
        placements = [layer.placement for layer in stack.layers]
        type(placements[0]).calibrate(placements, Profile(entry, branches))
