"""A store: files with names at a URL, and one sentence for whatever is wrong with it."""

import os
from importlib.util import find_spec

import pytest

from paddle_tfm.sweep import store as stores
from paddle_tfm.sweep.store import Store, StoreError

pytest.importorskip("fsspec")


@pytest.fixture(params=["file", "memory", "s3", "sftp"])
def store(request, place):
    return Store(f"{place(request.param)}/a store")


def test_files_are_written_read_listed_copied_and_removed(store, tmp_path):
    store.require_usable()
    assert store.names("") == [] and store.names("pre/seed-1") == [] and store.read("pre/seed-1/x") is None
    store.write("pre/seed-1/x", b"1")
    store.write("pre/seed-1/x", b"22")
    (tmp_path / "here").write_bytes(b"333")
    store.upload(tmp_path / "here", "pre/seed-1/y")
    assert store.names("") == ["pre"] and sorted(store.names("pre/seed-1")) == ["x", "y"]
    assert (store.read("pre/seed-1/x"), store.read("pre/seed-1/y")) == (b"22", b"333")
    store.download("pre/seed-1/y", tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == b"333"
    store.remove("pre/seed-1/x"), store.remove("pre/seed-1/x")
    assert store.names("pre/seed-1") == ["y"]
    with pytest.raises(StoreError, match="there is no such folder"):
        store.download("pre/seed-1/x", tmp_path / "there")


def test_no_more_of_a_file_is_read_than_one_of_ours_has(store, monkeypatch):
    monkeypatch.setattr(stores, "LARGEST", 1000)
    for size in (0, 1, 1000):
        store.write("pre/seed-1/x", b"x" * size)
        assert store.read("pre/seed-1/x") == b"x" * size
    store.write("pre/seed-1/x", b"x" * 1001)
    with pytest.raises(StoreError, match=r"/a store/pre/seed-1/x: damaged: it has more than 1,000 bytes"):
        store.read("pre/seed-1/x")


def test_a_file_without_end_is_not_read_to_it(tmp_path):
    (tmp_path / "store").mkdir()
    with (tmp_path / "store/command.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(StoreError, match="damaged: it has more than"):
        Store(f"file://{tmp_path}/store").read("command.json")


@pytest.mark.parametrize("name", ["pre/seed-1/x", "pre"])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to(path.parents[3] / "precious")])
def test_no_link_is_written_through_and_no_pipe_waited_for(make, name, tmp_path):
    """By all that a store does; `pre` is a folder's."""
    store, path = Store(f"file://{tmp_path}/sub/store"), tmp_path / "sub/store" / name
    path.parent.mkdir(parents=True)
    (tmp_path / "precious").write_text("old")
    make(path)
    for what in (
        lambda: store.read("pre/seed-1/x"),
        lambda: store.write("pre/seed-1/x", b"new"),
        lambda: store.upload(tmp_path / "precious", "pre/seed-1/x"),
        lambda: store.download("pre/seed-1/x", tmp_path / "there"),
        lambda: store.remove("pre/seed-1/x"),
    ):
        with pytest.raises(StoreError, match=f"{path}: is (a link|no regular file)"):
            what()
    assert (tmp_path / "precious").read_text() == "old" and not (tmp_path / "there").exists()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("runs/x", "--store runs/x: must be a URL of fsspec, such as s3://bucket/sweep"),
        ("sftp://me:secret@host/x", "--store sftp://…: everybody on the machine sees a password in a URL"),
        ("s3://[x/y", "--store: not a URL"),
        ("s4://bucket/x", "s4://bucket/x: Protocol not known: s4"),
        ("file:///no/such/parent/x", "file:///no/such/parent/x: there is no such folder or bucket, and it is not made"),
        (f"file://{__file__}/x", "Not a directory"),
    ],
)
def test_what_is_wrong_with_a_store_is_said_in_one_sentence(url, sentence):
    with pytest.raises(StoreError) as error:
        Store(url).require_usable()
    assert sentence in str(error.value) and "\n" not in str(error.value) and "secret" not in str(error.value)


def test_a_place_where_nothing_can_be_written_is_refused(tmp_path):
    if os.getuid() == 0:
        pytest.skip("root may write everywhere")
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="Permission denied"):
        Store(f"file://{tmp_path}/x").require_usable()


def test_what_is_not_installed_is_named(monkeypatch):
    if find_spec("gcsfs") is None:
        with pytest.raises(StoreError, match=r"gs://b/x: its protocol needs a package that is not installed: .*gcsfs"):
            Store("gs://b/x").require_usable()
    monkeypatch.setattr(stores, "find_spec", lambda name: None)
    with pytest.raises(StoreError, match=r'a store needs the package fsspec: pip install "fsspec>='):
        Store("file:///x").require_usable()
