"""A run that is killed at 25 random moments, whatever it does then, ends as the one that was let alone; one of real
size that is stopped at 20 leaves a checkpoint each time."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from paddle_tfm.runs import manifest
from paddle_tfm.testing.same_runs import differences

KILLS, STEPS = 25, 120
COMMAND = [
    *(sys.executable, "-m", "paddle_tfm", "run", "base", "--device=cpu", "--workers=1", "--resume", "seeds=[1]"),
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 5, train: 200, valid: 8, test: 8}",
    *("model.d_model=16", "model.num_heads=2", "model.d_ff=24", "model.encoder_layers=1", "model.decoder_layers=1"),
    *("model.max_length=10", "model.norm=batch", "model.dropout=0.1", "train.max_tokens=128", "train.accumulate=2"),
    *(f"train.steps={STEPS}", "evaluate.every=4", "evaluate.patience=25", "train.ema=0.99", "train.average=3"),
]  # fmt: skip
RUN = "default/seed-1"


def logged(run):
    """The last step in the log of a run, 0 where there is none. The line that is being written may be there in part."""
    log = run / "metrics.jsonl"
    lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
    return json.loads(lines[-1])["step"] if lines else 0


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_bits(tmp_path):
    whole, killed, rng = tmp_path / "whole", tmp_path / "killed", random.Random(18)
    subprocess.run([*COMMAND, f"--out={whole}"], check=True, capture_output=True)
    step = json.loads((whole / RUN / "results.json").read_text())["wall_seconds"] / STEPS
    log, at, steps = killed / RUN / "metrics.jsonl", 0, []
    for left in range(KILLS, 0, -1):
        process = subprocess.Popen([*COMMAND, f"--out={killed}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        # counted in steps, not in seconds: a busy machine comes as far between two kills, and an idle one no further
        before, goal = time.time(), at + rng.randrange(1 + 2 * (STEPS - at) // (left + 1))
        while process.poll() is None and (
            not log.exists() or log.stat().st_mtime < before or logged(killed / RUN) < goal
        ):
            time.sleep(0.005)
        time.sleep(rng.uniform(0, step))
        assert process.poll() is None, process.stderr.read().decode()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if point := manifest.resume_point(killed / RUN / "checkpoints", pytest.fail):
            at = json.loads((point / manifest.STATE).read_text())["step"]
        steps.append(at)
    subprocess.run([*COMMAND, f"--out={killed}"], check=True, capture_output=True)
    print("resumed from steps", steps)
    assert len(set(steps)) > 10  # it came forward between the kills
    assert differences(whole / RUN, killed / RUN) == []


@pytest.mark.slow
@pytest.mark.skipif("PADDLE_TFM_DATA" not in os.environ, reason="PADDLE_TFM_DATA must name the folder of Multi30k")
def test_multi30k_stopped_at_random_moments_leaves_a_checkpoint_each_time(tmp_path):
    """Small models never showed that a signal within a product ended the process: at this size every third stop did."""
    run, rng, at = tmp_path / RUN, random.Random(41), 0
    command = [
        sys.executable,
        "-m",
        "paddle_tfm",
        "run",
        "multi30k",
        "--device=cpu",
        "--workers=1",
        "--resume",
        "seeds=[1]",
    ]
    for stop in range(20):
        process = subprocess.Popen([*command, f"--out={tmp_path}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while process.poll() is None and logged(run) <= at:
            time.sleep(0.05)
        time.sleep(rng.uniform(0, 5))
        number, before = (signal.SIGINT, signal.SIGTERM)[stop % 2], logged(run)
        process.send_signal(number)
        said = process.communicate()[1].decode()
        assert process.returncode == 130, (stop, process.returncode, said[-2000:])
        point = manifest.resume_point(run / "checkpoints", pytest.fail)
        at = json.loads((point / manifest.STATE).read_text())["step"]
        assert at >= before > 0, (stop, at, before)
        print(f"stop {stop + 1}: {number.name}, checkpoint of step {at}")
