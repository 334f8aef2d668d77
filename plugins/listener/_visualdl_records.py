"""VisualDL's file of records, read back: what a resumed run cannot write again from its log."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from google.protobuf.message import DecodeError
from visualdl.proto.record_pb2 import Record

HEADER = struct.Struct("<Q")  # before each record: its number of bytes


def read_records(folder: Path) -> Iterator[Record]:
    """The whole records of the newest file in `folder`, one after the other; what a killed process left half written is
    skipped, and so is all that follows what is no record."""
    files = sorted(folder.glob("vdlrecords.*.log"))
    if not files:
        return
    with files[-1].open("rb") as file:
        while len(header := file.read(HEADER.size)) == HEADER.size:
            (length,) = HEADER.unpack(header)
            content = file.read(length)
            if not content or len(content) < length:
                return
            try:
                yield Record.FromString(content)
            except DecodeError:
                return


def to_keep(records: Iterable[Record], step: int, evaluations: Collection[int]) -> list[Record]:
    """Of a run that continues after `step`: histograms until then, and texts and images of the `evaluations` in
    its log. Its curves are in the log too, and what is later will be written again."""
    kept = []
    for record in records:
        value = record.values[0]
        kind = value.WhichOneof("one_value")
        if (kind == "histogram" and value.id <= step) or (kind in ("text", "image") and value.id in evaluations):
            kept.append(record)
    return kept
