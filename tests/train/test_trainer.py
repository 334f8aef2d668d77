"""Training: resumed equals uninterrupted, accumulation equals the large batch, and every draw is a function of its
key."""

import json

import numpy as np
import paddle
import pytest

from paddle_tfm import UserError, memory, randomness
from paddle_tfm.data.batches import collate
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.hookspecs import hookimpl
from paddle_tfm.kernels.cpu import library
from paddle_tfm.runs.logs import read_rows
from paddle_tfm.testing.same_runs import differences
from paddle_tfm.train.run import create, load_run
from paddle_tfm.train.step import clip_gradients
from paddle_tfm.train.trainer import Interrupted, Trainer

RESUMED = {  # settings, and the steps after which it is stopped: before an evaluation, within one (4), between two
    "draws, clipping, accumulation, a norm that warms up, the mean of the last": (
        [
            "model.dropout=0.3", "train.clip_norm=0.5", "train.accumulate=2", "model.position=rotary",
            "model.norm={name: power, warmup: 5}", "train.average=2",
        ],
        (1, 6),
    ),
    "a moving average, a norm that re-estimates, biases that balance experts, patience": (
        [
            "train.ema=0.9", "model.norm={name: batch, population: 4}", "train.batches=mixed", "evaluate.patience=1",
            "model.feed_forward={name: deepseek_moe, experts: 4, bias_rate: 0.05}",
        ],
        (4,),
    ),
    "an optimizer that evaluates elsewhere": (["train.optimizer=schedule_free", "train.average=2"], (4,)),
}  # fmt: skip
BFLOAT16 = pytest.param(
    ["train.products=bfloat16"],
    (1, 5),
    marks=pytest.mark.skipif(bool(library.why_not("bfloat16")), reason=str(library.why_not("bfloat16"))),
    id="products in bfloat16",
)


def parameters(model):
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


def equal(a, b):
    assert a.keys() == b.keys()
    for name, value in a.items():
        np.testing.assert_array_equal(b[name], value, err_msg=name)


@pytest.mark.reliability
@pytest.mark.parametrize(
    "settings, stops", [*(pytest.param(*each, id=name) for name, each in RESUMED.items()), BFLOAT16]
)
def test_resumed_equals_uninterrupted(make_trainer, train_in_parts, settings, stops):
    """Resumed each time by another process's worth of objects: the same files to the bit."""
    whole = make_trainer(*settings, folder="whole")
    whole.train()
    parts, _ = train_in_parts(*settings, stops=stops)
    assert differences(whole.run.folder, parts.run.folder) == []
    for name in ("metrics.jsonl", "identity.json", "recipe.yaml"):
        assert (parts.run.folder / name).read_text() == (whole.run.folder / name).read_text(), name


@pytest.mark.reliability
def test_resume_after_a_kill_goes_back_to_the_last_checkpoint(make_trainer):
    """Killed without a word at step 6: what was logged after the checkpoint of step 4 is done again, once."""
    whole = make_trainer(folder="whole")
    whole.train()
    first = make_trainer(folder="parts")

    def die():
        if first.run.step == 6:
            raise RuntimeError("killed")
        return False

    first.stop = die
    with pytest.raises(RuntimeError, match="killed"):
        first.train()
    with (first.run.folder / "metrics.jsonl").open("a") as log:
        log.write('{"step": 7, "lo')  # cut short in the middle of a line
    make_trainer(folder="parts").train(resume=True)
    assert (first.run.folder / "metrics.jsonl").read_text() == (whole.run.folder / "metrics.jsonl").read_text()


def test_same_seed_same_numbers_other_seed_other_numbers(make_trainer):
    short = ("train.steps=4", "evaluate.every=4")
    one, two = make_trainer(*short, folder="1"), make_trainer(*short, folder="2")
    other = make_trainer(*short, "seeds=[2]", folder="3")
    for trainer in (one, two, other):
        paddle.randn([17])  # what was drawn before must not matter
        trainer.train()
    equal(parameters(one.run.model), parameters(two.run.model))
    losses = [read_rows(trainer.run.folder / "metrics.jsonl")[0]["loss"] for trainer in (one, two, other)]
    assert losses[0] == losses[1] != losses[2]


def test_variants_see_the_same_batches(make_trainer):
    """Same seed: the order of data does not depend on the variant."""
    seen = []
    for folder, override in (("a", "model.placement=pre"), ("b", "model.placement=post")):
        trainer = make_trainer(override, folder=folder)
        seen.append([next(trainer.stream).index.tolist() for _ in range(40)])
    assert seen[0] == seen[1]
    assert len({tuple(index) for index in seen[0]}) > 20


