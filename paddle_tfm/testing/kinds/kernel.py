"""What holds for a kernel: on random calls it computes what the formula says, whoever wrote it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial, wraps
from typing import Any
from unittest.mock import patch

import numpy as np
from paddle import Tensor, nn
from paddle.utils.dlpack import from_dlpack

from paddle_tfm import paddle_compat, place, processes
from paddle_tfm.kernels import AnyKernel, Call
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import ComponentError, Failed, Note, Passed, Result, Skip
from paddle_tfm.testing.trials.calls import GIVEN_AWAY, Calls, Numbers, off
from paddle_tfm.testing.trials.child import Doing, Guarded, in_child

ENOUGH, WANTED, MOST = 20, 40, 240  # calls that must fit; that are compared; that are tried
REPEATED = 5  # calls, where each is computed many times
DRAWS, MAX_DEVIATIONS, MAX_RATIO = 400, 7.0, 1.6  # of "own" draws: steps; of the mean; of variances
SIGNALS, SECONDS_BETWEEN, MAX_SECONDS = 2000, 0.0003, 4.0
FORK_SECONDS = 10.0  # in which a fork must have computed


class _Unfit(Exception):
    """Ends a call that a kernel does not fit."""


class _Asked:
    """In the place of a kernel: it asks whether the kernel fits, and leaves it to the formula."""

    def __init__(self, kernel: AnyKernel):
        self.kernel = kernel
        self.fits_it = False
        self.error: Exception | None = None

    def fits(self, call: Call) -> bool:
        """No. Raises _Unfit where the kernel does not fit."""
        try:
            self.fits_it = bool(self.kernel.fits(call))
        except Exception as error:
            self.error = error
            raise
        if not self.fits_it:
            raise _Unfit
        return False


class Trials:
    """A kernel, and random calls that it fits."""

    def __init__(self, subject: ComponentUnderTest):
        self.kernel = subject.build()
        self.calls = Calls(subject.registry, subject.cls.of)
        self.own_draws = subject.cls.draws == "own"
        self.table = {self.calls.of: self.kernel}

    @cached_property
    def fitting(self) -> list[int]:
        """The numbers of calls that it fits, WANTED at most.

        Raises:
            ComponentError: they are too few.
        """
        fitting: list[int] = []
        others: list[str] = []
        for number in range(MOST):
            asked, call = _Asked(self.kernel), self.calls(number)
            try:
                call.compute({self.calls.of: asked})
            except _Unfit:
                others.append(str(call))
            except Exception:
                if asked.error is not None:
                    raise
                continue  # the formula refuses these arguments
            if asked.fits_it:
                fitting.append(number)
            if len(fitting) == WANTED:
                break
        if len(fitting) < ENOUGH:
            some = "; ".join(others[:3])
            raise ComponentError(f"it fits {len(fitting)} of {MOST} random calls; it does not fit these, say: {some}")
        return fitting

    @cached_property
    def dropping(self) -> list[int]:
        """Those of which the formula draws what to drop."""
        return [number for number in self.fitting if self._drops(number)]

    def _drops(self, number: int) -> bool:
        one, other = (self.calls(number, drops=True).compute(step=step) for step in (1, 2))
        return any(not np.array_equal(one[name], other[name]) for name in one)

    def compared(self, number: int, doing: Doing, drops: bool = False) -> Failed | None:
        """Failed where the kernel does not give what the formula gives. Where a weight needs no gradient, the formula
        makes it all the same: Paddle's own gradients are not always right there (of `layer_norm`, 3.3.1)."""
        call = self.calls(number, drops, frozen=True)
        doing(call)
        expected = self.calls(number, drops).compute()
        unwanted = {f"the gradient of {name}" for name, each in call.tensors.items() if each.stop_gradient}
        wanted = {name: each for name, each in expected.items() if name not in unwanted}
        return off(wanted, call.compute(self.table), call)

    def drawn(self, number: int) -> Failed | None:
        """Failed where, over many steps, numbers have not the mean that the formula's have, or vary otherwise: each
        alone, or all together along their mean."""
        of_steps = []
        for table in (None, self.table):
            calls = (self.calls(number, drops=True).compute(table, step) for step in range(DRAWS))
            of_steps.append(np.stack([np.concatenate([each.ravel() for each in one.values()]) for one in calls]))
        direction = of_steps[0].mean(0, dtype="float64")
        of_steps = [np.column_stack([steps, steps @ direction]) for steps in of_steps]
        means, variances = ([getattr(steps, what)(0) for steps in of_steps] for what in ("mean", "var"))
        deviations = np.sqrt(sum(variances) / DRAWS) + 1e-4 * np.abs(means[0]) + 1e-20
        far = float((np.abs(means[0] - means[1]) / deviations).max())
        if not far <= MAX_DEVIATIONS:
            return Failed(f"over {DRAWS} steps a mean is off by {far:.1f} standard deviations: {self.calls(number)}")
        for which in (slice(-1), slice(-1, None)):
            ratio = float(variances[1][which].sum() / variances[0][which].sum())
            if not 1 / MAX_RATIO <= ratio <= MAX_RATIO:
                seen = f"over {DRAWS} steps the variance is {ratio:.2f} times that of the formula"
                return Failed(f"{seen}: {self.calls(number)}")
        return None

    def again(self, before: Mapping[int, Numbers], doing: Doing) -> Failed | None:
        """Failed where the kernel gives other bits than before."""
        for number, expected in before.items():
            call = self.calls(number)
            doing(call)
            if failed := off(expected, call.compute(self.table), call, exact=True):
                return failed
        return None


