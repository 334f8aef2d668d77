"""`about.json` of a run, and `command.json` of a sweep: what a report says of them beside their numbers. Where and when
a run was trained changes no number, so that none of this is part of its identity. Reading it needs no Paddle."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddle_tfm import runtime
from paddle_tfm.errors import UserError
from paddle_tfm.files import json_text, write_whole
from paddle_tfm.text_lengths import MEASURES
from paddle_tfm.train.forms import About, Command, read_form

if TYPE_CHECKING:
    from paddle_tfm.train.run import Run

NUM_SAMPLES = 3
MAX_CHARACTERS = 300  # of a sample's text
FILE = "about.json"
COMMAND_FILE = "command.json"


def write_about(run: Run) -> None:
    """Write the sizes of the run's splits and vocabularies, `NUM_SAMPLES` training examples, the length of the longest
    source of all, the share of padding in its batches, the units of its metrics, and the time and machine of this
    training; a run that is resumed keeps those of the trainings before."""
    from paddle_tfm import paddle_compat

    paddle_compat.reset_peak_memory()  # `write_peak_memory` ends the measurement
    stored = read_about(run.folder).get("trainings", [])
    path, units = run.folder / FILE, {name: metric.unit for name, metric in run.metrics().items()}
    write_whole(path, json_text({**_texts(run), "units": units, "trainings": [*stored, _training(run.processes)]}))


def write_peak_memory(folder: Path) -> None:
    """Add to the latest training how much memory its tensors held at once, where that is known."""
    from paddle_tfm import paddle_compat

    about, peak = read_about(folder), paddle_compat.peak_memory()
    if peak is not None and about.get("trainings"):
        about["trainings"][-1]["peak_memory_mib"] = round(peak / 2**20, 2)
        write_whole(folder / FILE, json_text(about))


def read_about(folder: Path) -> dict[str, Any]:
    """What `about.json` holds; empty where there is none, or where it is damaged: a report can do without."""
    try:
        return read_form(folder / FILE, About)
    except UserError:
        return {}


def write_command(
    folder: Path,
    command: Sequence[str],
    runs: Iterable[str] = (),
    baseline: str | None = None,
    question: Mapping[str, Any] | None = None,
    variants: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write what trains the sweep in `folder` again, the names of its runs in their order, the baseline that its recipe
    names, what it asks of its seeds, and which settings it sets for each variant. A sweep whose runs become fewer
    writes it again: who watches it goes by this list."""
    stored = {"command": list(command), "runs": list(runs), "baseline": baseline, "question": question}
    stored["variants"] = variants or {}
    write_whole(folder / COMMAND_FILE, json_text(stored), shared=True)


def read_command(folder: Path) -> list[str]:
    """The command of the sweep in `folder`; empty where none was recorded."""
    return _stored(folder).command


def read_runs(folder: Path) -> list[str]:
    """The names of the runs of the sweep in `folder`, trained or not, in their order; empty where none are recorded."""
    return _stored(folder).runs


def variant_numbers(folder: Path) -> dict[str, int]:
    """Variant → its number, by which `paddle_tfm.colours` colours it: its place in the recipe of the sweep in `folder`.
    Empty where its runs are not recorded."""
    parts = (name.split("/") for name in read_runs(folder))  # trials of tuning lie deeper
    variants = dict.fromkeys(names[0] for names in parts if len(names) == 2)
    return {variant: number for number, variant in enumerate(variants)}


def read_baseline(folder: Path) -> str | None:
    """The baseline that the recipe of the sweep in `folder` names."""
    return _stored(folder).baseline


def read_question(folder: Path) -> dict[str, Any]:
    """What the recipe of the sweep in `folder` asks of its seeds; empty where none is recorded."""
    return _stored(folder).question or {}


def read_variants(folder: Path) -> dict[str, list[str]]:
    """The settings that the recipe of the sweep in `folder` sets for each of its variants, by their paths; empty where
    none are recorded."""
    return _stored(folder).variants


def _stored(folder: Path) -> Command:
    """What `command.json` holds; nothing where there is none, or where it is damaged."""
    try:
        return Command(**read_form(folder / COMMAND_FILE, Command))
    except UserError:
        return Command()


def _texts(run: Run) -> dict[str, Any]:
    from paddle_tfm.model.cache_size import cache_bytes

    train = run.encoded["train"]
    places = sorted({len(train) * part // NUM_SAMPLES for part in range(NUM_SAMPLES)})
    samples = [train[place].example for place in places]
    source, target = train.lengths.mean(0).tolist()
    longest = train[int(train.lengths[:, 0].argmax())].example.source
    return {
        "examples": {split: len(texts) for split, texts in run.encoded.items()},
        "samples": [[text[:MAX_CHARACTERS] for text in (item.source, item.target)] for item in samples],
        "padding": round(run.stream().padding(), 3),
        "mean_length": {"source": round(source, 1), "target": round(target, 1)},
        "longest_source": {unit: measure(longest) for unit, measure in MEASURES.items()},
        "vocabulary": {"source": len(run.codec.source_vocabulary), "target": len(run.codec.target_vocabulary)},
        "parameters": run.parameters(),
        "cache_bytes": cache_bytes(run.model),
    }


def _training(processes: int) -> dict[str, Any]:
    import paddle

    from paddle_tfm.onednn import library

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    return {
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "device": paddle.device.get_device(),
        "processor": _processor(),
        "cores": runtime.physical_cores(),
        "threads": runtime.threads(),
        "instructions": library.instructions(),
        "processes": processes,
        "memory_gib": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {
            "paddle_tfm": metadata.version("paddle-tfm"),
            "paddle": paddle.__version__,
            "python": platform.python_version(),
            "numpy": metadata.version("numpy"),
        },
    }


def _processor() -> str:
    """The processor's name, as Linux says it; else as the platform does."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or "unknown"