class Onlooker:
    """Stands where the optimizer stands, and only writes down the gradients."""

    def __init__(self, model):
        self.model, self.seen = model, {}

    def step(self):
        self.seen = {name: p.grad.numpy() for name, p in self.model.named_parameters() if p.grad is not None}

    def set_lr(self, rate): ...

    def clear_grad(self, set_to_zero=True): ...


def test_accumulation_equals_the_large_batch(make_trainer):
    """Two batches of different sizes accumulated: the gradients of the one batch that holds both."""
    overrides = ("model.dropout=0.0", "train.label_smoothing=0.1", "train.clip_norm=null")
    parts, whole = make_trainer(*overrides, folder="parts"), make_trainer(*overrides, folder="whole")
    for trainer in (parts, whole):
        trainer.step.optimizer = Onlooker(trainer.run.model)
    examples = parts.run.encoded["train"]
    small, large = examples[:3], examples[3:12]
    metrics = parts.step(1, [collate(small), collate(large)]).row()
    expected = whole.step(1, [collate([*small, *large])]).row()
    assert metrics == pytest.approx(expected, rel=1e-5)
    for name, value in whole.step.optimizer.seen.items():
        np.testing.assert_allclose(parts.step.optimizer.seen[name], value, rtol=1e-3, atol=1e-6, err_msg=name)


def test_the_gradient_norm_is_that_of_all_gradients_and_clipping_keeps_their_direction():
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((300, 70), (70,), (1, 5), (3, 4, 5))]
    parameters = [paddle.create_parameter(array.shape, "float32") for array in arrays]
    for parameter, array in zip(parameters, arrays):
        parameter.grad = paddle.to_tensor(array)
    exact = np.sqrt(sum((array.astype(np.float64) ** 2).sum() for array in arrays))
    assert clip_gradients(parameters, None) == pytest.approx(exact, rel=1e-6)
    assert clip_gradients(parameters, 1.0) == pytest.approx(exact, rel=1e-6)
    for parameter, array in zip(parameters, arrays):
        np.testing.assert_allclose(parameter.grad.numpy(), array / exact, rtol=1e-5, atol=1e-8)
    assert clip_gradients(parameters, 2.0) == pytest.approx(1.0, rel=1e-5)  # below the bound: as they are
    np.testing.assert_allclose(parameters[1].grad.numpy(), arrays[1] / exact, rtol=1e-5, atol=1e-8)


def test_the_loss_averages_over_real_tokens(make_trainer):
    """A batch with much padding: its loss is the mean over real tokens of −log p, padding nowhere in it."""
    trainer = make_trainer("model.dropout=0.0")
    model, examples = trainer.run.model, trainer.run.encoded["train"]
    lengths = [len(example.target) for example in examples]
    chosen = [examples[lengths.index(min(lengths))], examples[lengths.index(max(lengths))]]
    model.eval()
    total, count = 0.0, 0
    for example in chosen:  # one by one: no padding at all
        batch = collate([example]).tensors()
        h, memory = model(batch)
        log_probs = model.head.log_probs(h, memory).numpy()[0]
        total -= sum(log_probs[t, token] for t, token in enumerate(example.target))
        count += len(example.target)
    both = collate(chosen).tensors()
    assert float(model.loss(both)) == pytest.approx(total / count, rel=1e-5)


def test_a_step_lowers_the_loss_and_training_learns(make_trainer):
    trainer = make_trainer("train.steps=150", "evaluate.every=150", "model.dropout=0.0", "model.d_model=32")
    results = trainer.train()
    losses = [row["loss"] for row in read_rows(trainer.run.folder / "metrics.jsonl") if "loss" in row]
    assert losses[-1] < 0.5 * losses[0]
    assert results["test"]["token_accuracy"] > 0.5


def test_a_loaded_run_is_the_trained_one(make_trainer, registry):
    trainer = make_trainer("model.norm=batch", "train.steps=4")
    trainer.train()
    texts = [example.example.source for example in trainer.run.encoded["test"]]
    loaded = load_run(trainer.run.folder, registry)
    assert loaded.translate(texts) == trainer.run.translate(texts)
    assert loaded.translate(["", *texts[:2]])[0] == ""
    equal(parameters(trainer.run.model), parameters(loaded.model))