@lru_cache(maxsize=1)
def _trials(subject: ComponentUnderTest) -> Trials:
    return Trials(subject)


Trial = Callable[[Trials, Doing], Result]


def _in_a_fork(alone: str = "") -> Callable[[Trial], Callable[[ComponentUnderTest], Result]]:
    """A check from a function of the trials: in a process of its own, which a kernel may end. alone: what is done, that
    can be done nowhere else."""

    def decorate(function: Trial) -> Callable[[ComponentUnderTest], Result]:
        @wraps(function)
        def tried(subject: ComponentUnderTest) -> Result:
            device = subject.cls.device
            if (device == "cpu") != place.on_cpu():
                return Skip(f"it computes on a {device.upper()}: check it with --device {device}")
            trials = _trials(subject)
            _ = trials.fitting  # once, for all checks
            if processes.can_fork():
                return in_child(lambda doing: function(trials, doing))
            return Skip(f"{alone} on a CPU and on Linux only") if alone else function(trials, lambda what: None)

        return tried

    return decorate


def _first(failures: Iterator[Failed | None]) -> Result:
    return next(filter(None, failures), Passed())


@check(
    "kernel",
    invariant="it fits enough random calls to be compared",
    consequence="it is hardly ever used, and too few calls can be compared",
    hint="`fits`: what it asks of dtypes, shapes and options; `of`: the class or op itself. An op of your own is tried "
    "on the arguments of its `kernels.examples`",
    decisive=True,
)
@_in_a_fork()
def fits(trials: Trials, doing: Doing) -> Result:
    return Note(f"{len(trials.fitting)} random calls that it fits are compared")


@check(
    "kernel",
    invariant="values and gradients are those of the formula: all shapes, masks and options, in training and search",
    consequence="a recipe says one thing and trains another",
    hint="what differs (where the outputs are right, the backward), and where: in the last rows or columns, by a bias, "
    "at padding, at options or widths that it does not look at",
)
@_in_a_fork()
def same_as_formula(trials: Trials, doing: Doing) -> Result:
    return _first(trials.compared(number, doing) for number in trials.fitting)


@check(
    "kernel",
    invariant='it drops the same elements as the formula at the same seed and step; with `draws = "own"`, the '
    "same share with the same mean",
    consequence="a run with kernels is another run, and a resumed one does not continue",
    hint="`call.draw(layer.dropout, count)` gives the formula's draws; what survives is divided by 1 − rate",
)
@_in_a_fork()
def draws(trials: Trials, doing: Doing) -> Result:
    if not trials.dropping:
        return Skip("nothing is dropped in the calls that it fits")
    if trials.own_draws:
        return _first(trials.drawn(number) for number in trials.dropping[:2])
    return _first(trials.compared(number, doing, drops=True) for number in trials.dropping)


# --------------------------------------------------------------------------------------------------------------- layers


def _twice(layer: nn.Layer) -> None:
    """Make a layer one of a subclass whose formula gives twice as much."""
    cls: Any = type(layer)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        y = cls.forward(self, *args, **kwargs)
        return 2 * y if isinstance(y, Tensor) else y

    object.__setattr__(layer, "__class__", type(f"Twice{cls.__name__}", (cls,), {"forward": forward}))


