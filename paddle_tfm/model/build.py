"""Build a Transformer from its plan: construct every component for its site, collect all errors, set initial values."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

import paddle

from paddle_tfm import randomness
from paddle_tfm.components import ComponentPlan
from paddle_tfm.data.vocabulary import PAD, UNKNOWN
from paddle_tfm.errors import Problem, RecipeError
from paddle_tfm.language import _
from paddle_tfm.layers import Embedding
from paddle_tfm.model.initialize import initialize
from paddle_tfm.model.stack import Decoder, Encoder, Layer, Stack
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import LayerSite, Norm, Placement, PositionalEncoding
from paddle_tfm.recipe.model_plan import NORMS_INSIDE, ModelPlan, asks

AnyStack = TypeVar("AnyStack", bound=Stack)


def build(plan: ModelPlan, source_vocabulary: int, target_vocabulary: int, seed: int = 1) -> Transformer:
    """A Transformer whose initial values are a function of (seed, parameter path).

    Raises:
        RecipeError: all problems of the plan and all errors of constructors, in one exception.
    """
    builder = _Builder(plan, seed)
    model = builder.transformer(source_vocabulary, target_vocabulary)
    problems = list(dict.fromkeys([*plan.problems, *builder.problems]))
    if problems or model is None:
        raise RecipeError("recipe", problems)
    return model


class _Builder:
    """Builds every component that can be built, so that all errors are reported at once. A component that has problems,
    or that depends on one that has, is None."""

    def __init__(self, plan: ModelPlan, seed: int):
        self.plan, self.settings, self.seed = plan, plan.settings, seed
        self.problems: list[Problem] = []

    def transformer(self, source_vocabulary: int, target_vocabulary: int) -> Transformer | None:
        settings = self.settings
        if settings.share_embeddings and source_vocabulary != target_vocabulary:
            sentence = "needs one vocabulary for both sides; set `vocabulary.shared=true`"
            self.problems.append(Problem("model.share_embeddings", sentence))
        source_embedding = target_embedding = None
        if settings.decoder_layers:
            target_embedding = self._embedding(target_vocabulary)
        if settings.encoder_layers and not (settings.share_embeddings and settings.decoder_layers):
            source_embedding = self._embedding(source_vocabulary)
        kwargs: dict[str, object] = {"vocab_size": target_vocabulary, "unknown_id": UNKNOWN, "pad_id": PAD}
        if settings.decoder_layers:
            kwargs["embedding"] = target_embedding
        elif settings.share_embeddings:
            kwargs["embedding"] = source_embedding
        encoder = self._stack(Encoder, "encoder") if settings.encoder_layers else None
        decoder = self._stack(Decoder, "decoder") if settings.decoder_layers else None
        head = self._build(self.plan.head, "head", **kwargs)
        if self._incomplete():
            return None
        model = Transformer(
            source_embedding,
            target_embedding,
            encoder,
            decoder,
            head,
            settings.max_length,
            settings.labels,
            settings.source_end,
            {of: kernel.build() for of, kernel in self.plan.kernels.items()},
        )
        initializer = self._build(self.plan.initializer, "initializer")
        if initializer is not None:
            try:
                initialize(model, initializer, self.seed)
            except ValueError as error:
                component = self.plan.initializer
                self.problems.append(
                    Problem(component.path, _("'{name}' refuses: {why}").format(name=component.name, why=error))
                )
        return model

    def _incomplete(self) -> bool:
        return bool(self.problems or self.plan.problems)

    def _embedding(self, vocabulary: int) -> Embedding:
        return Embedding(vocabulary, self.settings.d_model, PAD, UNKNOWN, self.settings.scale_embedding)

    def _build(self, component: ComponentPlan, key: str, **kwargs: object) -> Any:
        """Build a component; its random draws are a function of (seed, key). None if its plan has problems, or if its
        constructor raises: then its problems are collected."""
        if component.problems:
            return None
        paddle.seed(randomness.digest(self.seed, "build", key) >> 1)
        try:
            return component.build(**{"d_model": self.settings.d_model, **kwargs})
        except RecipeError as error:
            self.problems += error.problems
            return None

    def _norm(self, site: LayerSite, width: int, role: str = "norm") -> Norm:
        """Build a norm for a site; an error of its constructor is raised to the component that requests the norm."""
        paddle.seed(randomness.digest(self.seed, "build", f"{site}.{role}") >> 1)
        norm = self.plan.component("norm", site.stack, site.sublayer)
        return norm.build(d_model=width, site=site, max_length=self.settings.max_length)

    def _has_norm(self, *sites: LayerSite) -> bool:
        return not any(self.plan.component("norm", site.stack, site.sublayer).problems for site in sites)

    def _stack(self, cls: type[AnyStack], stack: str) -> AnyStack | None:
        settings, plan = self.settings, self.plan
        depth = settings.encoder_layers if stack == "encoder" else settings.decoder_layers
        layers = [layer for i in range(depth) if (layer := self._layer(stack, i)) is not None]
        encodings = self._encodings(stack, "self", depth)
        beside_encoder = stack == "decoder" and settings.encoder_layers > 0
        cross_encodings = self._encodings(stack, "cross", depth) if beside_encoder else []
        final_norm, site = None, plan.site(stack, "final", depth)
        placement = plan.component("placement", stack, "self")
        if placement.cls is not None and placement.cls.final_norm and self._has_norm(site):
            try:
                final_norm = self._norm(site, settings.d_model)
            except RecipeError as error:
                self.problems += error.problems
        if self._incomplete():
            return None
        dropout = settings.dropout if settings.embedding_dropout is None else settings.embedding_dropout
        return cls(stack, layers, encodings, cross_encodings, final_norm, dropout)

    def _layer(self, stack: str, i: int) -> Layer | None:
        across = stack == "decoder" and self.plan.has_cross_attention
        names = ["self", "cross", "feed_forward"] if across else ["self", "feed_forward"]
        sites = [self.plan.site(stack, name, i) for name in names]
        branches = {site.sublayer: self._branch(site) for site in sites}
        placement: Placement | None = None
        if self._has_norm(*sites):
            kwargs = {"sites": sites, "norm": self._norm, "dropout": self.settings.dropout}
            placement = self._build(self.plan.component("placement", stack, "self"), f"{stack}.{i}.placement", **kwargs)
        if self._incomplete() or placement is None:
            return None
        return Layer(branches["self"], branches.get("cross"), branches["feed_forward"], placement)

    def _branch(self, site: LayerSite) -> Any:
        settings, placement = self.settings, self.plan.component("placement", site.stack, "self")
        kind = "feed_forward" if site.sublayer == "feed_forward" else "attention"
        kwargs: dict[str, object] = {"dropout": settings.dropout, "site": site, **dict.fromkeys(NORMS_INSIDE)}
        if kind == "feed_forward":
            kwargs["d_ff"] = settings.d_ff
        else:
            kwargs |= {"num_heads": settings.num_heads, "max_length": settings.max_length}
        for name in NORMS_INSIDE:
            if asks(placement, name, site.sublayer) and self._has_norm(site):
                kwargs[name] = partial(self._norm, site, role=name)
        return self._build(self.plan.component(kind, site.stack, site.sublayer), str(site), **kwargs)

    def _encodings(self, stack: str, sublayer: str, depth: int) -> list[PositionalEncoding]:
        """One encoding for the stack, or one for each layer if it is `per_layer`; [] if it cannot be built."""
        component = self.plan.at("position", stack, sublayer)
        if component is None:
            return [PositionalEncoding()]
        attention = self.plan.component("attention", stack, sublayer)
        if component.problems or attention.problems:
            return []
        try:
            geometry = self.plan.geometry(stack, sublayer)
        except ValueError as error:
            self.problems.append(
                Problem(attention.path, _("'{name}' refuses: {why}").format(name=attention.name, why=error))
            )
            return []
        kwargs = {"num_heads": geometry.score_heads, "head_dim": geometry.head_dim}
        encodings: list[PositionalEncoding] = []
        while not encodings or (encodings[0].per_layer and len(encodings) < depth):
            site = self.plan.site(stack, sublayer, len(encodings))
            key = f"{stack}.{sublayer}.{len(encodings)}.position"
            encoding = self._build(component, key, site=site, max_length=self.settings.max_length, **kwargs)
            if encoding is None:
                return []
            if encodings:
                encoding.share(encodings[0])
            encodings.append(encoding)
        self._require_supported(encodings[0], component, attention, sublayer)
        return encodings

    def _require_supported(
        self, encoding: PositionalEncoding, component: ComponentPlan, attention: ComponentPlan, sublayer: str
    ) -> None:
        """Collect in which ways an encoding acts that its attention does not support. They may depend on its options: a
        chain acts in the ways of its parts."""
        uses, supports = encoding.uses(), attention.cls.supports if attention.cls is not None else frozenset()
        if sublayer == "cross" and "embed" in uses:
            sentence = (
                f"'{component.name}' is added to embeddings, so it has no place in cross-attention; choose it per stack"
            )
            self.problems.append(Problem(component.path, sentence))
        if refused := uses - supports - {"embed"}:
            sentence = (
                f"'{component.name}' acts through {', '.join(sorted(refused))}, which attention '{attention.name}' "
                f"does not support (it supports {', '.join(sorted(supports)) or 'nothing'})"
            )
            self.problems.append(Problem(component.path, sentence))
