"""What holds for components that are no part of a model: searches, schedules, optimizers, metrics."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import randomness
from paddle_tfm.protocols import Decoding, Likelihood, Prediction
from paddle_tfm.testing.laws import demand_same
from paddle_tfm.testing.report import Failed, Seen, check
from paddle_tfm.testing.subject import Subject

# -------------------------------------------------------------------------------------------------------------- search

WORDS = 7


class Table(Decoding):
    """Log-probabilities that are a fixed function of a sentence's number and of the tokens so far."""

    bos, eos = 1, 2

    def __init__(self, limits: list[int], sentences: list[int] | None = None, ending: float = 0.0):
        self.max_lengths = limits
        self.sentences = list(range(len(limits))) if sentences is None else sentences
        self.rows = [(sentence, ()) for sentence in self.sentences]
        self.ending, self.steps = ending, 0

    def next(self, sentence: int, tokens: tuple[int, ...]) -> np.ndarray:
        """log P(next token | sentence, tokens), float32 [V]; padding and the begin are impossible."""
        scores = randomness.generator(sentence, *tokens).normal(scale=2.0, size=WORDS)
        scores[2] += self.ending
        scores[:2] = -np.inf
        scores -= np.log(np.exp(scores).sum())
        return np.maximum(scores, -1e9).astype("float32")

    def advance(self, tokens: Tensor) -> Tensor:
        self.steps += 1
        if self.steps > 10 * max(self.max_lengths) + 50:
            raise Failed(
                f"it goes on after {self.steps - 1} steps, though no output may be longer than {max(self.max_lengths)}"
            )
        fed = tokens.numpy().tolist()
        if len(fed) != len(self.rows):
            raise Failed(f"it feeds {len(fed)} tokens to {len(self.rows)} rows")
        self.rows = [
            (sentence, so_far if token == self.bos and not so_far and self.steps == 1 else (*so_far, token))
            for (sentence, so_far), token in zip(self.rows, fed)
        ]
        return paddle.to_tensor(np.stack([self.next(*row) for row in self.rows]))

    def select(self, rows: Tensor) -> None:
        self.rows = [self.rows[i] for i in rows.numpy().tolist()]


def _found(subject: Subject, table: Table):
    with randomness.random_context(1, 1):
        return subject.build().run(table)


LIMITS = [6, 9, 3, 7]


@check(
    "search",
    law="it ends: an output stops at the end token, and at its limit",
    means="decoding never stops, or words follow the end of a sentence",
    look="the comparison with `eos` (not with `bos`), what happens to finished rows, `max_lengths`",
)
def stops(subject: Subject) -> None:
    for ending in (0.0, 3.0, -8.0):
        table = Table(LIMITS, ending=ending)
        for sentence, hypotheses in enumerate(_found(subject, table)):
            if not hypotheses:
                raise Failed("a sentence without any hypothesis")
            for hypothesis in hypotheses:
                if len(hypothesis.ids) > LIMITS[sentence]:
                    raise Failed(f"an output of {len(hypothesis.ids)} tokens, where {LIMITS[sentence]} are allowed")
                if set(hypothesis.ids) & {0, Table.bos, Table.eos}:
                    raise Failed(f"an output holds special ids: {hypothesis.ids}")


@check(
    "search",
    law="an output's score is the sum of the log-probabilities of its tokens and of its end",
    means="the best of several hypotheses is not the best",
    look="which score is kept when beams change places; the end token's own probability",
)
def scores(subject: Subject) -> None:
    table = Table(LIMITS, ending=1.0)
    for sentence, hypotheses in enumerate(_found(subject, table)):
        for hypothesis in hypotheses:
            path = [*hypothesis.ids, Table.eos]
            total = sum(float(table.next(sentence, tuple(path[:i]))[token]) for i, token in enumerate(path))
            open_end = total - float(table.next(sentence, tuple(hypothesis.ids))[Table.eos])
            reached = len(hypothesis.ids) == LIMITS[sentence]  # its end may have had no step
            if abs(hypothesis.score - total) > 1e-3 and not (reached and abs(hypothesis.score - open_end) < 1e-3):
                raise Failed(f"{hypothesis.ids} has the score {hypothesis.score:.4f}, its tokens sum to {total:.4f}")


