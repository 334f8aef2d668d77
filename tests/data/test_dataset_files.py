"""Where files of datasets lie, when they count as right, and the errors where they cannot be had."""

import hashlib
import json
import os
import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pluggy
import pytest

from paddle_tfm import hookspecs, load_recipe
from paddle_tfm.data import datasets
from paddle_tfm.data import fetch as fetching
from paddle_tfm.errors import UserError
from paddle_tfm.plugins import Plugins
from paddle_tfm.protocols import Dataset, Example, RemoteFile
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.registry import Registry

TEXT = b"one\teins\ntwo\tzwei\n"
SHA = hashlib.sha256(TEXT).hexdigest()


class Numbers(Dataset):
    """Two numbers."""

    folder = "numbers"
    remote_files = (RemoteFile("a.tsv", ("http://127.0.0.1:9/a.tsv",), SHA, len(TEXT)),)

    def files(self):
        return self.remote_files

    def read(self, split, paths):
        return (Example(*line.split("\t")) for line in paths["a.tsv"].read_text("utf-8").splitlines())


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The folder of all datasets; servers are abandoned at once."""
    monkeypatch.setenv("PADDLE_TFM_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(fetching, "RETRY_SECONDS", 0.001)
    return tmp_path / "data"


def put(data, content=TEXT, name="a.tsv"):
    (data / "numbers").mkdir(parents=True, exist_ok=True)
    (data / "numbers" / name).write_bytes(content)
    return data / "numbers" / name


def numbers(*files):
    dataset = Numbers()
    dataset.remote_files = files
    return dataset


def complaint(dataset):
    with pytest.raises(UserError) as caught:
        datasets.ensure(dataset)
    return str(caught.value)


@pytest.fixture
def home(tmp_path):
    """A folder that a server gives out, and its address."""
    served = tmp_path / "home"
    served.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=served))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield served, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


# ---------------------------------------------------------------------------------------------------------------- place


def test_the_folder_is_the_variables_or_the_platforms(monkeypatch, tmp_path):
    monkeypatch.setenv("PADDLE_TFM_DATA", str(tmp_path))
    assert datasets.root() == tmp_path and datasets.folder(Numbers) == tmp_path / "numbers"
    monkeypatch.setenv("PADDLE_TFM_DATA", "~/corpora")
    assert datasets.root() == Path.home() / "corpora"
    monkeypatch.setenv("PADDLE_TFM_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert datasets.root().parts[-2:] == ("paddle_tfm", "data")


def test_a_dataset_without_files_needs_no_folder(data):
    class Inline(Dataset):
        def read(self, split, paths):
            assert paths == {}
            return iter([Example(split, "x")])

    assert list(datasets.examples(Inline(), "valid")) == [("valid", "x", (), ())]
    assert not data.exists()


# --------------------------------------------------------------------------------------------------------------- hashes


def test_a_file_that_is_here_is_used_as_it_is(data):
    path = put(data)
    assert datasets.ensure(Numbers()) == {"a.tsv": path}
    assert [tuple(each)[:2] for each in datasets.examples(Numbers(), "train")] == [("one", "eins"), ("two", "zwei")]
    assert datasets.present(Numbers, Numbers.remote_files) == list(Numbers.remote_files)


def test_a_wrong_hash_is_reported_with_the_remedy(data):
    path = put(data, TEXT + b"\n")
    assert re.fullmatch(
        rf"{path}: its SHA-256 is \w{{16}}…, but should be {SHA[:16]}…; delete it, so that it is fetched again",
        complaint(Numbers()),
    )


def test_an_unchanged_file_is_hashed_once(data, monkeypatch):
    path, hashed = put(data), []
    monkeypatch.setattr(datasets, "sha256", lambda file: hashed.append(file) or fetching.sha256(file))
    for _ in range(3):
        datasets.ensure(Numbers())
    assert hashed == [path]
    stat = path.stat()
    path.write_bytes(TEXT.replace(b"one", b"One"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # the same size and time
    assert "its SHA-256 is" in complaint(Numbers()) and hashed == [path, path]


@pytest.mark.parametrize("record", ["{", "[]", '{"a.tsv": {}}'])
def test_a_damaged_record_is_no_record(data, record):
    path = put(data)
    path.with_name(datasets.RECORD).write_text(record, "utf-8")
    datasets.ensure(Numbers())
    assert json.loads(path.with_name(datasets.RECORD).read_text())["a.tsv"]["sha256"] == SHA


def test_a_folder_that_cannot_be_written_is_a_sentence(data):
    data.mkdir()
    (data / "numbers").write_text("")
    assert complaint(Numbers()) == (
        f"{data / 'numbers'} lacks a.tsv and cannot be written: File exists; set PADDLE_TFM_DATA to a folder that has "
        "what is missing, or to one that can be written"
    )


def test_what_nobody_hashed_is_pinned_at_first_use(data):
    path, unpinned = put(data), numbers(Numbers.remote_files[0]._replace(sha256=None))
    assert datasets.first_hashes(Numbers) == {}
    datasets.ensure(unpinned)
    assert datasets.first_hashes(Numbers) == {"a.tsv": SHA}
    datasets.ensure(unpinned)
    put(data, b"more", "b.tsv")
    datasets.ensure(numbers(RemoteFile("b.tsv", ())))
    assert datasets.first_hashes(Numbers)["a.tsv"] == SHA  # one record for all
    path.write_bytes(b"other")
    reason = complaint(unpinned)
    assert (
        f"but was {SHA[:16]}… when first used; to accept another, delete it and {path.with_name(datasets.RECORD)}"
        in reason
    )
    path.unlink()
    put(data, b"other")
    assert complaint(unpinned) == reason  # the pin outlives the file
    path.with_name(datasets.RECORD).unlink()
    datasets.ensure(unpinned)
    assert datasets.first_hashes(Numbers) == {"a.tsv": hashlib.sha256(b"other").hexdigest()}


# ------------------------------------------------------------------------------------------------------------- fetching


def test_what_is_missing_is_fetched_and_the_rest_is_not(data, home):
    served, address = home
    (served / "b.tsv").write_bytes(b"three\tdrei\n")
    put(data)
    file = RemoteFile("b.tsv", (f"{address}/b.tsv",))
    paths = datasets.ensure(numbers(*Numbers.remote_files, file))
    assert paths["b.tsv"].read_bytes() == b"three\tdrei\n"
    (served / "b.tsv").unlink()
    assert datasets.ensure(numbers(*Numbers.remote_files, file)) == paths
    assert sorted(path.name for path in paths["b.tsv"].parent.iterdir()) == [".checked.json", "a.tsv", "b.tsv"]


def test_without_network_the_files_are_listed_with_their_places(data):
    put(data)
    files = [RemoteFile(name, (f"http://127.0.0.1:9/{name}", f"http://127.0.0.1:8/{name}")) for name in ("b", "c")]
    assert complaint(numbers(*Numbers.remote_files, *files)) == (
        "numbers cannot be fetched: 127.0.0.1:9 cannot be reached: Connection refused; 127.0.0.1:8 cannot be reached: "
        "Connection refused. "
        f"Put into {data / 'numbers'} by hand:"
        "\n  b  from http://127.0.0.1:9/b or http://127.0.0.1:8/b"
        "\n  c  from http://127.0.0.1:9/c or http://127.0.0.1:8/c"
    )


def test_all_datasets_of_a_run_are_fetched(data, home):
    served, address = home
    (served / "a.tsv").write_bytes(TEXT)

    class Mine(Numbers):
        remote_files = (RemoteFile("a.tsv", (f"{address}/a.tsv",), SHA),)

    plugin = ModuleType("mine")
    plugin.register_datasets = hookspecs.hookimpl(lambda: {"mine-1": Mine})
    plugin.register_datasets.__name__ = "register_datasets"
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(plugin)
    manager.load_setuptools_entrypoints(hookspecs.PROJECT)
    registry = Registry(Plugins(manager))
    datasets.fetch_all(planned("mine-1", registry))
    assert (data / "numbers" / "a.tsv").read_bytes() == TEXT
    with pytest.raises(UserError, match="unknown dataset 'mine-2'; did you mean 'mine-1'"):
        datasets.fetch_all(planned("mine-2", registry))


def planned(dataset, registry):
    task = f"task={{name: parallel, dataset: {dataset}}}"
    return plan_run(load_recipe("base", [task]).runs()[0], registry)
