"""A plugin that ends its process in the middle of a training, as a kill does: nothing is flushed or closed."""

import os

from paddle_tfm.hookspecs import hookimpl

STEPS, EVERY, AT = 8, 4, 7  # of the training, between its checkpoints, and where it ends


@hookimpl
def on_step_end(run, step, metrics):
    if step == AT:
        os._exit(1)
