"""muP: what a step changes in activations stays as the model is widened. What grows with the width is read off the shapes of
two models, as github.com/microsoft/mup does it."""

import numpy as np
import paddle
import pytest

from paddle_tfm import build_model, create_registry, load_recipe
from paddle_tfm.errors import RecipeError
from paddle_tfm.model.initialize import initialize
from paddle_tfm.protocols import Initializer, Tap, is_decayed
from paddle_tfm.sweep.check import check

NARROW, WIDE = 32, 256
VOCABULARY, RATE = 13, 2e-3
BATCH = {"source_lengths": (5, 3, 4) * 4, "target_lengths": (4, 6, 2) * 4}


def model_of(width, *overrides, vocabulary=VOCABULARY):
    """A small model with d_ff twice its width and heads of one size."""
    shape = [f"model.d_model={width}", f"model.d_ff={2 * width}", f"model.num_heads={width // 16}"]
    fixed = ["model.encoder_layers=2", "model.decoder_layers=2", "model.head=linear", "model.dropout=0.0"]
    return build_model(
        "base", [*shape, *fixed, *overrides], source_vocabulary=vocabulary, target_vocabulary=vocabulary, seed=1
    )


def activations(model, batch):
    """Path → what each branch adds to the residual, and the logits."""
    tap = Tap(recording=True)
    with paddle.no_grad():
        h, _ = model(batch, tap)
        recorded = {path: value.numpy() for path, value in tap.recorded if path.endswith(".branch")}
        return {**recorded, "logits": model.head.output(h).numpy()}


def changes(registry, batch, width, optimizer, overrides):
    """The coordinate check of github.com/microsoft/mup: how much four steps change activations, of each branch and the
    logits."""
    model = model_of(width, f"model.initializer={{name: mup, base_width: {NARROW}}}", *overrides)
    model.eval()  # no dropout
    trained = [parameter for parameter in model.parameters() if not parameter.stop_gradient]
    rule = registry.build("optimizer", optimizer).create(trained)
    rule.set_lr(RATE)
    before = activations(model, batch)
    for _ in range(4):
        (model.loss(batch) / batch.tokens).backward()
        with paddle.utils.unique_name.guard():
            rule.step()
        rule.clear_grad()
    after = activations(model, batch)
    return np.array([np.abs(value - before[path]).mean() for path, value in after.items()])


@pytest.mark.parametrize(
    "optimizer, overrides",
    [
        ("adam", ()),
        ("lion", ()),
        ("adafactor", ()),
        ("adam", ["model.scale_embedding=false"]),
        ("adam", ["model.placement=hyper_connections"]),
    ],
)
def test_steps_change_activations_by_as_much_at_each_width(registry, make_batch, optimizer, overrides):
    """The geometric mean over branches; with the same rate for all it grows with the width."""
    assert registry.build("optimizer", optimizer).adam_like
    batch = make_batch(**BATCH)
    narrow, wide = (changes(registry, batch, width, optimizer, overrides) for width in (NARROW, WIDE))
    assert 0.7 < np.exp(np.log(wide / narrow).mean()) < 1.4 and 0.6 < wide[-1] / narrow[-1] < 1.6


# ------------------------------------------------------------------------------------------------- what is which matrix


class Recorder(Initializer):
    """It keeps the sites."""

    def inspect(self, sites):
        self.sites = {site.path: site for site in sites}

    def draw(self, rng, shape, role):
        return np.zeros(shape, "float32")


ONLY_SELF = ("canon", "convolution", "exclusive", "interleaved", "local", "recurrent", "synthesizer", "linear",
             "value_residual")  # fmt: skip
