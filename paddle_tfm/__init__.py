"""paddle_tfm: a PaddlePaddle Seq2Seq Transformer engine in which every part a researcher would swap is a plugin.

`import paddle_tfm` before `import paddle`: it sets what makes Paddle fast on a CPU (`paddle_tfm.runtime`). Nothing
heavy is imported until one of the names below is used; they are documented in `paddle_tfm.api`.
"""

from paddle_tfm import runtime
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.hookspecs import hookimpl

__version__ = "0.1.0"
_API = ("build_model", "compare", "create_registry", "load_recipe", "load_run", "run")
__all__ = [*_API, "RecipeError", "UserError", "__version__", "hookimpl"]

runtime.prepare()


def __getattr__(name: str):
    if name in _API:
        from paddle_tfm import api

        return getattr(api, name)
    raise AttributeError(f"module 'paddle_tfm' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_API})
