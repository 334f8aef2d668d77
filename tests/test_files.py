"""Files of a run that several processes may write at the same time."""

import json
import os
import stat
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

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


def test_a_pipe_is_removed_and_not_opened(tmp_path):
    """`shutil.rmtree` opens it, and waits."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / "inner")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("precious")
    (tmp_path / "precious").mkdir()
    for name in ("folder", "pipe", "link", "gone"):
        files.remove(tmp_path / name)
    assert list(tmp_path.iterdir()) == [tmp_path / "precious"]


def test_no_pipe_is_waited_for_until_a_folder_is_on_the_disk(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("nowhere")
    files.sync_all(tmp_path)


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path):
    (tmp_path / "command.json").mkdir()
    with pytest.raises(IsADirectoryError) as error:
        write_whole(tmp_path / "command.json", "x", shared=True)
    assert error.value.filename == str(tmp_path / "command.json")


@pytest.mark.parametrize("name", ["log", f"log{files.PARTIAL}"])
def test_nothing_is_written_through_a_link(name, tmp_path):
    (tmp_path / "precious").write_text("old")
    (tmp_path / name).symlink_to("precious")
    files.write_whole(tmp_path / "log", "new")
    assert (tmp_path / "precious").read_text() == "old"
    assert (tmp_path / "log").read_text() == "new" and not (tmp_path / "log").is_symlink()


def test_a_small_file_takes_little_memory(tmp_path):
    (tmp_path / "small").write_bytes(b"x" * 10)
    tracemalloc.start()
    try:
        assert files.content(tmp_path / "small") == b"x" * 10
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


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


OPEN = """
import os
from pathlib import Path
from paddle_tfm import files
print("before")
files.write_named(Path("/dev/stdout"), "named\\n")
files.write_named(Path("mine"), "through a link\\n")
print("after", flush=True)
"""


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_an_open_file_that_is_named_is_written_where_it_stands(kind, tmp_path):
    """As by `--json /dev/stdout > all.txt`, or `--json >(wc)`: nothing of it is replaced."""
    (tmp_path / "mine").symlink_to("/dev/stdout")
    with (tmp_path / "all.txt").open("w") as out:
        place = out if kind == "file" else subprocess.PIPE
        done = subprocess.run([sys.executable, "-c", OPEN], cwd=tmp_path, stdout=place, text=True, check=True)
    said = (tmp_path / "all.txt").read_text() if kind == "file" else done.stdout
    assert said == "before\nnamed\nthrough a link\nafter\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.txt", "mine"]


@pytest.mark.parametrize("name", ["/dev/fd/x.html", "/dev/fd/99999999999999999999"])
def test_an_open_file_that_there_is_not_is_an_error_of_the_system(name):
    with pytest.raises(OSError, match="/dev/fd/"):
        files.write_named(Path(name), "text")


def test_links_in_a_circle_are_named(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises((OSError, RuntimeError)):
        files.write_named(tmp_path / "a", "text")


def test_a_file_beside_one_that_is_named_is_nobodys_but_the_users(tmp_path):
    (tmp_path / "mine.yaml.partial").write_text("mine")
    files.write_named(tmp_path / "mine.yaml", "text")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "mine.yaml": "text",
        "mine.yaml.partial": "mine",
    }


def test_a_device_is_not_replaced(tmp_path):
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("who is not root makes no device")
    with pytest.raises(OSError, match="it is a device"):
        write_whole(device, "text")
    assert device.is_char_device()
