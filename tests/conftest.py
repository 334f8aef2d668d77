"""Paddle is imported once, with its settings made, before any test module imports it."""

import paddle_tfm.runtime

paddle_tfm.runtime.load_paddle()
