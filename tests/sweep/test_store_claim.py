"""Who trains a run in a store, as far as a place without locks can say it."""

import json
import platform
import time

import pytest

from paddle_tfm.errors import UserError
from paddle_tfm.sweep import claim, store_claim
from paddle_tfm.sweep.store import Store
from paddle_tfm.sweep.store_claim import StoreClaim, claimed
from paddle_tfm.sweep.stored_run import StoredRun
from paddle_tfm.train.trainer import Interrupted

pytest.importorskip("fsspec")
FILE = "pre/seed-1/claim.json"
ELSE = {"host": "node7", "pid": 12, "since": "2026-01-01T00:00:00+00:00", "token": "theirs", "beat": 1}


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    for name, seconds in (("BEAT_SECONDS", 0.1), ("SILENT_SECONDS", 1.0), ("WRITTEN_SECONDS", 0.1)):
        monkeypatch.setattr(store_claim, name, seconds)


@pytest.fixture
def store(tmp_path):
    return Store(f"file://{tmp_path}/store")


def never():
    return False


def test_one_at_a_time_and_the_next_after_it(store):
    with claimed(store, "pre/seed-1", never):
        assert json.loads(store.read(FILE))["host"] == platform.node()
        with pytest.raises(
            UserError, match=rf"pre/seed-1 is being trained by process \d+ on {platform.node()}, since "
        ):
            StoreClaim(store, "pre/seed-1").take(never, lambda text: None)
        with claimed(store, "pre/seed-2", never):
            pass
    assert store.read(FILE) is None
    start = time.monotonic()
    with claimed(store, "pre/seed-1", never):
        assert time.monotonic() - start < store_claim.SILENT_SECONDS


def test_an_owner_is_named_whose_sign_of_life_is_seen_by_half(store):
    store.write(FILE, json.dumps(ELSE).encode())

    def half():
        store.write(FILE, b'{"host": "no')
        return False

    with pytest.raises(UserError, match=r"pre/seed-1 is being trained by process 12 on node7, since "):
        StoreClaim(store, "pre/seed-1").take(half, lambda text: None)


@pytest.mark.parametrize("left", [json.dumps(ELSE), "{", ""])
def test_one_that_gives_no_sign_of_life_is_taken_over(store, left):
    store.write(FILE, left.encode())
    said, start = [], time.monotonic()
    with claimed(store, "pre/seed-1", never, said.append) as ours:
        assert time.monotonic() - start > store_claim.SILENT_SECONDS and ours.is_ours()
    who = "process 12 on node7, since 2026" if left.endswith("}") else "another process"
    assert len(said) == 1 and f"claimed in {store} by {who}" in said[0]


def test_whoever_waits_can_be_stopped(store):
    store.write(FILE, json.dumps(ELSE).encode())
    with pytest.raises(Interrupted), claimed(store, "pre/seed-1", lambda: True):
        pass
    assert json.loads(store.read(FILE)) == ELSE


def test_an_owner_that_was_taken_over_for_dead_notices_and_leaves_it(store):
    with claimed(store, "pre/seed-1", never) as ours:
        store.write(FILE, b'{"tok')  # it is being written
        assert ours.is_ours()
        time.sleep(0.3)
        while (content := claim.parsed(store.read(FILE))) == {}:  # it is being written again
            time.sleep(0.01)
        assert content["token"] == ours.token
        store.write(FILE, json.dumps(ELSE).encode())
        end = time.monotonic() + 10
        while not ours.owner and time.monotonic() < end:
            if claim.parsed(store.read(FILE)).get("token") != "theirs":  # a sign of life came between two of our lines
                store.write(FILE, json.dumps(ELSE).encode())
            time.sleep(0.02)
        assert "process 12 on node7" in ours.lost()
    assert json.loads(store.read(FILE)) == ELSE


def test_two_that_begin_at_once_do_not_both_have_it(store, monkeypatch):
    ours, written = StoreClaim(store, "pre/seed-1"), store_claim.StoreClaim._write

    def later(self):
        written(self)
        if self is ours:
            store.write(FILE, json.dumps(ELSE).encode())

    monkeypatch.setattr(store_claim.StoreClaim, "_write", later)
    with pytest.raises(UserError, match="is being trained by process 12 on node7"):
        ours.take(never, lambda text: None)


def test_a_claim_elsewhere_is_seen_here_as_one_that_nobody_can_ask(store, tmp_path):
    with claimed(store, "pre/seed-1", never):
        StoredRun(store, "pre/seed-1").fetch_progress(tmp_path / "here")
    owner = claim.owner(tmp_path / "here")
    assert (owner.host, owner.holds) == (platform.node(), None) and not claim.is_claimed(tmp_path / "here")
    with claim.claimed(tmp_path / "here"):
        assert claim.is_claimed(tmp_path / "here")
