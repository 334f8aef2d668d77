"""paddle_tfm: a PaddlePaddle Seq2Seq Transformer engine in which every part a researcher would swap is a plugin."""

from paddle_tfm import runtime
from paddle_tfm.hookspecs import hookimpl

__version__ = "0.1.0"
__all__ = ["__version__", "hookimpl"]

runtime.prepare()
