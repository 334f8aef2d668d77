"""What a rank other than 0 does: it gets a model, then weights and batches, and answers with gradients."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import numpy as np

from paddle_tfm.errors import UserError
from paddle_tfm.model.build import build
from paddle_tfm.model.size import trained_parameters
from paddle_tfm.plugin_errors import of_plugin
from paddle_tfm.recipe.expansion import Recipe
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.registry import Registry
from paddle_tfm.train.chain import Message
from paddle_tfm.train.changes import code_changes
from paddle_tfm.train.distributed_step import Flat, backward_of_rank, batches_of
from paddle_tfm.train.divergence import ARRAYS
from paddle_tfm.train.members import Ended, Member
from paddle_tfm.train.step import Gradients


class Rank:
    """Serves rank 0 until that ends.

    Args:
        registry: of this machine. stop: whether the user wants to stop, which rank 0 is told with the next gradients.
    """

    def __init__(self, member: Member, registry: Registry, stop: Callable[[], bool] = lambda: False):
        self.member, self.registry, self.stop = member, registry, stop
        self.gradients: Gradients | None = None

    def serve(self) -> Ended:
        """Do what rank 0 says, run after run. Returns how the training ended.

        Raises:
            UserError: rank 0 is lost, or something is wrong here, which rank 0 is told.
        """
        try:
            while True:
                message, arrays = self.member.next()
                (self._run if message["do"] == "run" else self._step)(message, arrays)
        except Ended as end:
            return end
        except Exception as error:
            wrong = error if isinstance(error, UserError) else of_plugin(error)
            last = traceback.format_exception_only(error)[-1].strip()
            self.member.fail(str(wrong) if wrong else f"{last}; its own output has the traceback")
            if wrong is None:
                raise
            raise wrong from None
        finally:
            self.member.close()

    def _run(self, message: Message, arrays: list[np.ndarray]) -> None:
        """Build the model of a run, with the numbers of rank 0."""
        (spec,) = Recipe("the recipe of rank 0", message["recipe"], {}).runs()
        plan = plan_run(spec, self.registry).require_sound("the recipe of rank 0")
        if different := code_changes(message["components"], plan.providers()):
            raise UserError(f"must have the plugins of rank 0, but of these (there: was, here: is) {different[0]}")
        source, target = message["sizes"]
        model = build(plan.sound_model, source, target, spec.seed)
        named = dict([*model.named_parameters(), *model.built_buffers().items()])
        if list(named) != message["names"]:
            raise UserError("must have the model of rank 0, but its parameters are called otherwise")
        for tensor, array in zip(named.values(), arrays):
            tensor.set_value(array)
        model.train()
        self.gradients = Gradients(model, trained_parameters(model), plan.settings.train, spec.seed)
        self.flat = Flat(self.gradients.parameters)

    def _step(self, message: Message, arrays: list[np.ndarray]) -> None:
        """Answer with the gradients of this rank's rows."""
        gradients, member = self.gradients, self.member
        if gradients is None:
            raise UserError("must get a model before a batch")
        weights, arrays = arrays[0], arrays[1:]
        for parameter, view in zip(gradients.parameters, self.flat.views(weights)):
            parameter.set_value(view)
        facts = message["batches"]
        for buffer, array in zip(gradients.model.built_buffers().values(), arrays[len(ARRAYS) * len(facts) :]):
            buffer.set_value(array)
        batches = batches_of(facts, arrays)
        losses = backward_of_rank(gradients, message["number"], batches, member.rank, member.size, member.total)
        member.reduce(self.flat.take(losses.loss, self.stop()))
        gradients.clear()
