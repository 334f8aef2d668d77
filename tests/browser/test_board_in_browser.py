"""Every page of VisualDL that a run's log fills, as `paddle-tfm board` serves it, read in Chromium."""

import json
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

import paddle_tfm
from paddle_tfm.colours import COLOURS

pytestmark = pytest.mark.browser

SMALL = ["model.d_model=16", "model.num_heads=2", "model.d_ff=16", "task.train=200", "task.valid=12", "task.test=12"]
METRICS = ["exact_match", "token_accuracy", "token_error_rate", "perplexity"]
VARIANTS = "variants={pre: {model.placement: pre}, post: {model.placement: post, model.norm: {encoder: rms}}}"


@pytest.fixture(scope="module")
def page(chromium):
    return chromium


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """The address of a board of two variants, each a real training of a few steps."""
    folder = tmp_path_factory.mktemp("board") / "dates"
    lines = ["train.steps=12", "evaluate.every=6", "evaluate.examples=8", "seeds=[1]", "baseline=pre"]
    paddle_tfm.run("dates", [*SMALL, *lines, VARIANTS], out=folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "paddle_tfm", "board", str(folder), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    address = process.stdout.readline().split(": ", 1)[1].split()[0]
    try:
        root = address.split("/app")[0]
        ask(root, "/alive", patience=60)
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=20)


def ask(root, path, patience=0.0):
    until = time.monotonic() + patience
    while True:
        try:
            with urllib.request.urlopen(root + path, timeout=30) as answer:
                return answer.read()
        except (urllib.error.HTTPError, ConnectionError, urllib.error.URLError) as error:
            if isinstance(error, urllib.error.HTTPError) or time.monotonic() > until:
                return b""
            time.sleep(0.3)


def wait(page, expression, patience=60):
    """The first value of an expression that is true."""
    until = time.monotonic() + patience
    while not (value := page.js(expression)):
        assert time.monotonic() < until, f"never true: {expression}"
        time.sleep(0.3)
    return value


def texts(selector):
    return f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)"


def tags_drawn(page, path):
    """The tags of the charts on a page: titles are drawn on canvas, but each chart asks for its data."""
    urls = [item["request"]["url"] for method, item in page.events if method == "Network.requestWillBeSent"]
    queries = [urllib.parse.urlsplit(url) for url in urls]
    return {urllib.parse.parse_qs(url.query)["tag"][0] for url in queries if url.path.endswith(path)}


def click(page, text):
    wait(
        page,
        "(() => { const e = [...document.querySelectorAll('*')].filter(e => !e.children.length && e.textContent.trim() "
        f"=== {text!r}); if (e.length) e[0].click(); return e.length; }})()",
    )


def test_it_opens_on_curves_unsmoothed_with_train_and_valid_expanded(page, board):
    assert board.endswith("/app/scalar")
    for address in (board, board.replace("/app/scalar", "/"), board.replace("scalar", "index")):
        page.open(address)
        wait(page, "document.querySelectorAll('canvas').length >= 8")
        assert page.js("location.pathname") == "/app/scalar"
        assert {"train", "valid", "test"} == set(page.js(texts("h3")))
        drawn = tags_drawn(page, "/api/scalar/list")
        assert {"train/loss", "train/gradient_norm", "valid/loss", *(f"valid/{name}" for name in METRICS)} <= drawn
        assert not any(tag.startswith("test/") for tag in drawn)
        smoothing = "[...document.querySelectorAll('input')].map(e => e.value).filter(v => /^[0-9.]+$/.test(v))"
        assert page.js(smoothing) == ["0"]
        assert page.js("localStorage.getItem('scalar_smoothing')") is None


