"""`board` beside a VisualDL whose pages are other than those that it puts right."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from paddle_tfm.cli.board.pages import KNOWN, mended_script, unknown_script

VISUALDL = Path(importlib.util.find_spec("visualdl").origin).parent
PAGES = VISUALDL / "server" / "dist"


def test_the_pages_of_the_installed_visualdl_are_known():
    assert unknown_script() is None
    assert unknown_script(PAGES / "no-such-folder") is not None


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


def test_another_visualdl_is_served_as_it_comes_and_that_is_said(tmp_path):
    """The installed one, linked, with one script of a later version."""
    shutil.copytree(VISUALDL, tmp_path / "site" / "visualdl", copy_function=os.symlink)
    shutil.copytree(
        next(VISUALDL.parent.glob("visualdl-*.dist-info")), tmp_path / "site" / f"visualdl-{KNOWN}.dist-info"
    )
    script = next((tmp_path / "site").rglob("resource/scalar/data.js"))
    text = script.read_text("utf-8")
    script.unlink()
    script.write_text(text.replace("let o=.6;", "let o=.7;"), "utf-8")
    (tmp_path / "runs" / "vdl").mkdir(parents=True)
    (tmp_path / "runs" / "vdl" / "vdlrecords.1.log").touch()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "COLUMNS": "400"}
    command = [sys.executable, "-m", "paddle_tfm", "board", str(tmp_path / "runs"), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        address = process.stdout.readline()
    finally:
        process.kill()
        err = process.communicate()[1]
    assert address.endswith(":0/  (Ctrl-C ends it)\n"), address + err
    assert f"VisualDL {KNOWN} has another data.js than {KNOWN}" in err and f"`pip install visualdl=={KNOWN}`" in err
