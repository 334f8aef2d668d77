"""`paddle-tfm ls data`: on datasets of our own, which a server on the loopback interface gives out."""

import hashlib
import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from click.shell_completion import ShellComplete
from command_line import call

from paddle_tfm.cli import group
from paddle_tfm.data import fetch as fetching

PLUGIN = '''
from paddle_tfm import hookimpl
from paddle_tfm.protocols import Dataset, Example, RemoteFile

class Numbers(Dataset):
    """Numbers in words.

    Here is more.
    """

    folder = "numbers"
    home = "HOME"
    licence = "none at all"
    citation = "Nobody 2020"

    def __init__(self, target: str = "de", count: int = 2):
        if target not in ("de", "fr"):
            raise ValueError(f"`target` must be de or fr, but is '{target}'")
        self.target, self.count = target, count

    @classmethod
    def catalogue(cls):
        return [
            RemoteFile("de", ("HOME/de",), "SHA", 12), RemoteFile("fr", ("HOME/fr",), None, 1_500_000)
        ]

    def files(self):
        return [file for file in self.catalogue() if file.name == self.target]

    def read(self, split, paths):
        for number, line in enumerate(paths[self.target].read_text().splitlines()):
            yield Example(" ".join([split] * (number + 1)), line)

class Needs(Dataset):
    """It needs an option."""
    folder = "needs"
    def __init__(self, size: int):
        self.size = size

class NoDataset:
    """It is none."""

@hookimpl
def register_datasets():
    return {"numbers-1": Numbers, "needs": Needs, "no-dataset": NoDataset, "absent": "nowhere:Nothing"}
'''
GERMAN = b"ein\nzwei\n[b]"


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """`--plugin` and a file with datasets whose files a server gives out."""
    monkeypatch.setenv("PADDLE_TFM_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(fetching, "RETRY_SECONDS", 0.001)
    home = tmp_path / "home"
    home.mkdir()
    (home / "de").write_bytes(GERMAN)
    (home / "fr").write_bytes(b"un\n".ljust(1_500_000, b"x"))

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=home))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    text = PLUGIN.replace("HOME", f"http://127.0.0.1:{server.server_port}")
    (tmp_path / "mine.py").write_text(text.replace("SHA", hashlib.sha256(GERMAN).hexdigest()))
    yield "--plugin", tmp_path / "mine.py"
    server.shutdown()
    server.server_close()
    thread.join()


def output_of(done):
    """What a command printed, without line breaks; it must have succeeded."""
    assert done.status == 0, done.err
    return " ".join(done.out.split())


def listed(plugin):
    return {row["name"]: row for row in json.loads(output_of(call("ls", "data", "--json", *plugin)))}


def test_all_datasets_are_listed(plugin, tmp_path):
    out = output_of(call("ls", "data", *plugin))
    assert f"Datasets in {tmp_path / 'data'}" in out
    assert "numbers-1 Numbers in words. 0.0 kB absent none at all" in out
    rows = listed(plugin)
    assert {"multi30k", "scan", "sigmorphon2020-g2p", "tatoeba-en-zh"} < set(rows)
    assert rows["numbers-1"]["files"] == {"needed": 1, "present": 0, "all": 2}
    assert (rows["numbers-1"]["bytes"], rows["numbers-1"]["state"]) == (12, "absent")
    assert rows["numbers-1"]["folder"] == str(tmp_path / "data" / "numbers")
    assert rows["needs"]["state"] == "present"  # no file of it is missing
    assert rows["no-dataset"]["state"].startswith("broken: 'no-dataset' is no dataset")
    assert rows["absent"]["state"].startswith("broken: dataset 'absent' of plugin 'mine' cannot be loaded")
    (tmp_path / "data" / "multi30k").mkdir(parents=True)
    (tmp_path / "data" / "multi30k" / "train.en.gz").write_bytes(b"")
    assert listed(plugin)["multi30k"]["state"] == "partly, 1 of 6 files"


def test_one_is_shown_before_it_is_fetched(plugin):
    out = output_of(call("ls", "data", "numbers-1", "target=fr", *plugin))
    assert "numbers-1 Numbers in words." in out and "cite Nobody 2020" in out and "options target=fr count=2" in out
    assert "fr 1.5 MB absent not pinned before first use" in out
    assert out.endswith("Not all of its files are on disk. Fetch them: paddle-tfm ls data numbers-1 target=fr --fetch")
    row = json.loads(call("ls", "data", "numbers-1", "target=fr", "--json", *plugin).out)
    assert (row["bytes"], row["state"]) == (1_500_000, "absent")


