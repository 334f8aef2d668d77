"""Files of a run that several processes may write at the same time."""

import json
import os
import threading

import pytest

from paddle_tfm import files
from paddle_tfm.files import write_whole


def written_by_many(file):
    """What each of many threads that write a file again and again raised, and every content that was seen meanwhile."""
    errors, seen, contents = [], set(), [json.dumps([name] * 20_000) for name in "abcd"]

    def write(content):
        for _ in range(30):
            try:
                write_whole(file, content, shared=True)
            except OSError as error:
                errors.append(error)
            with file.open() as now:
                seen.add(now.read())

    threads = [threading.Thread(target=write, args=[content]) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors, seen - set(contents)


def test_what_is_shared_is_whole_whoever_writes_it_at_the_same_time(tmp_path):
    file = tmp_path / "command.json"
    file.write_text(json.dumps(["a"] * 20_000))
    assert written_by_many(file) == ([], set())
    assert list(tmp_path.iterdir()) == [file]


def test_a_failure_leaves_the_old_content_and_nothing_beside_it(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        write_whole(tmp_path / "folder", "x", shared=True)
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


def test_what_a_killed_process_left_of_a_shared_file_is_removed(tmp_path):
    left, writing, foreign = (tmp_path / f"command.json.{name}.partial" for name in ("0" * 32, "1" * 32, "my"))
    for path in (left, writing, foreign):
        path.write_text("half")
    for path in (left, foreign):
        os.utime(path, (1e9, 1e9))
    write_whole(tmp_path / "command.json", "x", shared=True)
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "command.json", writing, foreign])


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path):
    (tmp_path / "command.json").mkdir()
    with pytest.raises(IsADirectoryError) as error:
        write_whole(tmp_path / "command.json", "x", shared=True)
    assert error.value.filename == str(tmp_path / "command.json")


def test_what_is_named_may_be_a_pipe_and_stays_one(tmp_path):
    pipe, said = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: said.append(pipe.read_text()))
    reader.start()
    files.write_named(pipe, "text")
    reader.join(timeout=10)
    assert said == ["text"] and pipe.is_fifo()
    (tmp_path / "link").symlink_to("real")
    files.write_named(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "text"


def test_a_file_beside_one_that_is_named_is_nobodys_but_the_users(tmp_path):
    (tmp_path / "mine.yaml.partial").write_text("mine")
    files.write_named(tmp_path / "mine.yaml", "text")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "mine.yaml": "text",
        "mine.yaml.partial": "mine",
    }
