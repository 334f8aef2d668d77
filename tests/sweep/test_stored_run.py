"""A run in a store: whole states of it, whatever is killed or damaged."""

import json
import multiprocessing
import os
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from paddle_tfm.sweep import stored_run
from paddle_tfm.sweep.store import Store, StoreError
from paddle_tfm.sweep.stored_run import StoredRun, files_of, state_of

pytest.importorskip("fsspec")


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(stored_run, "PAUSE_SECONDS", 0)


@pytest.fixture
def store(tmp_path):
    return Store(f"file://{tmp_path}/store")


def make_run(folder, step, finished=False):
    """The files of a run, some of which change with its steps."""
    files = {
        "recipe.yaml": "a recipe",
        "metrics.jsonl": "row\n" * step,
        "timings.jsonl": "",
        "vdl/empty.log": "",
        "checkpoints/best/model.safetensors": f"weights {step}",
        "checkpoints/last/model.safetensors": f"weights {step}",
        "checkpoints/last/state.json": json.dumps({"step": step}),
        "identity.json": '{"hash": "x"}',
        **({"results.json": '{"variant": "pre"}'} if finished else {}),
    }
    passing = {"claim.json": "", "metrics.jsonl.partial": "", "checkpoints/last.old/state.json": "{}"}
    for name, text in {**files, **passing}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return files


def saved(store, folder):
    stored = StoredRun(store, "pre/seed-1")
    stored.look()
    stored.save(state_of(folder), folder)


def content(folder):
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_run_is_brought_as_it_was_saved_and_nothing_is_copied_twice(store, tmp_path):
    for step in (1, 2, 3):
        files = make_run(tmp_path / "here", step)
        saved(store, tmp_path / "here")
    stored = StoredRun(store, "pre/seed-1")
    assert stored.look().step == 3 and not stored.look().is_finished and stored.identity(stored.look()) == "x"
    (tmp_path / "there").mkdir()
    assert not stored.fetch_newest(tmp_path / "there", lambda state: state.step > 3)
    assert stored.fetch_newest(tmp_path / "there", lambda state: True)
    assert content(tmp_path / "there") == files
    assert (tmp_path / "there/timings.jsonl").stat().st_nlink == 1  # equal files stay two
    names = store.names("pre/seed-1")
    # Of each of two steps: weights (twice), log, state; of both: recipe, identity, an empty file (twice); two lists.
    assert len(names) == 2 * 3 + 3 + 2 and {"00000002.json", "00000003.json"} <= set(names)


def test_how_far_a_run_is_can_be_brought_when_nobody_claims_it_any_more(store, tmp_path):
    make_run(tmp_path / "here", 2)
    saved(store, tmp_path / "here")
    StoredRun(store, "pre/seed-1").fetch_progress(tmp_path / "there")
    assert content(tmp_path / "there")["metrics.jsonl"] == "row\nrow\n"


