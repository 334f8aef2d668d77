"""Files of a run that several processes may write at the same time."""

import json
import threading

import pytest

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
    with pytest.raises(IsADirectoryError) as error:
        write_whole(tmp_path / "folder", "x", shared=True)
    assert error.value.filename == str(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]