def test_a_run_has_the_colour_of_its_variant(page, board):
    page.open(board)
    dots = (
        "Object.fromEntries([...document.querySelectorAll('*')].filter(e => /^(pre|post)[/]seed-1$/.test(e.textContent"
        ".trim())).flatMap(e => [...e.querySelectorAll('*')].map(d => [e.textContent.trim(), getComputedStyle(d)"
        ".backgroundColor])).filter(pair => pair[1].startsWith('rgb(')))"
    )
    seen = wait(page, f"(dots => Object.keys(dots).length == 2 && dots)({dots})")
    ours = [f"rgb({', '.join(str(int(each[i : i + 2], 16)) for i in (1, 3, 5))})" for each in COLOURS]
    assert seen == {"pre/seed-1": ours[0], "post/seed-1": ours[1]}


def test_the_table_has_what_differs_and_no_empty_cell(page, board):
    page.open(board.replace("scalar", "hyper-parameter"))
    wait(page, "document.body.innerText.match(/Trial ID[^]*dates[^]*dates/)")
    lines = [line for line in page.js("document.body.innerText").split("\n") if line]
    start = lines.index("Trial ID")
    columns = lines[start + 1 : lines.index("test/perplexity", start) + 1]
    assert columns == ["variant", "model/norm", "model/placement", "test/loss", *(f"test/{name}" for name in METRICS)]
    rows = lines[start + 1 + len(columns) :]
    first, second = rows[: 1 + len(columns)], rows[1 + len(columns) : 2 + 2 * len(columns)]
    assert first[1:4] == ["pre", "layer", "pre"] and second[1] == "post" and second[3] == "post"
    assert "encoder: rms" in second[2] and "{" not in second[2]
    assert all(float(value) >= 0 for value in [*first[4:], *second[4:]])


def test_parallel_coordinates_do_not_freeze(page, board):
    """In VisualDL as it comes, the loop that shortens the name of a narrow column does not end: this very test then
    fails because the browser does not answer any more."""
    page.open(board.replace("scalar", "hyper-parameter"))
    click(page, "Parallel Coordinates View")
    names = wait(page, texts(".grid .indicator text"))
    assert names[:1] == ["variant"] and len(names) == 8
    assert any(name.endswith("...") for name in names), "no name had to be shortened: the window is too wide"
    assert page.js("document.querySelectorAll('svg .line').length") == 2
    click(page, "Scatter Plot Matrix View")
    wait(page, "document.querySelectorAll('svg circle, canvas').length > 0")


def test_images_show_attention_and_encodings(page, board):
    page.open(board.replace("scalar", "sample/image"))
    wait(page, "[...document.images].filter(e => e.naturalWidth > 60 && e.src.startsWith('blob')).length >= 4")
    shown = page.js("document.body.innerText")
    assert "attention/last_layer_head_0" in shown and "position/encoder" in shown
    assert page.js("[...document.images].every(e => e.complete && e.naturalWidth > 0)")
    assert set(re.findall(r"\d+/\d+(?=\n|$)", shown)) == {"1/2"}  # two evaluations, and nothing else has their tags


def test_texts_show_samples(page, board):
    page.open(board.replace("scalar", "sample/text"))
    wait(page, "document.body.innerText.includes('reference:')")


def test_histograms_show_weights_and_gradients(page, board):
    page.open(board.replace("scalar", "histogram"))
    # Axes are grey; what has a colour is a histogram.
    coloured = (
        "[...document.querySelectorAll('canvas')].filter(c => { if (!c.width) return false; const d = c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 0; i < d.length; i += 4)"
        "if (Math.max(d[i], d[i+1], d[i+2]) - Math.min(d[i], d[i+1], d[i+2]) > 60) n++; return n > 100; }).length"
    )
    wait(page, f"{coloured} >= 4")
    drawn = tags_drawn(page, "/api/histogram/list")
    assert {f"{kind}/{stack}.0" for kind in ("weights", "gradients") for stack in ("encoder", "decoder")} <= drawn


def test_filled_and_empty_pages_are_those_that_the_docs_name(board):
    tabs = json.loads(ask(board.split("/app")[0], "/app/api/component_tabs"))["data"]
    assert sorted(tabs) == ["histogram", "hyper_parameters", "image", "scalar", "static_graph", "text"]