SPECS = {
    **{("attention", name): f"{{self: {name}, cross: multihead}}" for name in ONLY_SELF},
    **{
        ("attention", name): f"{{encoder: multihead, decoder: {{self: {name}, cross: multihead}}}}"
        for name in ("forgetting", "gated_deltanet", "kimi_delta")
    },
    ("attention", "merged"): "{encoder: multihead, decoder: merged}",
    **{("position", name): f"{{encoder: rotary, decoder: {name}}}" for name in ("cope", "xpos")},
    ("feed_forward", "canon"): "{name: canon, inner: relu}",
    ("position", "chain"): "{name: chain, parts: [sinusoidal, t5]}",
    ("position", "randomized"): "{name: randomized, encoding: shaw}",
}
KINDS = ("attention", "position", "feed_forward", "head", "norm", "placement")
ENTRIES = [entry for entry in create_registry() if entry.kind in KINDS and not entry.wrong_on_purpose]
BIASES_AND_MIXERS = {  # the ends of their paths; weight decay leaves them alone
    "talking_heads": ("mix_scores", "mix_weights"),
    "t5": ("table",),
    "pope": ("delta",),
    "chain": ("table",),
    "transformer_xl": (".u", ".v"),
    "synthesizer": ("column_bias",),
    "mhc": ("mixes.0", "mixes.1", "mixes.2"),
    "hyper_connections": ("alphas.0", "alphas.1", "alphas.2"),
}
TABLES_AND_KERNELS = {  # vectors of positions and words, decayed as embeddings are, and the weights of convolutions
    "shaw": ("key_table", "value_table"),
    "randomized": ("key_table", "value_table"),
    "learned": ("encodings.0.weight",),
    "cope": ("table",),
    "grape_a": ("of_query", "of_key"),
    "fix": ("head.weight",),
    "convolution": ("self_attention.weight",),
    "gated_deltanet": ("kernel",),
    "kimi_delta": ("kernel",),
    "canon": ("canon.weight",),
}
NARROWED = {  # vectors between wide layers, and no numbers to be read off: as wide as the recipe makes them
    "grouped_query": ("key.weight", "value.weight"),
    "kimi_delta": ("fade.0.weight", "fade.1.weight", "gate.0.weight", "gate.1.weight"),
    "mla": ("latent.weight", "rotated_key.weight", "key.weight", "value.weight"),
}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.kind}-{entry.name}")
def test_each_matrix_is_what_two_widths_show(entry):
    """And what is neither a linear map nor a table of vectors is not decayed."""
    override = f"model.{entry.kind}={SPECS.get((entry.kind, entry.name), entry.name)}"
    recorder, shapes = Recorder(), []
    for width in (64, 128):
        model = model_of(width, override, vocabulary=45)
        initialize(model, recorder, seed=1)
        shapes.append({path: parameter.shape for path, parameter in model.named_parameters()})
    mixers, narrowed = BIASES_AND_MIXERS.get(entry.name, ()), NARROWED.get(entry.name, ())
    none = mixers + TABLES_AND_KERNELS.get(entry.name, ())
    for path, parameter in model.named_parameters():
        assert is_decayed(parameter) == (parameter.ndim > 1 and not path.endswith(mixers)), path
    for path, shape in shapes[0].items():
        maps = recorder.sites[path].maps
        if len(shape) < 2 or "embedding" in path or path.endswith(none):
            assert maps is None, path
        elif path.endswith(narrowed):
            assert maps == "hidden", path
        else:
            grows = [a != b for a, b in zip(shape, shapes[1][path])][-2:]
            assert maps == ("input" if not grows[0] else "hidden" if grows[1] else "output"), path


# -------------------------------------------------------------------------------------------------------- what is refused


def problems(registry, *overrides):
    with pytest.raises(RecipeError) as caught:
        check(load_recipe("base", ["model.initializer=mup", *overrides]), registry)
    (problem,) = caught.value.problems
    return problem.path, problem.message


@pytest.mark.parametrize("head", ["tied", "fix", "{name: fix, tied: true}"])
def test_a_head_without_an_output_matrix_of_its_own_is_refused(registry, head):
    path, message = problems(registry, f"model.head={head}")
    assert path == "model.initializer" and "'mup' refuses" in message and "set `model.head=linear`" in message


@pytest.mark.parametrize("optimizer", ["sgd", "muon", "soap", "{name: adafactor, relative: true}"])
def test_an_optimizer_that_other_rates_belong_to_is_refused(registry, optimizer):
    path, message = problems(registry, f"train.optimizer={optimizer}")
    assert path == "train.optimizer" and "updates unlike Adam's" in message and "adamw" in message
    assert "soap" not in message or "'soap'" in message