@check(
    "search",
    law="sentences of a batch do not influence each other, and the same search finds the same",
    means="a translation depends on what is translated beside it",
    look="top-k over the whole batch; rows mixed up when finished ones leave; draws that depend on a row's place",
)
def independent(subject: Subject) -> None:
    together = _found(subject, Table(LIMITS))
    again = _found(subject, Table(LIMITS))
    if [h[0].ids for h in together] != [h[0].ids for h in again]:
        raise Failed("the same search, done twice, finds different outputs")
    for sentence, limit in enumerate(LIMITS):
        alone = _found(subject, Table([limit], [sentence]))[0]
        if alone[0].ids != together[sentence][0].ids:
            raise Failed(f"sentence {sentence} alone gives {alone[0].ids}, among others {together[sentence][0].ids}")


# ------------------------------------------------------------------------------------------------------------ schedule


@check(
    "schedule",
    law="a function of the step alone: finite, not negative, the same whenever it is asked",
    means="a resumed run goes on with another learning rate",
    look="counters kept in the object; division by a step of 0",
)
def rates(subject: Subject) -> None:
    schedule = subject.build(d_model=64, steps=1000)
    steps = [1, 2, 10, 500, 999, 1000, 1500]
    forth = [schedule(step) for step in steps]
    back = [schedule(step) for step in reversed(steps)][::-1]
    if not all(np.isfinite(rate) and rate >= 0 for rate in forth):
        raise Failed(f"rates of steps {steps}: {forth}")
    if forth != back:
        raise Failed("asked in another order, it gives other rates")
    if max(forth) == 0:
        raise Failed("the rate is always zero")
    raise Seen(f"rate {forth[0]:.2g} at step 1, {forth[3]:.2g} halfway, {forth[5]:.2g} at the end of 1,000")


# ----------------------------------------------------------------------------------------------------------- optimizer


def _problem(subject: Subject, rate: float):
    """A least-squares problem with one parameter that gets no gradient."""
    rng = np.random.default_rng(5)
    made = {"a": [6, 4], "b": [4], "idle": [3, 3]}
    parameters = []
    for name, shape in made.items():
        parameter = paddle.create_parameter(shape, "float32")
        parameter.name = f"decoder.layers.0.feed_forward.{name}"  # as in a model: what a rule does may go by it
        parameter.set_value(rng.normal(size=shape).astype("float32"))
        parameters.append(parameter)
    optimizer = subject.build().create(parameters)
    optimizer.set_lr(rate)
    x, y = (paddle.to_tensor(rng.normal(size=shape).astype("float32")) for shape in ((32, 6), (32, 4)))

    def step() -> float:
        loss = ((paddle.matmul(x, parameters[0]) + parameters[1] - y) ** 2).mean()
        loss.backward()
        with paddle.utils.unique_name.guard():  # as the trainer: moments named after parameters
            optimizer.step()
        optimizer.clear_grad()
        return float(loss)

    return parameters, optimizer, step


@check(
    "optimizer",
    law="it lowers a loss, and leaves a parameter without a gradient alone",
    means="nothing is learned, or weights move that nothing asked to move",
    look="the sign and size of the update; parameters whose `grad` is None",
)
def lowers(subject: Subject) -> None:
    parameters, _, step = _problem(subject, 1e-2)
    idle = parameters[2].numpy().copy()
    losses = [step() for _ in range(200)]
    if not losses[-1] < 0.9 * losses[0]:
        raise Failed(f"200 steps with the rate 0.01 on least squares: {losses[0]:.3g} to {losses[-1]:.3g}")
    if not np.array_equal(idle, parameters[2].numpy()):
        raise Failed("a parameter without a gradient moved")