def _twice_after(layer: nn.Layer) -> None:
    layer.register_forward_post_hook(lambda _, args, y: 2 * y if isinstance(y, Tensor) else y)


def _twice_before(layer: Any) -> None:
    layer.register_forward_pre_hook(lambda _, args: (2 * args[0], *args[1:]))


def _with_parts(trials: Trials, doing: Doing, changes: Mapping[str, Callable[[nn.Layer], None]]) -> Result:
    """Failed where a change of the layer, or of a part of it, is not seen by the kernel."""
    tried = 0
    for number in trials.fitting[:REPEATED]:
        usual = trials.calls(number).compute()
        for name in trials.calls(number).layers:
            for what, change in changes.items():
                right, call = trials.calls(number), trials.calls(number)
                for each in (right, call):
                    change(each.layers[name])
                expected = right.compute()
                if off(usual, expected, call) is None:  # a part that this call does not need
                    continue
                tried += 1
                doing(call)
                if failed := off(expected, call.compute(trials.table), call):
                    return Failed(f"{what.format(name or 'the layer')}: {failed.text}")
    return Passed() if tried else Skip("no layer is in the calls that it fits")


@check(
    "kernel",
    invariant="it does not compute subclasses with another formula, neither of the layer's class nor of its parts",
    consequence="a layer changed in a subclass, or an adapter in place of a `Linear`, is trained as if unchanged",
    hint="`call.plain(Linear, layer.inner, layer.output)` in `fits`: with another part, the formula computes",
)
@_in_a_fork()
def subclass_is_not_caught(trials: Trials, doing: Doing) -> Result:
    return _with_parts(trials, doing, {"`{}` is of a subclass": _twice})


@check(
    "kernel",
    invariant="forward hooks are called, before and after, on the layer and on its parts",
    consequence="hooks record and change nothing wherever the kernel fits",
    hint="`call.plain(Linear, layer.inner, layer.output)` in `fits`: with hooks, the formula computes",
)
@_in_a_fork()
def hooks_are_called(trials: Trials, doing: Doing) -> Result:
    before, after = "a hook before `{}` is not called", "a hook after `{}` is not called"
    return _with_parts(trials, doing, {before: _twice_before, after: _twice_after})


# --------------------------------------------------------------------------------------------------------------- memory


@check(
    "kernel",
    invariant="it uses weights that were changed in place or replaced: between blocks of `using` and, in a step, "
    "between calls",
    consequence="it computes with the weights of an earlier step",
    hint="keep what is computed from weights in `call.cache` alone, with the tensor and its `inplace_version`",
)
@_in_a_fork()
def no_stale_weights(trials: Trials, doing: Doing) -> Result:
    if trials.calls.of in GIVEN_AWAY:
        return Skip("its caller gives the argument away, and cannot call it again")
    tried = 0
    for number in trials.fitting[:REPEATED]:
        right = trials.calls(number)
        doing(right)
        if off(right.compute(), trials.calls(number).compute(trials.table), right):  # it is wrong with any weights
            continue
        for what, factor, got in _changed(trials, number):
            tried, call = tried + 1, trials.calls(number)
            call.scale(factor)
            if failed := off(call.compute(), got, call):
                return Failed(f"{what}: {failed.text}")
    return Passed() if tried else Skip("what it computes is wrong before any weight changes")


def _changed(trials: Trials, number: int) -> Iterator[tuple[str, float, Numbers]]:
    """(how a call's tensors were changed, by which factor, what the kernel gives for them then)."""
    call = trials.calls(number)
    with call.under(trials.table):
        call.numbers()
        for factor in (0.5, 1.5) if call.mode.phase == "step" else ():
            call.scale(factor)
            yield "changed between two calls of a step", factor, call.numbers()
    if paddle_compat.can_move_into():
        call = trials.calls(number)
        start = {name: tensor.numpy() for name, tensor in call.tensors.items()}
        memory = {name: array.copy() for name, array in start.items()}
        for name, tensor in call.tensors.items():
            paddle_compat.move_into(tensor, memory[name])
        call.compute(trials.table)
        for name, array in memory.items():  # as a worker of the same batch does, of which Paddle knows nothing
            array[...] = start[name] * np.float64(0.75)
        yield "changed in place between two blocks of `using`", 0.75, call.compute(trials.table)
    call = trials.calls(number)
    call.compute(trials.table)
    call.replace_parameters()
    call.scale(1.25)
    yield "replaced between two blocks of `using`", 1.25, call.compute(trials.table)


