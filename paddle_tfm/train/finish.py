"""The end of a training: the mean of its last weights; the tests of its best checkpoint, which the validation split
chose (the run's own, and the further ones of `evaluate.tests`); and `results.json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from paddle_tfm.caveats import said
from paddle_tfm.data.codec import Encoded
from paddle_tfm.files import write_whole
from paddle_tfm.model.size import matrix_parameters
from paddle_tfm.predictions import predictions_file, write_predictions
from paddle_tfm.protocols import Prediction, Search
from paddle_tfm.recipe.sections.further_tests import FurtherTest
from paddle_tfm.runs import checkpoint, manifest
from paddle_tfm.runs.forms import Progress
from paddle_tfm.train import running_statistics
from paddle_tfm.train.about import write_peak_memory
from paddle_tfm.train.evaluate import DecodingTime, Scorer, caveats, log_probs, signatures
from paddle_tfm.train.run import Run
from paddle_tfm.train.state import TrainingState
from paddle_tfm.units import AT


def finish(
    state: TrainingState,
    score: Scorer,
    diverged: str | None,
    save_best: Callable[[], None],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Score the best checkpoint, predictions written beside the run's results, which are returned. Of a trial of tuning
    the test split is not looked at: it chooses nothing.

    Args:
        diverged: a sentence if the loss or its gradient became NaN or infinite.
        save_best: saves the mean of the last weights, which the model has, where that is the best so far.
        say: gets what the user should know.
    """
    run, progress, averaged = state.run, state.progress, None
    if run.settings.train.average and progress.best is not None:
        averaged = _average_last(state, score)
        outcome = "is the best checkpoint"
        if averaged["is_best"]:
            save_best()
        else:
            outcome = f"is no better than step {progress.best_step}, which is kept"
        say(f"the mean of the weights of steps {', '.join(map(str, averaged['steps']))} {outcome}")
    final = FinalTests(run, score, run.search())
    if progress.best is not None:
        checkpoint.load_model(state.existing("best"), run.model)
        if not run.plan.run.is_trial:
            final.do()
    results = results_of(run, progress, state.wall_seconds(), score, final, averaged, diverged)
    for sentence in () if run.plan.run.is_trial else said({run.name: [results]}):
        say(sentence)
    return results


def _average_last(state: TrainingState, score: Scorer) -> dict[str, Any]:
    """Give the model the mean of the weights of the last evaluations, and score it on the validation split: its steps,
    whether it is the best so far (`is_best`), and its metrics."""
    run, progress = state.run, state.progress
    folders = [state.existing(manifest.snapshot(step)) for step in progress.snapshots]
    checkpoint.set_arrays(run.model, mean([checkpoint.load_arrays(folder) for folder in folders]))
    running_statistics.estimate_all(run.model, run.stream(), run.seed)
    metrics, samples = score.valid()
    is_best = progress.improved(score.rank(metrics), metrics, score.caveats(samples))
    if is_best:
        progress.best_step = run.step
    return {"steps": list(progress.snapshots), "is_best": is_best, "valid": metrics}


