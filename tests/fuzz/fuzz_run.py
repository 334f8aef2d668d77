"""A part of the long run, in a process of its own: `python tests/fuzz/fuzz_run.py TARGET CORPUS INPUTS SECONDS SEED`.

With atheris, which looks for inputs that reach new branches and keeps these in CORPUS; where it is not installed,
hypothesis draws them, and none is kept. Either ends with INPUTS inputs or after SECONDS. `TARGET CORPUS` alone runs what was
kept, for coverage.py.
"""

import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ["paddle_tfm", "paddle_tfm_plugins"]


def with_atheris(name, corpus, inputs, seconds, seed):
    import atheris

    with atheris.instrument_imports(include=PACKAGES):
        import fuzz_targets

        for number, begin in enumerate(fuzz_targets.SEEDS[name]()):
            (corpus / f"seed-{number}").write_bytes(begin)
            fuzz_targets.TARGETS[name](begin)  # within this block, for what is imported late
    options = [f"-runs={inputs}", f"-max_total_time={seconds}", "-max_len=4096", "-rss_limit_mb=4096", f"-seed={seed}"]
    target = fuzz_targets.TARGETS[name]
    arguments = [sys.argv[0], str(corpus), *options, f"-artifact_prefix={corpus.parent}/{name}-"]
    atheris.Setup(arguments, lambda data: fuzz_targets.guarded(target, data))
    atheris.Fuzz()


def with_hypothesis(name, inputs, seconds, seed):
    import fuzz_targets
    from hypothesis import HealthCheck, given, settings
    from hypothesis import seed as seeded
    from test_fuzz import inputs_of

    fuzz_targets.TARGETS[name](fuzz_targets.SEEDS[name]()[0])  # what is imported late is no input's doing
    begin, done = time.monotonic(), [0]

    @seeded(seed)
    @settings(max_examples=inputs, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(inputs_of(name))
    def draw(data):
        if time.monotonic() < begin + seconds:
            done[0] += 1
            fuzz_targets.guarded(fuzz_targets.TARGETS[name], data)

    draw()
    print(f"Done {done[0]} runs in {time.monotonic() - begin:.0f} second(s)", file=sys.stderr)


def again(name, corpus):
    import fuzz_targets

    fuzz_targets.TARGETS[name](fuzz_targets.SEEDS[name]()[0])  # what is imported late is no input's doing
    for file in sorted(corpus.iterdir()):
        fuzz_targets.guarded(fuzz_targets.TARGETS[name], file.read_bytes())


if __name__ == "__main__":
    name, folder = sys.argv[1], Path(sys.argv[2])
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if len(sys.argv) == 3:
        again(name, folder)
    elif find_spec("atheris"):
        with_atheris(name, folder, *map(int, sys.argv[3:]))
    else:
        with_hypothesis(name, *map(int, sys.argv[3:]))
