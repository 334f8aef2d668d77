"""`paddle-tfm run` of a small recipe, by a process of its own."""

import os
import subprocess
import sys

from recipe_text import TINY_MODEL

TINY = [
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 5, train: 120, valid: 20, test: 20}",
    *TINY_MODEL, "model.max_length=10",
    "train.max_tokens=128", "train.steps=6", "evaluate.every=3", "evaluate.examples=5",
]  # fmt: skip
VARIANTS = "variants={pre: {}, post: {model.placement: post}}"
# One thread whoever trains: sums over another number of threads may differ in the last bit.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
PLUGIN = """
from paddle_tfm import hookimpl
from paddle_tfm.protocols import Norm

class Halved(Norm):
    "Half of everything."

    def __init__(self, d_model: int, by: float = 0.5):
        super().__init__()
        self.by = by

    def forward(self, x, valid=None, positions=None):
        return x * self.by

@hookimpl
def register_norms():
    return {"halved": Halved}
"""


def start(*arguments, recipe="base", program=("-m", "paddle_tfm")):
    command = [sys.executable, *program, "run", recipe, *TINY, *map(str, arguments)]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(*arguments, **options):
    """Status, standard output and standard error."""
    process = start(*arguments, **options)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def logs(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("metrics.jsonl"))}
