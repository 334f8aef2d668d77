"""What a rank other than 0 does: it gets a model, then weights and batches, and answers with gradients."""

from __future__ import annotations

import traceback
from typing import NoReturn

from paddle_tfm.data.batches import unpacked
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.model.build import build
from paddle_tfm.model.by_path import prepare
from paddle_tfm.model.size import trained_parameters
from paddle_tfm.plugin_errors import of_plugin
from paddle_tfm.recipe.expansion import Recipe
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.registry import Registry
from paddle_tfm.runs.changes import code_changes
from paddle_tfm.train.ranks.distributed_step import Flat, backward_of_rank
from paddle_tfm.train.ranks.group import Arrays
from paddle_tfm.train.ranks.meeting import Message
from paddle_tfm.train.ranks.member import Member
from paddle_tfm.train.step import Gradients


class Rank:
    """Serves rank 0, which ends this process (`Member`).

    Args:
        registry: of this machine.
    """

    def __init__(self, member: Member, registry: Registry):
        self.member, self.registry = member, registry

    def serve(self) -> NoReturn:
        """Do what rank 0 says, run after run.

        Raises:
            UserError: something is wrong here, which rank 0 is told.
        """
        try:
            while True:
                message, arrays = self.member.next()
                (self._run if message["do"] == "run" else self._step)(message, arrays)
        except Exception as error:
            wrong = error if isinstance(error, UserError) else of_plugin(error)
            last = traceback.format_exception_only(error)[-1].strip()
            text = _("{error}; its own output has the traceback")
            self.member.fail(str(wrong) if wrong else text.format(error=last))
            if wrong is None:
                raise
            raise wrong from None

    def _run(self, message: Message, arrays: Arrays) -> None:
        """Build the model of a run, with the numbers of rank 0."""
        (spec,) = Recipe("the recipe of rank 0", message["recipe"], {}).runs()
        plan = plan_run(spec, self.registry).require_sound("the recipe of rank 0")
        if different := code_changes(message["components"], plan.providers()):
            raise UserError(
                _("must have the plugins of rank 0, but of these (there: was, here: is) {different}").format(
                    different=different[0]
                )
            )
        source, target = message["sizes"]
        model = prepare(build(plan.sound_model, source, target, spec.seed), plan.settings.train)
        named = dict([*model.named_parameters(), *model.built_buffers().items()])
        for name, tensor in named.items():
            tensor.set_value(arrays[name])
        model.train()
        self.gradients = Gradients(model, trained_parameters(model), plan.settings.train, spec.seed)
        self.flat = Flat(self.gradients.parameters)
        self.member.built()

    def _step(self, message: Message, arrays: Arrays) -> None:
        """Answer with the gradients of this rank's rows."""
        gradients, member = self.gradients, self.member
        self.flat.share_weights(member)
        for name, buffer in gradients.model.built_buffers().items():
            if name in arrays:
                buffer.set_value(arrays[name])
        batches = unpacked(message["batches"], arrays)
        losses = backward_of_rank(gradients, message["number"], batches, member.rank, member.size, member.total)
        self.flat.sum_gradients(member, losses.loss)
        gradients.clear()
