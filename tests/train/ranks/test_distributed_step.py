"""A batch shared among ranks trains as one process with the whole batch does, whatever its norm and its experts."""

import hashlib
from itertools import pairwise

import numpy as np
import pytest
from rank_processes import team, trainer_of

from paddle_tfm import UserError, create_registry
from paddle_tfm.data.batches import collate
from paddle_tfm.train.divided.shards import why_whole
from paddle_tfm.train.ranks.distributed_step import DistributedStep
from paddle_tfm.train.ranks.rank_zero import Ranks
from paddle_tfm_plugins.norm import register_norms

pytestmark = pytest.mark.reliability

# Plain descent: where the gradient is 0 but for rounding, as of a key's bias, Adam would divide rounding by rounding.
STEP = [
    "model.dropout=0.3", "train.clip_norm=0.5", "train.label_smoothing=0.1", "train.optimizer=sgd",
    "train.schedule={name: constant, learning_rate: 0.1}",
]  # fmt: skip
BALANCED = "model.feed_forward={name: deepseek_moe, sequence_balance_weight: 0.05, bias_rate: 0.05}"
WHOLE_BATCH = ["model.norm={name: power, warmup: 2}", "model.feed_forward=mixture_of_experts", BALANCED]
TOGETHER = ["model.norm={name: power, warmup: 1}", BALANCED, "model.decoder_layers=2"]


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    """With the components of OWN_ROWS."""
    file = tmp_path_factory.mktemp("plugin") / "own_rows.py"
    file.write_text(OWN_ROWS)
    return create_registry([file])


@pytest.fixture(scope="module")
def two(registry):
    with team(registry, 2) as rank_0:
        yield rank_0


@pytest.fixture(scope="module")
def three(registry):
    with team(registry, 3) as rank_0:
        yield rank_0


def some(trainer, *sizes):
    """Several batches of so many rows, which are of unequal lengths."""
    examples, ends = trainer.run.encoded["train"], np.cumsum([0, *sizes])
    return [collate(examples[first:last]) for first, last in pairwise(ends)]


def trained(others, registry, overrides, steps):
    """Parameters and buffers after these steps, each given by the sizes of its batches; and the metrics of each."""
    trainer, rows = trainer_of(registry, *overrides, others=others), []
    model = trainer.run.model
    model.train()
    with trainer.sharded_step(1) as step:
        for number, sizes in enumerate(steps, 1):
            rows.append(step(number, some(trainer, *sizes)).row())
        step.rest()
    return {path: each.numpy() for path, each in [*model.named_parameters(), *model.built_buffers().items()]}, rows


def require_alike(one, other):
    for path, value in one[0].items():
        size = max(1.0, np.abs(value).max(initial=0.0))
        np.testing.assert_allclose(other[0][path], value, rtol=1e-3, atol=2e-5 * size, err_msg=path)
    for row, other_row in zip(one[1], other[1], strict=True):
        assert other_row == pytest.approx(row, rel=1e-3)


@pytest.mark.parametrize("override", [f"model.norm={name}" for name in register_norms()] + WHOLE_BATCH)
def test_two_ranks_train_as_one_process(registry, two, override):
    """Uneven shards of padded rows, batches that accumulate, clipping, smoothing, dropout."""
    steps = [(7, 4), (7, 5), (9,)]
    one = trained(None, registry, [*STEP, override], steps)
    require_alike(one, two(trained, [*STEP, override], steps))
    assert one[1][0]["gradient_norm"] > 0.5  # clipping took part


@pytest.mark.parametrize("override", ["model.norm=batch", BALANCED])
def test_three_ranks_do_too_and_a_batch_of_two_rows_is_one_ranks(registry, three, override):
    """What that batch leaves in the buffers the others get with the next one."""
    steps = [(7, 4), (2,), (5, 2), (6,)]
    require_alike(trained(None, registry, [*STEP, override], steps), three(trained, [*STEP, override], steps))


def test_sums_of_backward_passes_come_in_one_order(registry, two):
    """Experts that no token of a rank chose are in no graph of it, and Paddle walks another graph in another order."""
    overrides, steps = [*STEP, *TOGETHER], [(7, 4), (6,)]
    require_alike(trained(None, registry, overrides, steps), two(trained, overrides, steps))


@pytest.mark.parametrize("override", ["train.r_drop=2.0", "model.head=pointer", "model.norm=regularized_batch"])
def test_other_losses_add_up(registry, two, override):
    require_alike(
        trained(None, registry, [*STEP, override], [(7,), (6,)]), two(trained, [*STEP, override], [(7,), (6,)])
    )


def test_the_same_bits_again(three):
    """With Adam, and a mixture: all that sums over ranks, in the same order each time."""
    overrides, steps = ["model.norm=batch", BALANCED], [(7, 4), (6,), (5,)]
    (one, rows), (other, other_rows) = (three(trained, overrides, steps) for _ in range(2))
    for path, value in one.items():
        np.testing.assert_array_equal(other[path], value, err_msg=path)
    assert rows == other_rows


# ------------------------------------------------------------------------------------- what is not as of the whole batch

