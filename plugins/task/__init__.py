"""The task variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_tasks():
    return {
        "dates": "paddle_tfm_plugins.task.dates:Dates",
        "copy": "paddle_tfm_plugins.task.copy:Copy",
        "reverse": "paddle_tfm_plugins.task.reverse:Reverse",
        "sort": "paddle_tfm_plugins.task.sort:Sort",
        "sort_indices": "paddle_tfm_plugins.task.sort_indices:SortIndices",
        "questions": "paddle_tfm_plugins.task.questions:Questions",
        "names": "paddle_tfm_plugins.task.names:Names",
        "parallel": "paddle_tfm_plugins.task.parallel:Parallel",
        "text": "paddle_tfm_plugins.task.text:Text",
        "language": "paddle_tfm_plugins.task.language:Language",
        "truecase": "paddle_tfm_plugins.task.truecase:Truecase",
    }
