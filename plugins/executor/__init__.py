"""The executors that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_executors():
    return {
        "local": "paddle_tfm_plugins.executor.local:Local",
        "command": "paddle_tfm_plugins.executor.command:Command",
        "ray": "paddle_tfm_plugins.executor.ray:Ray",
    }
