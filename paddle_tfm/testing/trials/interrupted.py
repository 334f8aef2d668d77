"""A plugin that kills its process in the middle of a training, as the system's out-of-memory killer does: nothing is
flushed or closed. It has no component, so that the identity of the run is what it is without."""

import os
import signal

from paddle_tfm.hookspecs import hookimpl

STEPS, EVERY, AT = 8, 4, 7  # of the kit's trainings, between their checkpoints, and where one is killed
TINY = (
    *("task={name: copy, train: 80, valid: 6, test: 6, min_length: 2, max_length: 4}", "train.max_tokens=128"),
    *("model.d_model=16", "model.num_heads=2", "model.d_ff=16", "model.encoder_layers=1", "model.decoder_layers=1"),
    *(f"train.steps={STEPS}", f"evaluate.every={EVERY}"),
)
VARIABLE = "PADDLE_TFM_KILLED_AT"  # of the environment: another step


@hookimpl
def on_step_end(run, step, metrics):
    if step == int(os.environ.get(VARIABLE, AT)):
        os.kill(os.getpid(), signal.SIGKILL)