def test_loading_under_changed_code_says_so(make_trainer, registry):
    trainer = make_trainer("train.steps=4")
    trainer.train()
    path = trainer.run.folder / "identity.json"
    then = json.loads(path.read_text())
    then["components"]["norm layer"] = "norm 0.0.1"
    path.write_text(json.dumps(then))
    said = []
    load_run(trainer.run.folder, registry, warn=said.append)
    assert len(said) == 1 and "norm layer was norm 0.0.1 and is norm 0.1.0" in said[0]


def test_best_is_the_metric_then_the_lower_loss(make_trainer):
    trainer = make_trainer()
    assert trainer.score.rank({"exact_match": 0.9, "loss": 0.5}) > trainer.score.rank({"exact_match": 0.8, "loss": 0.1})
    assert trainer.score.rank({"exact_match": 0.9, "loss": 0.1}) > trainer.score.rank({"exact_match": 0.9, "loss": 0.5})
    lower = make_trainer("evaluate.best=token_error_rate", folder="lower")
    assert lower.score.rank({"token_error_rate": 0.1, "loss": 1}) > lower.score.rank(
        {"token_error_rate": 0.2, "loss": 1}
    )
    assert trainer.score.rank({"exact_match": 0.0, "loss": float("nan")}) < trainer.score.rank(
        {"exact_match": 0.0, "loss": 9.0}
    )


def test_a_resumed_run_keeps_the_pieces_that_it_began_with(make_trainer, tmp_path):
    """A tokenizer that would now learn something else, here a changed vocabulary, does not get into a run under way."""
    first = make_trainer()
    first.stop = lambda: first.run.step >= 5
    with pytest.raises(Interrupted):
        first.train()
    vocabulary = first.run.folder / "codec" / "target" / "vocabulary.json"
    pieces = json.loads(vocabulary.read_text("utf-8"))
    vocabulary.write_text(json.dumps(pieces[::-1], ensure_ascii=False), "utf-8")
    corpus = load_corpus(first.run.plan)
    resumed = create(first.run.plan, first.run.folder, corpus, resume=True)
    assert resumed.codec.target_vocabulary.pieces[4:] == pieces[::-1]
    fresh = create(first.run.plan, tmp_path / "fresh", corpus, resume=True)
    assert fresh.codec.target_vocabulary.pieces[4:] == pieces


def test_a_listener_that_failed_in_one_run_is_called_again_in_the_next(make_trainer, registry):
    class Fails:
        @hookimpl
        def on_checkpoint(self, run):
            raise OSError(run.folder.name)

    said, listener, plugins = [], Fails(), registry.plugins.manager
    plugins.register(listener, name="fails")
    try:
        for folder in ("first", "second"):
            trainer = make_trainer(folder=folder, report=said.append)
            for step in (4, 8):
                trainer.emit("on_checkpoint", step=step, path=trainer.run.folder)
    finally:
        plugins.unregister(listener)
    assert [sentence.split("OSError: ")[1] for sentence in said] == [
        f"{folder}; training continues" for folder in ("first", "second")
    ]


def test_a_model_whose_training_fills_the_memory_is_refused_before(make_trainer, registry, monkeypatch):
    """Its parameters fit; its gradients and moments do not."""
    run = make_trainer().run
    numbers = run.parameters()
    monkeypatch.setattr(memory, "MUCH", 0)
    monkeypatch.setattr(memory, "free", lambda: 12.0 * numbers)
    Trainer(run, registry.plugins)
    monkeypatch.setattr(memory, "free", lambda: 12.0 * numbers - 1)
    with pytest.raises(MemoryError, match=f"the training of {numbers:,} parameters needs .* GB, but"):
        Trainer(run, registry.plugins)


def test_a_step_makes_the_recipe_s_objective_small(make_trainer):
    """What is logged is the objective of the recipe's settings, under the dropout of that step."""
    trainer = make_trainer("train.r_drop=2.0", "train.label_smoothing=0.3")
    model, batch = trainer.run.model, collate(trainer.run.encoded["train"][:8])
    model.train()
    with randomness.random_context(trainer.run.seed, 1), paddle.no_grad():
        expected = float(model.loss(batch.tensors(), 0.3, r_drop=2.0))
    assert trainer.step(1, [batch]).loss == pytest.approx(expected, rel=1e-6)


def test_mixed_precision_is_refused_on_a_cpu(make_trainer):
    with pytest.raises(UserError, match=r"train\.precision=bfloat16 needs a GPU"):
        make_trainer("train.precision=bfloat16")
