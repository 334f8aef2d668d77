"""`board` beside a VisualDL whose pages are other than those that it puts right."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

from command_line import call

from paddle_tfm.cli.board.pages import KNOWN, SCRIPTS, mended_script, version

PAGES = Path(importlib.util.find_spec("visualdl").origin).parent / "server" / "dist"


def test_what_is_put_right_stands_in_the_known_version():
    """Once a script; of another version nothing is known."""
    assert version() == KNOWN
    for end, (piece, _) in SCRIPTS.items():
        (file,) = [file for file in PAGES.rglob("*.js") if f"/{file.relative_to(PAGES)}".endswith(end)]
        assert file.read_text("utf-8").count(piece) == 1, end


def test_a_script_takes_the_colours_of_the_variants_of_all_sweeps(tmp_path):
    for sweep, runs in (("a", ["rms/seed-1", "layer/seed-1", "rms/seed-2"]), ("b", ["layer/seed-1", "batch/seed-1"])):
        for run in runs:
            (tmp_path / sweep / run / "vdl").mkdir(parents=True)
            (tmp_path / sweep / run / "vdl" / "vdlrecords.1.log").touch()
        (tmp_path / sweep / "command.json").write_text(json.dumps({"runs": ["tuning/z/trial-1", *runs]}), "utf-8")
    path, text = "/app/_dist_/hooks/useTagFilter.js", "{label:l,colors:[T[n],Q[n]]}"
    assert '={"layer": 1, "batch": 1, "rms": 0}[' in mended_script(path, text, tmp_path)
    assert '={"layer": 0, "batch": 1}[' in mended_script(path, text, tmp_path / "b" / "batch" / "seed-1")
    assert mended_script("/app/other.js", text, tmp_path) == text


PAGES_IN = """
import os
from visualdl.server import app
from visualdl.server.args import ParseArgs, parse_args
from paddle_tfm.cli.board import pages

def main():
    client = app.create_app(ParseArgs(**parse_args())).test_client()
    for asked in {languages}:
        answer = client.get("/app/scalar", headers=[("Accept-Language", asked)] if asked else [])
        cookies = [each.split(";")[0] for each in answer.headers.getlist("Set-Cookie")]
        print(answer.status_code, *cookies, flush=True)
    os._exit(0)  # a thread of VisualDL's would not end

app.main = main
pages.main()
"""


def test_the_pages_open_for_a_browser_of_any_language(tmp_path):
    languages = {"": "en", "fr": "en", "en-GB": "en", "de,zh-CN;q=0.5": "zh", "zh-CN": "zh", "???": "en"}
    done = subprocess.run(
        [sys.executable, "-c", PAGES_IN.format(languages=[*languages]), "--logdir", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\n")[:-1] == [f"200 vdl_lng={language}" for language in languages.values()]


def test_another_visualdl_is_served_as_it_comes_and_that_is_said(tmp_path, monkeypatch):
    (tmp_path / "vdlrecords.1.log").touch()
    monkeypatch.setattr("paddle_tfm.cli.board.version", lambda: "9.9")
    monkeypatch.setattr("os.execv", lambda *command: None)
    done = call("board", tmp_path, "--port", "0")
    assert done.status == 0 and done.out.endswith(":0/  (Ctrl-C ends it)\n")
    assert "VisualDL 9.9 is served unchanged" in done.err and f"`pip install visualdl=={KNOWN}`" in done.err