@check(
    "kernel",
    invariant="it changes no argument, weight or gradient of the output, except what an op's caller gives away",
    consequence="other computations with them, such as a residual, get wrong numbers",
    hint="NumPy's view of a tensor is its memory: write to an array of your own",
)
@_in_a_fork()
def arguments_unchanged(trials: Trials, doing: Doing) -> Result:
    for number in trials.fitting:
        call = trials.calls(number)
        doing(call)
        values = {name: each for name, each in call.named() if not isinstance(each, nn.Layer)} | call.tensors
        if call.of in GIVEN_AWAY:
            del values[next(iter(call.tensors))]
        before = {name: _bytes(each) for name, each in values.items()}
        call.compute(trials.table)
        for name, was in before.items():
            if _bytes(values[name]) != was:
                return Failed(f"`{name}` is changed: {call}")
        if any(_bytes(gradient) != was.tobytes() for gradient, was in call.upstream):
            return Failed(f"the gradient of an output is changed: {call}")
    return Passed()


def _bytes(value: Any) -> bytes:
    return (value.numpy() if isinstance(value, Tensor) else value).tobytes()


@check(
    "kernel",
    invariant="it touches no memory beyond its arguments, tried between protected pages",
    consequence="a crash elsewhere, perhaps days later, or numbers that depend on foreign memory",
    hint="the last row or block; a tensor that is not dense, or of another dtype, whose address is given to C",
)
@_in_a_fork("memory is guarded")
def in_bounds(trials: Trials, doing: Doing) -> Result:
    if not paddle_compat.can_move_into():
        return Skip("this Paddle moves no tensor into guarded memory")
    for number in trials.fitting:
        for guarded in (Guarded(at_end=True), Guarded(at_end=False)):
            call = trials.calls(number)
            doing(call)
            call.args = tuple(guarded(each) if isinstance(each, np.ndarray) else each for each in call.args)
            for tensor in call.tensors.values():
                paddle_compat.move_into(tensor, guarded(tensor.numpy()))
            with patch.object(paddle_compat, "empty", partial(_guarded_output, guarded)):
                call.compute(trials.table)
    return Passed()


def _guarded_output(guarded: Guarded, shape: Sequence[int]) -> Tensor:
    """What `paddle_compat.empty` gives, in such memory."""
    return from_dlpack(guarded(np.zeros(shape, np.float32)))


# -------------------------------------------------------------------------------------------------------------- systems


@check(
    "kernel",
    invariant="thousands of signals during its computation change no bit",
    consequence="Ctrl-C, a scheduler's signal or a profiler's timer corrupts a step, or ends the process",
    hint="system calls that a signal interrupts (EINTR); code that uses the stack pointer for something else",
)
@_in_a_fork("signals are sent")
def signals(trials: Trials, doing: Doing) -> Result:
    before = {number: trials.calls(number).compute(trials.table) for number in trials.fitting[:REPEATED]}
    if failed := trials.again(before, doing):
        return Failed(f"computed twice, without a signal: {failed.text}")
    arrived: list[int] = []
    signal.signal(signal.SIGALRM, lambda number, frame: arrived.append(number))
    signal.setitimer(signal.ITIMER_REAL, SECONDS_BETWEEN, SECONDS_BETWEEN)
    end = time.monotonic() + MAX_SECONDS
    try:
        while len(arrived) < SIGNALS and time.monotonic() < end:
            if failed := trials.again(before, doing):
                return Failed(f"after {len(arrived):,} signals {failed.text}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return Note(f"{len(arrived):,} signals change no bit")


@check(
    "kernel",
    invariant="a fork of a process that used it computes the same bits",
    consequence="workers that share a batch hang, or compute wrong numbers",
    hint="threads, locks and handles that a library keeps: a fork has none of the threads",
)
@_in_a_fork("processes are forked")
def forks(trials: Trials, doing: Doing) -> Result:
    before = {number: trials.calls(number).compute(trials.table) for number in trials.fitting[:REPEATED]}
    return in_child(lambda doing: trials.again(before, doing) or Passed(), FORK_SECONDS)