@dataclass(frozen=True)
class Deadly(Store):
    """A store whose process is killed within its last operation, of which a half is done."""

    left: list = None

    def _dies(self):
        self.left[0] -= 1
        return self.left[0] < 0

    def write(self, name, content):
        dies = self._dies()
        super().write(name, content[: len(content) // 2] if dies else content)
        if dies:
            os._exit(9)

    def upload(self, file, name):
        self.write(name, file.read_bytes())

    def remove(self, name):
        if self._dies():
            os._exit(9)
        super().remove(name)


def test_whoever_is_killed_while_saving_leaves_the_state_before_or_the_new_one(store, tmp_path):
    fork, here = multiprocessing.get_context("fork"), tmp_path / "here"
    before, kills, seen = make_run(here, 2), 0, set()
    for step in (1, 2):
        before = make_run(here, step)
        saved(store, here)
    while True:
        after = make_run(here, 3)
        process = fork.Process(target=saved, args=(Deadly(store.url, [kills]), here))
        process.start(), process.join()
        there = tmp_path / f"there-{kills}"
        there.mkdir()
        assert StoredRun(store, "pre/seed-1").fetch_newest(there, lambda state: True)
        assert content(there) in (before, after)
        seen.add(content(there) == after)
        if process.exitcode == 0:
            break
        make_run(here, 2)
        for _ in range(2):  # back to where it was, and nothing left of the one that was killed
            saved(store, here)
        assert len(store.names("pre/seed-1")) == 6 + 2
        kills += 1
    assert kills >= 5 and seen == {True, False}


def test_what_is_damaged_is_passed_over(store, tmp_path):
    before = make_run(tmp_path / "here", 1)
    saved(store, tmp_path / "here")
    make_run(tmp_path / "here", 2)
    saved(store, tmp_path / "here")
    stored = StoredRun(store, "pre/seed-1")
    weights = stored.look().files["checkpoints/last/model.safetensors"]
    store.write(f"pre/seed-1/{weights}", b"weights !")
    (tmp_path / "there").mkdir()
    with pytest.raises(StoreError, match=r"damaged: the content of \w{12}… is another"):
        stored.fetch_newest(tmp_path / "there", lambda state: state.step == 2)
    assert content(tmp_path / "there").keys() == {
        f"store.partial/{name}" for name in stored.look().files.values()
    } & set(content(tmp_path / "there"))  # nothing took its place
    assert stored.fetch_newest(tmp_path / "there", lambda state: True) and content(tmp_path / "there") == before
    outside = json.dumps({"step": 3, "is_finished": True, "files": {"../x": weights}})
    sound = json.dumps({"step": 3, "is_finished": False, "files": stored.look().files})
    unsound = {
        "finished without results": sound.replace("false", "true"),
        "nothing": '{"step": 3, "is_finished": true, "files": {}}',
        "infinite": sound.replace("3,", "1e999,", 1),
        "half a pair": sound.replace("recipe.yaml", "a\\ud800"),
    }
    for text in (outside[:-1], outside, "[]", "\xff", *unsound.values()):
        store.write("pre/seed-1/00000003.json", text.encode("latin-1"))
        assert StoredRun(store, "pre/seed-1").look().step == 2


def test_a_run_that_is_brought_half_is_not_begun(store, tmp_path, monkeypatch):
    make_run(tmp_path / "here", 4, finished=True)
    saved(store, tmp_path / "here")
    stored, there = StoredRun(store, "pre/seed-1"), tmp_path / "there"
    make_run(there, 1)
    for name in ("vdl/empty.log", "identity.json", "results.json"):
        replace = Path.replace

        def breaks(source, target, name=name, replace=replace):
            if str(target).endswith(name):
                raise KeyboardInterrupt
            return replace(source, target)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Path, "replace", breaks)
            stored.fetch_newest(there, lambda state: True)
        assert not (there / "results.json").exists() and (there / "identity.json").exists() == (name == "results.json")


def test_the_files_of_a_run_are_listed_while_another_thread_removes_what_passes(tmp_path):
    files, ended = make_run(tmp_path, 1), threading.Event()

    def come_and_go():
        while not ended.is_set():
            for number in range(20):
                (tmp_path / f"upload.partial/{number}/checkpoints/last").mkdir(parents=True)
            shutil.rmtree(tmp_path / "upload.partial")

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(200):
            assert {path.relative_to(tmp_path).as_posix() for path in files_of(tmp_path)} == set(files)
    finally:
        ended.set()
        thread.join()


def test_a_list_of_a_newer_version_is_read(store, tmp_path):
    make_run(tmp_path / "run", 1)
    saved(store, tmp_path / "run")
    (file,) = (tmp_path / "store").rglob("0*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "more": [1]}))
    assert StoredRun(store, "pre/seed-1").look().step == 1


@pytest.mark.parametrize("what", ["no checkpoint", "an older checkpoint", "half a checkpoint"])
def test_a_list_that_says_more_than_it_names_replaces_nothing(what, store, tmp_path):
    """What is here stays until what is brought is whole, and as far as it is said to be."""
    make_run(tmp_path / "there", 2)
    saved(store, tmp_path / "there")
    stored = StoredRun(store, "pre/seed-1")
    files = dict(stored.look().files)
    if what != "an older checkpoint":
        files = {path: content for path, content in files.items() if path != "checkpoints/last/model.safetensors"}
    if what == "no checkpoint":
        files = {path: content for path, content in files.items() if not path.startswith("checkpoints/last")}
    (list_,) = (tmp_path / "store").rglob("0*.json")
    list_.write_text(json.dumps({"step": 9, "is_finished": False, "files": files}))
    make_run(tmp_path / "here", 3)
    before = content(tmp_path / "here")
    with pytest.raises(
        StoreError,
        match=r"damaged: a list says that a checkpoint is of step 9, but names (one of step 2|none that is whole)",
    ):
        stored.fetch_newest(tmp_path / "here", lambda state: state.step > 3)
    assert content(tmp_path / "here") == before


@pytest.mark.parametrize("named", ["codec", "results.json/x"])
def test_a_list_whose_files_have_no_place_here_replaces_nothing(named, store, tmp_path):
    make_run(tmp_path / "there", 2)
    saved(store, tmp_path / "there")
    stored = StoredRun(store, "pre/seed-1")
    files = dict(stored.look().files)
    (list_,) = (tmp_path / "store").rglob("0*.json")
    list_.write_text(json.dumps({"step": 2, "is_finished": False, "files": {**files, named: files["recipe.yaml"]}}))
    make_run(tmp_path / "here", 1)
    for path in ("codec/vocabulary.json", "results.json"):
        (tmp_path / "here" / path).parent.mkdir(exist_ok=True)
        (tmp_path / "here" / path).write_text("[]")
    before = content(tmp_path / "here")
    with pytest.raises(StoreError, match=f"damaged: a list names {named}( as a file)?, but .*/here/.* is a "):
        stored.fetch_newest(tmp_path / "here", lambda state: state.step > 1)
    assert content(tmp_path / "here") == before


@pytest.mark.parametrize("named", ["claim.json", "x.partial/y", "checkpoints/last.old/state.json", "recipe.yaml/z"])
def test_a_list_with_files_that_no_run_leaves_is_none(named, store, tmp_path):
    make_run(tmp_path / "there", 2)
    saved(store, tmp_path / "there")
    files = dict(StoredRun(store, "pre/seed-1").look().files)
    (list_,) = (tmp_path / "store").rglob("0*.json")
    list_.write_text(json.dumps({"step": 2, "is_finished": False, "files": {**files, named: files["recipe.yaml"]}}))
    assert StoredRun(store, "pre/seed-1").look() is None


def test_a_finished_run_needs_no_checkpoint_to_resume_from(store, tmp_path):
    make_run(tmp_path / "there", 2, finished=True)
    shutil.rmtree(tmp_path / "there/checkpoints/last")
    (tmp_path / "there/checkpoints/best/state.json").write_text("{}")
    saved(store, tmp_path / "there")
    stored = StoredRun(store, "pre/seed-1")
    assert stored.fetch_newest(tmp_path / "here", lambda state: state.is_finished)
    assert (tmp_path / "here/results.json").exists() and not (tmp_path / "here/checkpoints/last").exists()


def test_a_list_of_a_finished_run_without_a_checkpoint_replaces_none(store, tmp_path):
    make_run(tmp_path / "there", 2, finished=True)
    shutil.rmtree(tmp_path / "there/checkpoints")
    saved(store, tmp_path / "there")
    make_run(tmp_path / "here", 1)
    before = content(tmp_path / "here")
    with pytest.raises(StoreError, match=r"a list of a finished run names no whole checkpoint: .*best"):
        StoredRun(store, "pre/seed-1").fetch_newest(tmp_path / "here", lambda state: state.is_finished)
    assert content(tmp_path / "here") == before


def test_after_a_list_of_any_number_comes_one_that_is_seen(store, tmp_path):
    store.write("pre/seed-1/99999999.json", b"")
    make_run(tmp_path / "run", 1)
    saved(store, tmp_path / "run")
    assert StoredRun(store, "pre/seed-1").look().step == 1


def test_what_is_brought_is_not_written_through_a_link(store, tmp_path):
    make_run(tmp_path / "run", 1)
    saved(store, tmp_path / "run")
    (tmp_path / "here").mkdir()
    (tmp_path / "precious").write_text("old")
    (tmp_path / "here/recipe.yaml").symlink_to(tmp_path / "precious")
    stored = StoredRun(store, "pre/seed-1")
    stored.fetch(tmp_path / "here", stored.look())
    assert (tmp_path / "precious").read_text() == "old"
    assert (tmp_path / "here/recipe.yaml").read_text() == "a recipe"