@check(
    "optimizer",
    law="a rate of zero changes nothing",
    means="the schedule does not decide how fast weights move",
    look="steps, or a decay of weights, that are not multiplied by the learning rate",
)
def follows_the_rate(subject: Subject) -> None:
    parameters, _, step = _problem(subject, 0.0)
    before = [parameter.numpy().copy() for parameter in parameters]
    step()
    for was, parameter in zip(before, parameters):
        demand_same(was, parameter.numpy(), "after a step with the rate 0", 0.0)


@check(
    "optimizer",
    law="it has inertia: after twenty equal gradients, one opposite gradient does not turn it around",
    means="momentum hardly acts: a batch that is unlike the others undoes what they did",
    look="whether momentum is a sum or a mean, and what is added to it; the beta that is meant for the other moment; a rule without "
    "momentum declares it",
)
def inertia(subject: Subject) -> None:
    rng = np.random.default_rng(7)
    parameter = paddle.create_parameter([6, 4], "float32")
    parameter.name = "decoder.layers.0.feed_forward.a"
    parameter.set_value(rng.normal(size=[6, 4]).astype("float32"))
    gradient = paddle.to_tensor(rng.normal(size=[6, 4]).astype("float32"))
    optimizer = subject.build().create([parameter])
    optimizer.set_lr(1e-2)
    for sign in [1.0] * 20 + [-1.0]:
        before = parameter.clone()
        (parameter * gradient * sign).sum().backward()
        with paddle.utils.unique_name.guard():
            optimizer.step()
        optimizer.clear_grad()
    along = float(((parameter - before) * gradient).sum())
    if along >= 0:
        raise Failed("the step goes the other way at once")


@check(
    "optimizer",
    law="saved and loaded in the middle, it goes on exactly",
    means="a resumed run is another run",
    look="`state_dict` and `set_state_dict`: every moment and counter",
)
def resumes(subject: Subject) -> None:
    whole, _, step = _problem(subject, 1e-2)
    for _ in range(6):
        step()
    first, optimizer, step = _problem(subject, 1e-2)
    for _ in range(3):
        step()
    held = {key: value.clone() if isinstance(value, Tensor) else value for key, value in optimizer.state_dict().items()}
    second, optimizer, step = _problem(subject, 1e-2)
    for source, target in zip(first, second):
        target.set_value(source)
    optimizer.set_state_dict(held)
    for _ in range(3):
        step()
    for a, b in zip(whole, second):
        demand_same(a.numpy(), b.numpy(), "six steps, and three steps saved, loaded and three more", 0.0)


# -------------------------------------------------------------------------------------------------------------- metric

TEXTS = [("a b c", "a b c"), ("a b c d", "a c d"), ("x y", "z w v"), ("die Katze schläft", "die Katze schlief")]


def _predictions(pairs) -> list[Prediction]:
    return [Prediction("s", one, two, tuple(one.split()), tuple(two.split())) for one, two in pairs]


@check(
    "metric",
    law="nothing is better than the reference itself, and the order of examples does not matter",
    means="it rewards something else",
    look="`higher_is_better`; which text is the reference; sums over examples",
)
def prefers_the_reference(subject: Subject) -> None:
    metric = subject.build()
    if not metric.needs_search:
        worse, better = (metric.compute([], Likelihood(*sums, 10, 40)) for sums in ((30.0, 5), (10.0, 8)))
        if (better > worse) != metric.higher_is_better:
            raise Failed(f"a likelier text gets {better:.4g}, a less likely one {worse:.4g}")
        return
    likelihood = Likelihood(10.0, 5, 10, 40)
    exact = metric.compute(_predictions([(one, one) for one, _ in TEXTS]), likelihood)
    found = metric.compute(_predictions(TEXTS), likelihood)
    turned = metric.compute(_predictions(TEXTS[::-1]), likelihood)
    if (found > exact) if metric.higher_is_better else (found < exact):
        raise Failed(f"the references themselves get {exact:.4g}, other texts {found:.4g}")
    if abs(found - turned) > 1e-9 * max(1.0, abs(found)):
        raise Failed(f"the same examples in another order get {turned:.6g} instead of {found:.6g}")
