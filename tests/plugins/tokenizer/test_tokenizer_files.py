"""sentencepiece_file and subword_nmt: beside the libraries that wrote the files; the copy in a run's folder; what is no
such file."""

import io
import random

import pytest
import sentencepiece

from paddle_tfm import UserError
from paddle_tfm_plugins.tokenizer.sentencepiece_file import SentencePieceFile
from paddle_tfm_plugins.tokenizer.subword_nmt import SubwordNmt

TEXTS = [
    "the lower , the newer ; the widest is lowest",
    "abab aaa aaaaa a @@ @ b@@ c </w> ü u\u0301 我们 见面 。",
    "  two  spaces\tand tabs ",
    "",
]


@pytest.fixture(scope="module")
def words():
    draw = random.Random(3)
    return [" ".join("".join(draw.choices("abelnorstw", k=draw.randint(1, 7))) for _ in range(8)) for _ in range(300)]


@pytest.fixture(scope="module")
def codes(words, tmp_path_factory):
    """Files of both versions of the format, by subword-nmt itself."""
    learn = pytest.importorskip("subword_nmt.learn_bpe", reason="the package subword-nmt is not installed")
    folder = tmp_path_factory.mktemp("codes")
    written = io.StringIO()
    learn.learn_bpe(iter([*words, *TEXTS]), written, 200)
    new = written.getvalue()
    (folder / "0.2").write_text(new, "utf-8")
    # before 0.2 the end of a word was a piece of its own
    ends = "".join(f"{letter} </w>\n" for letter in "enr") + new.split("\n", 1)[1]
    (folder / "0.1").write_text(ends, "utf-8")
    return folder


@pytest.mark.parametrize("version", ["0.2", "0.1"])
def test_subword_nmt_cuts_as_its_authors_do(codes, words, version):
    from subword_nmt.apply_bpe import BPE

    theirs = BPE((codes / version).open(encoding="utf-8"))
    ours = SubwordNmt(str(codes / version))
    ours.fit(iter(words))
    assert ours.remarks() == []
    for text in [*words, *TEXTS]:
        assert ours.tokenize(text) == theirs.segment(" ".join(text.split())).split()
        assert ours.detokenize(ours.tokenize(text)) == " ".join(text.split())
    assert max(map(len, ours.tokenize(words[0]))) > 3


@pytest.fixture(scope="module")
def model(words, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "mine.model"
    writer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*words, *TEXTS]), model_writer=writer, vocab_size=400, byte_fallback=True,
        user_defined_symbols="<2en>", minloglevel=2,
    )  # fmt: skip
    path.write_bytes(writer.getvalue())
    return path


def test_a_sentencepiece_model_cuts_as_the_library_does(model, words):
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(model))
    ours = SentencePieceFile(str(model))
    ours.fit(words)
    assert ours.remarks() == [] and len(ours.pieces()) == 256
    for text in [*words[:50], *TEXTS, "<2en> the ２５ 鑫，", "half \ud800 of a pair"]:
        plain = " ".join(text.split()).encode("utf-8", "replace").decode()
        pieces = ours.tokenize(text)
        assert pieces == [theirs.id_to_piece(i) for i in theirs.encode(plain)]
        assert ours.detokenize(pieces) == theirs.decode(theirs.encode(plain))
    assert "<2en>" in ours.tokenize("<2en> the lower") and ours.normalize("２５，") == "25,"
    ours.fit(["２５，"])
    assert ours.remarks() == [f"{model}: of 1 texts, 1 do not come back as they are: '２５，' becomes '25,'"]


def test_the_run_keeps_a_copy(model, codes, words, tmp_path):
    for kind, file in ((SentencePieceFile, model), (SubwordNmt, codes / "0.2")):
        original = tmp_path / "original"
        original.write_bytes(file.read_bytes())
        trained, loaded = kind(str(original)), kind(str(original))
        trained.fit(words)
        trained.save(tmp_path)
        original.unlink()
        loaded.load(tmp_path)
        assert [loaded.tokenize(text) for text in TEXTS] == [trained.tokenize(text) for text in TEXTS]


@pytest.mark.parametrize(
    ("kind", "content", "sentence"),
    [
        (SentencePieceFile, b"", "cannot be read: it is empty"),
        (SentencePieceFile, b"\xe2\x96\x81a\t-1\n", r"no SentencePiece model \(a file.model"),
        (SubwordNmt, b"#version: 0.3\na b\n", "line 1: its version must be 0.1 or 0.2, but is 0.3"),
        (SubwordNmt, b"#version: 0.2\na b\nthe 12 3\n", "line 3: must hold the two pieces of a merge and a space, but"),
        (SubwordNmt, b"\x80\x02", "cannot be read: .*utf-8"),
        (SubwordNmt, b"", "line 1: must hold the two pieces"),
    ],
)
def test_what_is_no_such_file_is_a_sentence(tmp_path, kind, content, sentence):
    file = tmp_path / "file"
    with pytest.raises(UserError, match=f"^{file}: no such file"):
        kind(str(file)).read_head()
    file.write_bytes(content)
    with pytest.raises(UserError, match=f"^{file}: cannot be read: .*{sentence.removeprefix('cannot be read: ')}"):
        kind(str(file)).read_head()
