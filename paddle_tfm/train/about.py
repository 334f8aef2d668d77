"""What is written into `about.json` of a run."""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddle_tfm import runtime
from paddle_tfm.files import json_text, write_whole
from paddle_tfm.runs.forms import ABOUT, NUM_SAMPLES, read_about
from paddle_tfm.text_lengths import MEASURES

if TYPE_CHECKING:
    from paddle_tfm.train.run import Run

MAX_CHARACTERS = 300  # of a sample's text


def write_about(run: Run) -> None:
    """Write the sizes of the run's splits and vocabularies, `NUM_SAMPLES` training examples, the length of the longest
    source of all, the share of padding in its batches, the units of its metrics, and the time and machine of this
    training; a run that is resumed keeps those of the trainings before."""
    from paddle_tfm import paddle_compat

    paddle_compat.reset_peak_memory()  # `write_peak_memory` ends the measurement
    stored = read_about(run.folder).get("trainings", [])
    path, units = run.folder / ABOUT, {name: metric.unit for name, metric in run.metrics().items()}
    write_whole(path, json_text({**_texts(run), "units": units, "trainings": [*stored, _training(run.processes)]}))


def write_peak_memory(folder: Path) -> None:
    """Add to the latest training how much memory its tensors held at once, where that is known."""
    from paddle_tfm import paddle_compat

    about, peak = read_about(folder), paddle_compat.peak_memory()
    if peak is not None and about.get("trainings"):
        about["trainings"][-1]["peak_memory_mib"] = round(peak / 2**20, 2)
        write_whole(folder / ABOUT, json_text(about))


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

    from paddle_tfm.kernels.cpu import library

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
