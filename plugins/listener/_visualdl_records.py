"""VisualDL's file of records, read back: what a resumed run cannot write again from its log."""

from __future__ import annotations

import struct
from collections.abc import Collection
from pathlib import Path

from google.protobuf.message import DecodeError
from visualdl.proto.record_pb2 import Record

HEADER = struct.Struct("<Q")  # before each record: its number of bytes


def read_records(folder: Path) -> list[Record]:
    """The whole records of the newest file in `folder`; what a killed process left half written is skipped."""
    files = sorted(folder.glob("vdlrecords.*.log"))
    if not files:
        return []
    data, records, place = files[-1].read_bytes(), [], 0
    while place + HEADER.size <= len(data):
        (length,) = HEADER.unpack_from(data, place)
        content = data[place + HEADER.size : place + HEADER.size + length]
        place += HEADER.size + length
        if len(content) < length:
            break
        try:
            records.append(Record.FromString(content))
        except DecodeError:
            break
    return records


def to_keep(records: list[Record], step: int, evaluations: Collection[int]) -> list[Record]:
    """Of a run that continues after `step`: histograms until then, and texts and images of the `evaluations` in
    its log. Its curves are in the log too, and what is later will be written again."""
    kept = []
    for record in records:
        (value,) = record.values
        kind = value.WhichOneof("one_value")
        if (kind == "histogram" and value.id <= step) or (kind in ("text", "image") and value.id in evaluations):
            kept.append(record)
    return kept