OWN_ROWS = '''
import paddle
from paddle_tfm import hookimpl
from paddle_tfm.layers import Linear
from paddle_tfm.protocols import FeedForward, Norm
from paddle_tfm.ranks import sum_over_ranks

class Centre(Norm):
    """Each channel without its mean over the batch."""

    def __init__(self, d_model, whole: bool = False):
        super().__init__()
        self.sum = sum_over_ranks if whole else (lambda x: x)

    def forward(self, x, valid=None, positions=None):
        real = paddle.ones(x.shape[:2]) if valid is None else valid.astype(x.dtype)
        mean = self.sum((x * real.unsqueeze(-1)).sum([0, 1])) / self.sum(real.sum())
        return x - mean if self.training else x

class Keep(Norm):
    """A norm that keeps what it got, for a plot."""

    def __init__(self, d_model):
        super().__init__()
        self.seen = None

    def forward(self, x, valid=None, positions=None):
        self.seen = x
        return x / (1 + x.square().mean(-1, keepdim=True)).sqrt()

class Drop(FeedForward):
    """Dropout by Paddle's own generator."""

    def __init__(self, d_model):
        super().__init__()
        self.map = Linear(d_model, d_model)

    def forward(self, x, info, tap):
        return paddle.nn.functional.dropout(self.map(x), 0.3, training=self.training)

class Spread(FeedForward):
    """A loss on the mean of the batch, of its own rows."""

    def __init__(self, d_model):
        super().__init__()
        self.map = Linear(d_model, d_model)

    def forward(self, x, info, tap):
        y = self.map(x)
        tap.add_aux_loss("spread", y.mean([0, 1]).square().sum())
        return y

@hookimpl
def register_norms():
    return {"centre": Centre, "keep": Keep}

@hookimpl
def register_feed_forwards():
    return {"drop": Drop, "spread": Spread}
'''


def begun(others, registry, override):
    """Begin a training, and see that beginning leaves no trace."""
    trainer = trainer_of(registry, override, others=others)
    before = {name: value.numpy().copy() for name, value in trainer.run.model.state_dict().items()}
    try:
        with trainer.sharded_step(1):
            pass
    finally:
        assert all(parameter.grad is None for parameter in trainer.step.parameters)
        for name, value in trainer.run.model.state_dict().items():
            np.testing.assert_array_equal(value.numpy(), before[name], err_msg=f"looking has changed {name}")


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("model.norm=centre", r"encoder\.layers\.0\.placement\S* \(Centre\) puts out other numbers where 2 processes"),
        ("model.feed_forward=drop", r"coder\.layers\.0\.feed_forward \(Drop\) puts out other numbers"),
        ("model.feed_forward=spread", r"the auxiliary loss 'spread' is another where 2 processes share a batch"),
    ],
)
def test_what_takes_its_own_rows_for_the_batch_is_named(two, override, sentence):
    with pytest.raises(UserError, match=sentence):
        two(begun, override)


@pytest.mark.parametrize("norm", ["{name: centre, whole: true}", "keep"])
def test_a_norm_of_a_plugin_that_sums_over_ranks_or_only_keeps_what_it_got_is_right(registry, two, norm):
    overrides, steps = [*STEP, f"model.norm={norm}"], [(7,), (6,)]
    require_alike(trained(None, registry, overrides, steps), two(trained, overrides, steps))


def test_what_a_layer_keeps_of_a_pass_does_not_forbid_shards(registry):
    trainer = trainer_of(registry, "train.shards=2", "model.norm=keep")
    assert why_whole(trainer.step, trainer.run.encoded["train"][:8]) is None
    trainer.train()
    assert why_whole(trainer.step, trainer.run.encoded["train"][:8]) is None


def test_more_ranks_than_rows_are_refused(registry):
    trainer = trainer_of(registry)
    two_rows = trainer.run.stream().most_rows()
    trainer.others = Ranks.__new__(Ranks)
    trainer.others.size = two_rows + 1
    sentence = rf"{two_rows + 1} processes must each get a row .* has more than {two_rows}; use at most {two_rows}"
    with pytest.raises(UserError, match=sentence), trainer.sharded_step():
        pass


def test_a_model_in_another_precision_is_refused(registry):
    trainer = trainer_of(registry)
    trainer.step.parameters[0] = trainer.step.parameters[0].astype("float64")
    with pytest.raises(UserError, match=r"must have float32 parameters, but some are paddle\.float64"):
        DistributedStep(trainer.step, Ranks.__new__(Ranks))


def drawn(others, registry):
    """What the batches of three steps are."""
    trainer, seen = trainer_of(registry, others=others), []
    trainer.run.model.train()
    with trainer.sharded_step(1) as step:
        for number in (1, 2, 3):
            batches = trainer.next_batches()
            seen += [hashlib.sha256(batch.source.tobytes()).hexdigest() for batch in batches]
            step(number, batches)
    return seen


def test_looking_and_sharing_leave_no_trace_in_what_is_drawn(registry, two):
    """The texts are rank 0's alone: the batches are those of one process."""
    assert two(drawn) == drawn(None, registry)
