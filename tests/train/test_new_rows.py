"""A log that grows is read from where the last look ended."""

import json

import pytest

from paddle_tfm.runs.logs import NewRows, append_row, cut_rows, read_rows


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for step in (1, 2, 3):
        append_row(path, {"step": step, "loss": 1 / step})
    return path


def steps(rows):
    return [row["step"] for row in rows]


def test_each_row_comes_once_and_what_is_known_is_not_read_again(log):
    new = NewRows(log)
    assert steps(new()) == [1, 2, 3] and new() == []
    with log.open("r+b") as file:  # the same file; a reader of the whole log would see these
        file.write(b"x" * log.stat().st_size)
    append_row(log, {"step": 4})
    append_row(log, {"step": 5})
    assert steps(new()) == [4, 5]
    assert steps(read_rows(log)) == [5]  # 4 is on the line of the x


def test_a_line_that_is_being_written_comes_when_it_is_whole(log):
    new, line = NewRows(log), json.dumps({"step": 4, "text": "é中"}, ensure_ascii=False).encode() + b"\n"
    new()
    for i in range(len(line)):
        assert new() == []
        with log.open("ab") as file:
            file.write(line[i : i + 1])
    assert steps(new()) == [4]


def test_a_damaged_line_is_skipped(log):
    with log.open("ab") as file:
        file.write(b'{"step": 4, "lo\n\xff\n[]\n{"step": "5"}\n{"step": 6}\n')
    assert steps(NewRows(log)()) == [1, 2, 3, 6]


def test_a_log_that_a_resumed_training_cut_is_read_again(log):
    new = NewRows(log)
    new()
    cut_rows(log, 2, True)
    append_row(log, {"step": 3, "loss": 0.5})
    assert [(row["step"], row["loss"]) for row in new()] == [(1, 1), (2, 0.5), (3, 0.5)]
    assert new.is_new and new() == [] and not new.is_new
    log.unlink()
    assert new() == []


@pytest.mark.parametrize("most", range(1, 120, 23))
def test_of_a_long_log_its_end_alone_is_read(log, most):
    size = log.stat().st_size
    whole = {step: len(json.dumps(row)) + 1 for step, row in zip((1, 2, 3), read_rows(log))}
    expected, room = [], most if most < size else size + 1
    for step in (3, 2, 1):  # a row of which a byte lies before the cut is not whole
        room -= whole[step]
        if room > 0:
            expected.insert(0, step)
    assert steps(NewRows(log, most)()) == expected