def mean(states: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The mean of each array, summed in float64."""
    return {
        name: np.asarray(sum(state[name].astype("float64") for state in states) / len(states)).astype(array.dtype)
        for name, array in states[0].items()
    }


def write_results(folder: Path, results: Mapping[str, Any]) -> None:
    """Write `results.json`, by which a run is finished, and remove what it does not need any more."""
    write_peak_memory(folder)
    text = json.dumps(results, indent=1, ensure_ascii=False).encode()
    manifest.write_of_run(folder, text)
    write_whole(folder / "results.json", text)
    manifest.remove_intermediate(folder / "checkpoints")


@dataclass
class FinalTests:
    """Scores on the test split, empty without one; how long its search took; name → what `results.json` holds of each
    further test; and what must stand beside all of these scores (`evaluate.caveats`). `search`: that of the end."""

    run: Run
    score: Scorer
    search: Search
    test: dict[str, float] = field(default_factory=dict)
    tests: dict[str, dict[str, Any]] = field(default_factory=dict)
    decoding: DecodingTime = field(default_factory=DecodingTime)
    caveats: dict[str, dict[str, Any]] = field(default_factory=dict)
    _usual: dict[tuple[str, int], list[Prediction]] = field(default_factory=dict)  # what is written in usual batches

    def do(self) -> None:
        """All of them, predictions written beside the run's results."""
        run = self.run
        if run.encoded["test"]:
            self.test, predictions = self._scored("test", "test", clock=self.decoding)
            self._usual["test", run.model.max_length] = predictions
            write_predictions(predictions_file(run.folder), predictions)
        for name, test in run.settings.evaluate.tests.items():
            with run.model.up_to(test.max_length):
                self.tests[name] = self._further(name, test)

    def _scored(self, label: str, split: str, **options: Any) -> tuple[dict[str, float], list[Prediction]]:
        examples = self.run.encoded[split]
        scores, predictions = self.score(examples, examples, search=self.search, **options)
        self.caveats[label] = caveats(self.run, label, self.search, examples, predictions)
        return scores, predictions

    def _further(self, name: str, test: FurtherTest) -> dict[str, Any]:
        run, split, conditions = self.run, test.texts(name), test.conditions
        examples = run.encoded[split]
        scores, predictions = self._scored(test.label(name), split, **conditions)
        write_predictions(predictions_file(run.folder, test=name), predictions)
        facts = {"texts": split, "data": run.fingerprint[split], "examples": len(examples), **conditions}
        if test.max_length:
            facts["max_length"] = test.max_length
        if test.is_conditioned:
            facts["drift"] = drift(run, examples, conditions)
            facts["changed_outputs"] = changed(self._in_usual_batches(split), predictions)
        return {**facts, "scores": scores}

    def _in_usual_batches(self, split: str) -> list[Prediction]:
        key, examples = (split, self.run.model.max_length), self.run.encoded[split]
        if key not in self._usual:
            self._usual[key] = self.score(examples, examples, search=self.search)[1]
        return self._usual[key]


def drift(run: Run, examples: Sequence[Encoded], conditions: Mapping[str, Any]) -> float:
    """The largest change of a reference's log-probability under teacher forcing, in nats, between batches as usual and
    under these conditions. Of a correct model it is rounding."""
    usual, other = log_probs(run.model, examples), log_probs(run.model, examples, **conditions)
    return max(map(_distance, usual, other), default=0.0)


def _distance(one: float, other: float) -> float:
    return 0.0 if one == other else abs(one - other)  # of two infinite ones too


def changed(usual: Sequence[Prediction], other: Sequence[Prediction]) -> int:
    """How many outputs are others; none where no metric asks for outputs."""
    return sum(one.hypothesis != two.hypothesis for one, two in zip(usual, other, strict=True))


def results_of(
    run: Run,
    progress: Progress,
    wall_seconds: float,
    score: Scorer,
    final: FinalTests,
    averaged: Mapping[str, Any] | None = None,
    diverged: str | None = None,
) -> dict[str, Any]:
    """The run, its size, its times and its scores, as data for JSON.

    Args:
        wall_seconds: of the whole run.
        final: the scores on the test split, how long its search took (`decoding`: sentences, tokens, seconds), and the
            scores of further tests; empty if the model was never evaluated.
        averaged: the mean of the last weights: its steps, whether it became the best checkpoint (`is_best`), and its
            scores on the validation split. None: `train.average` is not set.
    """
    metrics = score.metrics
    size, final_texts = run.recipe.get("size"), run.encoded["test"] or run.encoded["valid"]
    references = len(final_texts[0].example.references)
    signed = signatures(metrics, references)
    for test, facts in final.tests.items():
        if (number := len(run.encoded[facts["texts"]][0].example.references)) != references:
            signed |= {f"{name}{AT}{test}": metric.signature(number) or "nrefs:1" for name, metric in metrics.items()}
    return {
        "recipe": run.plan.run.recipe,
        "variant": run.plan.run.variant,
        **({} if size is None else {"size": size}),
        "seed": run.seed,
        "data": run.fingerprint["test" if run.encoded["test"] else "valid"],
        "steps": run.step,
        "parameters": run.parameters(),
        "matrix_parameters": matrix_parameters(run.model),
        "tokens": progress.tokens,
        "seconds": round(progress.seconds, 3),
        "wall_seconds": round(wall_seconds, 3),
        "tokens_per_second": round(progress.tokens_per_second, 1),
        **({"decoding": _rounded(asdict(final.decoding))} if final.decoding.tokens else {}),
        "best_step": progress.best_step,
        "averaged": averaged,
        "dropped": run.dropped,
        "diverged": diverged,
        "directions": {name: metric.higher_is_better for name, metric in metrics.items()},
        "units": {name: metric.unit for name, metric in metrics.items()},
        "signatures": signed,
        "per_piece": ["loss", *(name for name, metric in metrics.items() if metric.per_piece)],
        "pieces": run.codec.cut(final_texts),
        "valid": progress.valid,
        "test": dict(final.test),
        "tests": dict(final.tests),
        "caveats": {"valid": progress.caveats, **final.caveats},
        **run.history,
    }


def _rounded(times: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in times.items()}
