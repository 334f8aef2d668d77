"""The side `ctranslate2`: the export of a run, decoded by CTranslate2 (OpenNMT's engine for CPUs, in C++) called
directly."""

from __future__ import annotations

import json
import os
from pathlib import Path

import ctranslate2

from benchmarks import libraries
from benchmarks.workload import ALPHA, BEAM, Workload, longest_output
from paddle_tfm.data.vocabulary import BOS, PAD, SPECIAL


class Search(libraries.Search):
    """CTranslate2's search with the export of a run (`paddle_tfm.export`), in float32. Batches are divided among as
    many workers as there are threads; a single sentence uses all threads. Its length penalty differs from ours:
    |output|^alpha."""

    def __init__(self, folder: Path, side: str = "ctranslate2"):
        workload = Workload.read(folder)
        export, threads = Path(workload.sizes["export"]), int(os.environ["OMP_NUM_THREADS"])
        num_threads = {"beam": (threads, 1), "greedy": (1, threads)}
        self.translators = {
            job: ctranslate2.Translator(
                str(export), device="cpu", compute_type="float32", inter_threads=inter, intra_threads=intra
            )
            for job, (inter, intra) in num_threads.items()
        }
        self.source, self.target = (_pieces(export, texts) for texts in ("source", "target"))
        self.ids = {piece: i for i, piece in enumerate(self.target)}
        self.max_length, self.batches = workload.sizes["max_length"], workload.jobs()

    def turn(self, job: str, number: int = 0) -> list[list[int]]:
        """The ids of the best output of each sentence, without the end token."""
        pending = []
        for source, valid, *_ in self.batches[job]:
            lengths = valid.sum(1).tolist()  # with the end token, which the export adds
            texts = [[self.source[i] for i in row[: n - 1]] for row, n in zip(source.tolist(), lengths)]
            pending += self.translators[job].translate_batch(
                texts,
                beam_size=BEAM if job == "beam" else 1,
                length_penalty=ALPHA,
                max_decoding_length=longest_output(source.shape[1], self.max_length),
                suppress_sequences=[[SPECIAL[PAD]], [SPECIAL[BOS]]],
                max_input_length=0,
                asynchronous=True,
            )
            if job == "greedy":
                pending[-1].result()
        return [[self.ids[piece] for piece in output.result().hypotheses[0]] for output in pending]


def _pieces(folder: Path, side: str) -> list[str]:
    """The vocabulary of `source` or `target`, in the order of its ids."""
    own, shared = folder / f"{side}_vocabulary.json", folder / "shared_vocabulary.json"
    return json.loads((own if own.is_file() else shared).read_text("utf-8"))
