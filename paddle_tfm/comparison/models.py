"""The models of a comparison's runs, for sections that need one: each loaded once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddle_tfm.comparison.runs import Result
from paddle_tfm.errors import UserError
from paddle_tfm.registry import Registry

if TYPE_CHECKING:
    from paddle_tfm.train.run import Run


class Models:
    """Loads the best checkpoints of runs. `remarks`: what is to be known of them (code that changed since)."""

    def __init__(self, registry: Registry):
        self.registry = registry
        self.remarks: list[str] = []
        self._loaded: dict[str, Run | str] = {}

    def __call__(self, result: Result) -> Run | None:
        """The run with its model; None where it cannot be loaded."""
        run = self._load(result)
        return None if isinstance(run, str) else run

    def why(self, result: Result) -> str:
        """Why a run cannot be loaded, a sentence; "" where it can."""
        run = self._load(result)
        return run if isinstance(run, str) else ""

    def _load(self, result: Result) -> Run | str:
        from paddle_tfm.train.run import load_run

        key = str(result.folder)
        if key not in self._loaded:
            try:
                self._loaded[key] = load_run(result.folder, self.registry, warn=self.remarks.append)
            except (UserError, OSError) as error:
                self._loaded[key] = str(error)
        return self._loaded[key]
