"""`paddle-tfm translate`: one line in, one line out, whatever stands in the line; files, n-best, prefixes,
alignments."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import TINY, call
from rich.console import Console

import paddle_tfm
from paddle_tfm.cli.translate import jobs
from paddle_tfm.cli.translate import lines as cli_lines
from paddle_tfm.data import lines as data_lines
from paddle_tfm.inference.translate import Translation

PADDLE = ("--engine", "paddle")  # tests/export has the other
COMMAND = [sys.executable, "-m", "paddle_tfm", "translate", *PADDLE]
LINES = ["1 2 3", "", "10", "5 6 7 8", "   ", "2 2 2", "nothing known", "3", "", "4 9 1"]
BEAM = ("--search", "{name: beam, size: 3, max_extra: 5, min_length: 1}")
# What 20 steps of training leave: outputs without an end, words that no training example has.
REMARKS = r"outputs were cut at |pieces \(.*\) are unknown to the model"
SAMPLES = ("--search", "{name: sampling, samples: 3, max_extra: 5}")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """`reverse`, after 20 steps."""
    out = tmp_path_factory.mktemp("translating") / "out"
    done = call("run", "reverse", *TINY, "train.steps=20", "evaluate.every=20", "model.decoder_layers=2", "--out", out)
    assert done.status == 0, done.err
    return out / "default" / "seed-1"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def input_file(tmp_path):
    """The file that most tests translate."""
    (tmp_path / "in.txt").write_text("\n".join(LINES) + "\n", "utf-8")
    return tmp_path / "in.txt"


def translate(run, *arguments, **options):
    done = call("translate", run, *PADDLE, *arguments, **options)
    others = [line for line in done.err.splitlines() if not re.search(REMARKS, line)]
    assert (done.status, others) == (0, [])
    return done.out


# ------------------------------------------------------------------------------------------------------ lines and files


@pytest.mark.parametrize("search", [(), BEAM, SAMPLES])
def test_one_line_in_one_line_out(run, input_file, search):
    out = translate(run, "--input", input_file, *search)
    rows = out.split("\n")
    assert len(rows) == len(LINES) + 1 and rows[-1] == ""
    assert all((row == "") == (line.strip() == "") for row, line in zip(rows, LINES) if search == BEAM)
    assert rows[1] == rows[4] == rows[8] == ""
    assert translate(run, *search, stdin=input_file.read_text()) == out
    assert translate(run, "--input", "-", *search, stdin=input_file.read_text()) == out
    assert translate(run, *search, "--", *LINES) == out
    assert translate(run, *search, "--batch-tokens", 1, "--input", input_file) == out
    assert translate(run, *search, "--input", input_file, "--output", "out.txt") == ""
    assert (input_file.parent / "out.txt").read_text("utf-8") == out
    assert translate(run, *search, "--input", input_file, "--output", "-") == out


def test_packed_files(run, input_file):
    out = translate(run, "--input", input_file)
    with gzip.open("in.txt.gz", "wt", encoding="utf-8") as file:
        file.write(input_file.read_text("utf-8"))
    assert translate(run, "--input", "in.txt.gz", "--output", "out.gz") == ""
    with gzip.open("out.gz", "rt", encoding="utf-8") as file:
        assert file.read() == out
    Path("in.xz").write_bytes(lzma.compress(input_file.read_bytes()))
    assert translate(run, "--input", "in.xz") == out
    packed = call("translate", run, *PADDLE, stdin=Path("in.xz").read_bytes())
    assert (packed.status, packed.out) == (2, "")
    assert "standard input: holds what is packed by xz; unpack that first" in packed.err


def test_encodings(run, tmp_path):
    texts = "1 2\n3 好\n"
    Path("utf8").write_text(texts, "utf-8")
    out = translate(run, "--input", "utf8")
    Path("marked").write_bytes(texts.encode("utf-16"))
    assert translate(run, "--input", "marked") == out
    Path("gbk").write_bytes(texts.encode("gbk"))
    assert translate(run, "--input", "gbk", "--encoding", "gbk") == out
    assert translate(run, "--encoding", "gbk", stdin=texts.encode("gbk")) == out
    assert "; --encoding names another encoding" in call("translate", run, *PADDLE, "--input", "gbk").err
    unknown = call("translate", run, "--encoding", "gbkk", "1")
    assert (unknown.status, "but is 'gbkk'; did you mean 'gbk'?" in unknown.err) == (2, True)


def test_a_line_ends_where_a_line_feed_is_and_nowhere_else(run):
    """Other characters that some take for line ends, a mark at the start of the file, a last line without its end."""
    texts = ["1\x0b2", "1 2", "1 2\x0c", "1\x85 2", "", "1"]
    out = translate(run, stdin="\ufeff" + "\r\n".join(texts))
    assert out.count("\n") == len(texts)
    assert out.split("\n")[1] == translate(run, "1 2").rstrip("\n")
    assert out.split("\n")[5] == translate(run, "1").rstrip("\n")
    assert translate(run, stdin="\ufeff1 2") == translate(run, "1 2")
    assert translate(run, stdin="\n\n") == "\n\n"
    source = cli_lines.Lines("a file", nullcontext(io.BytesIO(b"\xef\xbb\xbfa\r\n b\x0b\n\nc")))
    assert list(source.chunks()) == [["a", " b\x0b", "", "c"]]


def test_no_line_in_no_line_out(run, tmp_path):
    assert translate(run, stdin="") == ""
    (tmp_path / "out.txt").write_text("of yesterday\n")
    assert translate(run, "--output", "out.txt", stdin="") == ""
    assert (tmp_path / "out.txt").read_text() == ""


@pytest.mark.parametrize("search", [BEAM, SAMPLES])
@pytest.mark.parametrize("options", [(), ("--nbest", 2, "--scores")])
def test_chunks_change_nothing(run, input_file, monkeypatch, search, options):
    whole = translate(run, "--input", input_file, *search, *options)
    monkeypatch.setattr(cli_lines, "CHUNK_LINES", 3)
    parts = translate(run, "--input", input_file, *search, *options)
    assert re.sub(r"-\d+\.\d+", "", parts) == re.sub(r"-\d+\.\d+", "", whole)


def test_lines_are_read_and_written_a_chunk_at_a_time(run, input_file, monkeypatch):
    """Memory holds a chunk and not the file: when the fourth one is read, three have been written."""
    monkeypatch.setattr(cli_lines, "CHUNK_LINES", 2)
    written = []

    class Watched(list):
        def __iter__(self):
            for number, line in enumerate(super().__iter__()):
                path = input_file.parent / "out.txt"
                written.append((number, len(path.read_text().splitlines()) if path.exists() else 0))
                yield line

    real = cli_lines.open_lines

    def watch(*arguments):
        return replace(real(*arguments), opened=nullcontext(Watched(input_file.read_text("utf-8").splitlines())))

    monkeypatch.setattr("paddle_tfm.cli.translate.open_lines", watch)
    translate(run, "--input", input_file, "--output", "out.txt")
    assert all(done >= number - 2 for number, done in written)
    assert len(written) == len(LINES)


# --------------------------------------------------------------------------------------------------- n-best and scores


def test_scores_stand_beside_the_output(run, input_file):
    plain = translate(run, "--input", input_file, *BEAM).splitlines()
    rows = [row.split("\t") for row in translate(run, "--input", input_file, *BEAM, "--scores").splitlines()]
    assert [row[0] for row in rows] == plain
    for (text, score, mean), line in zip(rows, LINES):
        if not line.strip():
            assert (text, score, mean) == ("", "0.0000", "0.0000")
        else:
            assert float(score) < 0
            assert float(mean) == pytest.approx(float(score) / (len(text.split()) + 1), abs=1e-4)


@pytest.mark.parametrize("search", [BEAM, SAMPLES])
def test_n_best_is_a_table_with_the_lines_number_first(run, input_file, search):
    plain = translate(run, "--input", input_file, *search).splitlines()
    rows = [row.split("\t") for row in translate(run, "--input", input_file, "--nbest", 3, *search).splitlines()]
    assert {len(row) for row in rows} == {2}
    numbers = [int(number) for number, _ in rows]
    assert numbers == sorted(numbers)
    for number, line in enumerate(LINES, 1):
        outputs = [text for line_number, text in rows if int(line_number) == number]
        assert len(outputs) == (3 if line.strip() else 1)
        assert outputs[0] == plain[number - 1]
    scored = [
        row.split("\t") for row in translate(run, "--input", input_file, "--nbest", 3, "--scores", *search).splitlines()
    ]
    assert [row[:2] for row in scored] == rows
    hypotheses = paddle_tfm.load_run(run).hypotheses(LINES, _search(search), nbest=3)
    expected = [(output.score, output.mean) for several in hypotheses for output in several]
    assert [(float(score), float(mean)) for *_, score, mean in scored] == [
        pytest.approx(each, abs=2e-4) for each in expected
    ]


def _search(option):
    from paddle_tfm import create_registry
    from paddle_tfm.recipe import yaml_lines

    return create_registry().build("search", yaml_lines.value(option[1]))


def test_n_best_of_one_is_a_table_too(run):
    assert translate(run, "--nbest", 1, "1 2", "") == "1\t" + translate(run, "1 2") + "2\t\n"


def test_an_output_is_one_line_whatever_is_in_it():
    """Pieces of bytes can spell line ends and tabs."""
    output = Translation("a\nb\r\tc", score=-1.0)
    assert jobs.row(7, output, None, False) == "a b \tc\n"
    assert jobs.row(7, output, None, True) == "a b  c\t-1.0000\t-1.0000\n"
    assert jobs.row(7, output, 2, False) == "7\ta b  c\n"


# ----------------------------------------------------------------------------------------------------------- attention


def read_maps(folder):
    files = {path.name: path for path in folder.iterdir()}
    texts = {name: path.read_text("utf-8").split("\n") for name, path in files.items() if path.suffix != ".png"}
    assert all(lines.pop() == "" for lines in texts.values())
    return texts, sorted(name for name in files if name.endswith(".png"))


def test_alignments_are_written_with_what_their_numbers_mean(run, input_file, tmp_path, monkeypatch):
    monkeypatch.setattr("paddle_tfm.inference.alignment.PICTURES", 3)
    out = translate(run, "--input", input_file, *BEAM, "--attention", "maps", "--nbest", 2)
    best = {}
    for row in out.splitlines():
        number, text = row.split("\t")
        best.setdefault(int(number), text)
    texts, pictures = read_maps(tmp_path / "maps")
    assert set(texts) == {"alignments.txt", "source.pieces", "target.pieces"}
    assert pictures == ["00001.png", "00003.png", "00004.png"]  # line 2 is empty
    assert all((tmp_path / "maps" / name).read_bytes().startswith(b"\x89PNG") for name in pictures)
    for number, line in enumerate(LINES, 1):
        source, target, pairs = (
            texts[name][number - 1].split() for name in ("source.pieces", "target.pieces", "alignments.txt")
        )
        assert [piece.lstrip("▁") for piece in source] == line.split()
        assert [piece.lstrip("▁") for piece in target] == best[number].split()
        assert [int(pair.split("-")[1]) for pair in pairs] == list(range(len(target)))
        assert all(0 <= int(pair.split("-")[0]) < len(source) for pair in pairs)
    monkeypatch.setattr(cli_lines, "CHUNK_LINES", 3)
    monkeypatch.setattr("paddle_tfm.inference.alignment.PICTURES", 0)
    translate(run, "--input", input_file, *BEAM, "--attention", "again")
    assert read_maps(tmp_path / "again") == (texts, [])
    translate(run, "--input", input_file, *BEAM, "--attention", "lower", "--attention-layer", 0)
    assert read_maps(tmp_path / "lower")[0]["target.pieces"] == texts["target.pieces"]


def test_an_attention_without_weights_is_refused_and_nothing_is_written(tmp_path):
    linear = "model.attention={encoder: multihead, decoder: multihead, cross: linear}"
    done = call("run", "reverse", *TINY, "model.position=sinusoidal", linear, "train.steps=2", "--out", "linear")
    assert done.status == 0, done.err
    (tmp_path / "out.txt").write_text("of yesterday\n")
    done = call("translate", "linear", "--attention", "maps", "--output", "out.txt", "1 2")
    assert (done.status, done.out) == (2, "")
    assert (
        "Error: attention layer 0: the cross-attention of this model has no weights to show (LinearAttention)"
        in done.err
    )
    assert (tmp_path / "out.txt").read_text() == "of yesterday\n"
    assert translate("linear", "1 2").count("\n") == 1


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--input", "in.txt", "1 2"], "--input: there are TEXTs too; give one or the other"),
        (["--input", "absent.txt"], "absent.txt: no such file (looked in "),
        (["--input", "folder"], "folder: cannot be read: [Errno 21] Is a directory"),
        (["--input", "cut.gz"], "cut.gz: cannot be read: Compressed file ended before"),
        (["--input", "long.gz"], "long.gz, line 1: has 10,000 bytes or more; is it lines of text?"),
        (["--input", "twice.gz"], "twice.gz: holds what is packed by xz; unpack that first"),
        (["--input", "in.txt", "--output", "in.txt"], "--output in.txt: that is the input; name another file"),
        (["--output", "no/such/file", "1"], "--output no/such/file: no file can be written there"),
        (["--output", "folder", "1"], "--output folder: no file can be written there"),
        (["--nbest", "2", "1"], "2 outputs of each text are required, but the search gives at most 1"),
        (["--prefix", "1 zwei", "1"], "prefix '1 zwei': the model has no piece '▁zwei'"),
        (["--attention", "folder", "1"], "folder: there are files in it already; name a new folder"),
        (["--attention", "in.txt", "1"], "in.txt: Not a directory"),
        (["--attention-layer", "1", "1"], "--attention-layer needs --attention DIR; add it, or leave both out"),
        (["--attention", "maps", "--attention-layer", "2", "1"], "attention layer 2: the decoder has the layers 0 to 1"),
        (["--search", "{name: beam, min_length: -1}", "1"], "recipe has 1 problem\n    --search  'beam' refuses: `min_length` must"),
        (["--search", "{name: sampling, top_q: 1}", "1"], "recipe has 1 problem\n    --search.top_q  'sampling' has no option 'top_q'"),
    ],
)  # fmt: skip
def test_what_the_user_can_mend_is_one_sentence(run, input_file, tmp_path, arguments, message, monkeypatch):
    monkeypatch.setattr(data_lines, "LINE_BYTES", 10_000)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"1 2\n" * 1000)[:-4])
    (tmp_path / "twice.gz").write_bytes(gzip.compress(lzma.compress(b"1 2\n")))
    (tmp_path / "long.gz").write_bytes(gzip.compress(bytes(10_001)))
    done = call("translate", run, *arguments)
    assert (done.status, done.out) == (2, "")
    (sentence,) = re.findall(r"^Error: ((?:.|\n)*)", done.err, re.M)
    assert sentence.startswith(message)
    assert "Traceback" not in done.err
    assert input_file.read_text() == "\n".join(LINES) + "\n"


def test_any_bytes_give_a_line_for_each_line(run, input_file, tmp_path, monkeypatch):
    whole = translate(run, "--input", input_file)
    monkeypatch.setattr(cli_lines, "CHUNK_LINES", 2)
    hostile = [
        b"1 \xff",
        b"\xc3",
        b"\x00",
        b"\xed\xa0\x80",
        b"1\r2",
        "\u2028 3 \x1b[31m\u202e".encode(),
        b"\xf5" * 3000,
    ]
    (tmp_path / "bad.txt").write_bytes(input_file.read_bytes() + b"\n".join(hostile) + b"\n1 2\n")
    done = call("translate", run, *PADDLE, "--input", "bad.txt", "--output", "out.txt")
    outputs = (tmp_path / "out.txt").read_bytes().split(b"\n")
    assert (done.status, len(outputs)) == (0, len(LINES) + len(hostile) + 2)
    assert b"\n".join(outputs[: len(LINES)]).decode() + "\n" == whole
    assert outputs[-2].decode() + "\n" == translate(run, "1 2")
    assert "bad.txt: 4 lines are not UTF-8 (the first: line 11); bytes that are no character were read as �" in done.err


def test_what_was_translated_before_a_broken_end_stays(run, input_file, tmp_path, monkeypatch):
    whole = translate(run, "--input", input_file)
    monkeypatch.setattr(cli_lines, "CHUNK_LINES", 2)
    (tmp_path / "bad.gz").write_bytes(gzip.compress(input_file.read_bytes())[:-4])
    done = call("translate", run, *PADDLE, "--input", "bad.gz", "--output", "out.txt")
    assert (done.status, "bad.gz: cannot be read: Compressed file ended" in done.err) == (2, True)
    assert (tmp_path / "out.txt").read_text() == whole


# ----------------------------------------------------------------------------------------------- terminals and stopping


def test_an_interrupt_leaves_whole_lines(run, input_file, tmp_path, monkeypatch):
    """Ctrl-C within the third chunk: exit status 130, whole lines, the first ones."""
    whole = translate(run, "--input", input_file)
    monkeypatch.setattr(cli_lines, "CHUNK_LINES", 2)
    real = jobs.Translating.__call__

    def pressed(job, lines, before, write, progress):
        if before == 4:
            raise KeyboardInterrupt
        real(job, lines, before, write, progress)

    monkeypatch.setattr(jobs.Translating, "__call__", pressed)
    done = call("translate", run, *PADDLE, "--input", "in.txt", "--output", "out.txt")
    assert done.status == 130, done.err
    assert (tmp_path / "out.txt").read_text() == "".join(whole.splitlines(True)[:4])
    assert "Stopped after 4 lines, which are written.\n" in done.err and "Traceback" not in done.err


def test_a_line_is_answered_before_the_next(run):
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*COMMAND, run], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    os.close(theirs)
    for line in ("1 2 3", "", "4"):
        os.write(ours, f"{line}\n".encode())
        answered, *_ = select.select([process.stdout], [], [], 60)
        if not answered:
            process.kill()
        assert process.stdout.readline() == translate(run, line)
    os.write(ours, b"\x04")
    rest, stderr = process.communicate(timeout=60)
    os.close(ours)
    assert (process.returncode, rest) == (0, "")
    assert "Type a line, Ctrl-D to end." in stderr


@contextmanager
def within(seconds):
    """A test that waits for what does not come fails, and does not hang."""

    def late(*arguments):
        raise TimeoutError(f"still waiting after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_chunks_of_a_pipe_hold_what_has_arrived():
    reader, writer = os.pipe()
    with within(60), os.fdopen(reader, "rb") as theirs, os.fdopen(writer, "wb", buffering=0) as ours:
        arriving = cli_lines.Lines("a pipe", theirs).chunks()
        ours.write(b"a\nb\nhalf of c")
        assert next(arriving) == ["a", "b"]
        ours.write(b", whole\r\n")
        assert next(arriving) == ["half of c, whole"]
        ours.write(b"1\n" * 2_500 + b"last")
        ours.close()
        assert [len(chunk) for chunk in arriving] == [2_000, 501]


def test_a_file_shows_its_progress_on_a_terminal(run, input_file, monkeypatch):
    terminal = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(cli_lines, "notes", lambda: terminal)
    translate(run, "--input", input_file)
    assert re.search(rf"[ m]{len(LINES)}/{len(LINES)}\D.*lines", terminal.file.getvalue())


# -------------------------------------------------------------------------------------------------- what is worth knowing


def test_lines_that_were_cut_are_told_once_on_standard_error(run):
    done = call("translate", run, *LINES[:4], "--search", "{name: greedy, max_length: 1}")
    pieces = [line.split() for line in done.out.splitlines()]
    cut = sum(len(line) == 1 for line in pieces)  # `reverse` has a piece a word
    assert cut and all(len(line) <= 1 for line in pieces)
    lines = sum(bool(line.split()) for line in LINES[:4])
    assert done.err.count(f"{cut} of {lines} outputs were cut at the search's limit; raise the search's max_ratio") == 1


def test_the_share_of_unknown_pieces_is_told(run):
    done = call("translate", run, "1 2 nobody", "3 knows")
    assert done.status == 0
    assert "40.0% of the source's pieces (2 of 5) are unknown to the model" in " ".join(done.err.split())
    assert call("translate", run, "1 2 3").err.count("unknown") == 0


def test_an_unfinished_run_says_so(run, tmp_path):
    shutil.copytree(run, tmp_path / "unfinished")
    (tmp_path / "unfinished" / "results.json").unlink()
    done = call("translate", tmp_path / "unfinished", "1 2 3")
    assert done.status == 0
    assert "is not finished: the checkpoint is of step" in " ".join(done.err.split())