def test_what_its_options_need_is_fetched_and_shown(plugin, tmp_path):
    folder = tmp_path / "data" / "numbers"
    out = output_of(call("ls", "data", "numbers-1", "--fetch", *plugin))
    assert (folder / "de").read_bytes() == GERMAN and not (folder / "fr").exists()
    assert f"de 0.0 kB present {hashlib.sha256(GERMAN).hexdigest()[:12]}…" in out
    assert "train 3 pairs train → ein train train → zwei train" in out
    assert out.endswith("test test test → [b]")  # no markup of ours
    (tmp_path / "home" / "de").unlink()
    assert output_of(call("ls", "data", "numbers-1", "--fetch", *plugin)) == out  # it is there
    assert "…, pinned at first use" in output_of(call("ls", "data", "numbers-1", "target=fr", "--fetch", *plugin))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["numbers"], "unknown dataset 'numbers'; did you mean 'numbers-1'?"),
        (
            ["numbers-1", "tagret=fr", "--fetch"],
            "numbers-1.tagret: 'numbers-1' has no option 'tagret'; did you mean 'target'? Its options: count, target",
        ),
        (["numbers-1", "fr"], "numbers-1: 'fr' must be option=value"),
        (["numbers-1", "name=fr"], "numbers-1: 'name=fr' must be option=value"),
        (["numbers-1", "count=x"], "numbers-1.count: must be a valid integer, but is 'x'"),
        (["numbers-1", "target=it"], "numbers-1: 'numbers-1' refuses: `target` must be de or fr, but is 'it'"),
        (["needs", "--fetch"], "needs: 'needs' needs the option 'size'"),
        (["no-dataset"], "'no-dataset' is no dataset: NoDataset must subclass paddle_tfm.protocols.Dataset"),
        (["--fetch"], "--fetch: which dataset? `paddle-tfm ls data` lists them; then `ls data NAME --fetch`"),
        (["numbers-1", "--follow"], "--follow goes with `ls runs`, and not with `ls data`; leave it out"),
    ],
)
def test_mistakes_end_in_a_sentence(plugin, arguments, text):
    done = call("ls", "data", *arguments, *plugin)
    assert done.status == 2
    assert done.err.startswith(f"Error: {text}"), done.err
    assert done.err.count("\n") == 1


def test_a_fetch_complains_in_a_sentence(plugin, tmp_path):
    (tmp_path / "home" / "de").unlink()
    done = call("ls", "data", "numbers-1", "--fetch", *plugin)
    assert done.status == 2
    assert "Error: numbers cannot be fetched: 127.0.0.1:" in done.err and "answers 404" in done.err
    assert f"Put into {tmp_path / 'data' / 'numbers'} by hand:\n  de  from http://127.0.0.1:" in done.err


def completions(*words, incomplete):
    shell = ShellComplete(group, {}, "paddle-tfm", "_PADDLE_TFM_COMPLETE")
    return [item.value for item in shell.get_completions(list(words), incomplete)]


def test_names_and_options_complete():
    assert completions("ls", incomplete="") == ["recipes", "components", "plugins", "runs", "data"]
    assert completions("ls", "data", incomplete="s") == ["scan", "sigmorphon2020-g2p"]
    assert completions("ls", "data", "multi30k", incomplete="") == ["source=", "target=", "test="]
    assert completions("ls", "data", "nothing", incomplete="") == []
    assert completions("ls", "components", incomplete="hea") == ["head"]


def test_a_run_trains_on_a_dataset(plugin, tmp_path):
    """`run` fetches what its recipe names."""
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        "base: base.yaml\nname: mine\nsummary: mine\ntask: {name: parallel, dataset: numbers-1}\ntokenizer: word\n"
        "model: {d_model: 8, num_heads: 1, d_ff: 8, encoder_layers: 1, decoder_layers: 1}\n"
        "train: {steps: 2, max_tokens: 64}\nevaluate: {every: 2}\nseeds: [1]\n"
    )
    done = call("run", recipe, "--out", tmp_path / "out", "--workers", "1", *plugin)
    assert done.status == 0, done.err
    assert "fetching numbers/de (0.0 kB)\n" in done.err
    assert (tmp_path / "data" / "numbers" / "de").read_bytes() == GERMAN
    assert json.loads((tmp_path / "out" / "default" / "seed-1" / "results.json").read_text())["steps"] == 2
