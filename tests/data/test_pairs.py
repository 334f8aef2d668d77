"""Texts in every form, packing and encoding, written by other programs' code, and what is wrong with them in a sentence."""

import bz2
import csv
import gzip
import io
import json
import lzma
import zipfile

import pytest

from paddle_tfm.data import lines
from paddle_tfm.data.pairs import Files, pairs
from paddle_tfm.errors import UserError

PAIRS = [("Ja; gut, danke", "是的，“好”"), ('Er sagt "nein"', "他说\u2028不"), ("a", "b")]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(name, drop_empty=False, **form):
    said = []
    return list(pairs(Files(name, **form), {} if drop_empty else None, said.append)), said


def refusal(name, **form):
    with pytest.raises(UserError) as caught:
        read(name, **form)
    return str(caught.value)


def tsv(texts=PAIRS):
    return "".join(f"{source}\t{target}\n" for source, target in texts)


def zipped(data):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside.tsv", data)
    return file.getvalue()


# --------------------------------------------------------------------------------------------------- packings, encodings


@pytest.mark.parametrize("packing", ["gz", "bz2", "xz", "zst", "zip"])
def test_packings_whatever_the_file_is_called(folder, packing):
    pack = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zip": zipped}.get(packing)
    data = pack(tsv().encode()) if pack else pytest.importorskip("backports.zstd").compress(tsv().encode())
    for name in (f"a.tsv.{packing}", "a.tsv", "a"):
        (folder / name).write_bytes(data)
        assert read(name) == (PAIRS, [])
    (folder / "cut").write_bytes(data[: len(data) // 2])
    assert refusal("cut").startswith("cut: cannot be read: ")
    (folder / "twice.gz").write_bytes(gzip.compress(data))
    assert refusal("twice.gz").startswith("twice.gz: holds what is packed by ")


def test_files_of_a_zip(folder):
    with zipfile.ZipFile("o.zip", "w") as archive:
        for side in (0, 1):
            archive.writestr(f"x/{'de' if side == 0 else 'zh'}", "".join(pair[side] + "\n" for pair in PAIRS))
    assert read(["o.zip/x/de", "o.zip/x/zh"]) == (PAIRS, [])
    assert refusal("o.zip") == "o.zip: o.zip holds x/de, x/zh; name one: o.zip/NAME"
    assert refusal("o.zip/x/dee") == "o.zip/x/dee: o.zip holds x/de, x/zh; did you mean 'x/de'?"
    with zipfile.ZipFile("o.xlsx", "w") as archive:
        archive.writestr("[Content_Types].xml", "")
        archive.writestr("xl/workbook.xml", "")
    (folder / "o.xls").write_bytes(bytes.fromhex("d0cf11e0a1b11ae1"))
    for name in ("o.xlsx", "o.xls"):
        assert refusal(name, encoding="latin-1").startswith(f"{name}: is a workbook or document of Excel")
    (folder / "a.tsv").write_text("a\tb\n")
    assert refusal("a.tsv/x") == "a.tsv/x: a.tsv is no zip, and holds no files"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_says_the_encoding(folder, encoding):
    (folder / "a.tsv").write_bytes(tsv().encode(encoding))
    assert read("a.tsv") == read("a.tsv", encoding="gb18030") == read("a.tsv", encoding="utf-8") == (PAIRS, [])
    (folder / "a.jsonl").write_bytes(json.dumps({"source": "ä", "target": "b"}, ensure_ascii=False).encode(encoding))
    assert read("a.jsonl")[0] == [("ä", "b")]


@pytest.mark.parametrize("encoding", ["gbk", "gb18030", "utf-16-le", "utf-16-be", "big5", "latin-1"])
def test_named_encodings(folder, encoding):
    texts = [("grün", "né")] if encoding == "latin-1" else [("Hallo", "你好"), ("Welt", "世")]
    (folder / "a.tsv").write_bytes(tsv(texts).encode(encoding))
    assert read("a.tsv", encoding=encoding) == (texts, [])
    sentence = refusal("a.tsv")
    assert "is UTF-16, or no text" in sentence or "`encoding: gb18030` reads “" in sentence


# --------------------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_as_the_library_writes_it(folder, delimiter):
    with (folder / "a.csv").open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(
            [("n", "de", "zh"), *((i, *pair) for i, pair in enumerate(PAIRS))]
        )
    quoted = {"quoted": True} if delimiter == "\t" else {}
    for form in ({"columns": ["de", "zh"]}, {"columns": [1, 2], "header": True}):
        found, (sentence,) = read("a.csv", **form, **quoted)
        assert found == PAIRS
        assert sentence.startswith(
            f"a.csv: has {'TAB' if delimiter == chr(9) else f'“{delimiter}”'} between columns; its "
        )
    assert read("a.csv", columns=["zh", "de"], delimiter=delimiter, **quoted) == ([pair[::-1] for pair in PAIRS], [])
    assert refusal("a.csv", columns=["dee", "zh"]) == (
        "a.csv, line 1: unknown column 'dee'; did you mean 'de'? Known: de, n, zh"
    )


def test_a_cell_of_several_lines_is_one_text(folder):
    (folder / "a.csv").write_text('"a\nb",c\n"d","e\tf"\n')
    assert read("a.csv")[0] == [("a b", "c"), ("d", "e f")]


def test_what_is_no_table_says_what_it_may_be(folder):
    (folder / "a.txt").write_text("a;b\n")
    assert refusal("a.txt") == (
        'a.txt, line 1: no TAB between source and target; is it a table with “;”? Then say `delimiter: ";"`'
    )
    assert refusal("a.txt", columns=["a", "b"]) == refusal("a.txt")
    assert read("a.txt", delimiter=";")[0] == [("a", "b")]
    (folder / "a.csv").write_text('a,"b\nc,d\n')
    assert refusal("a.csv") == (
        "a.csv, line 2: no CSV: unexpected end of data; `quoted: false` takes quotation marks as text"
    )
    assert read("a.csv", quoted=False)[0] == [("a", '"b'), ("c", "d")]


# ----------------------------------------------------------------------------------------------------------------- JSON


@pytest.mark.parametrize("indent", [None, 1])
def test_a_json_list(folder, indent):
    rows = [{"translation": {"de": source, "zh": target}} for source, target in PAIRS]
    (folder / "a.json").write_text(json.dumps(rows, indent=indent, ensure_ascii=False), "utf-8")
    assert read("a.json", columns=["translation.de", "translation.zh"]) == (PAIRS, [])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[{"source": "a", "target": "b"},\n', "a.json: not JSON: ends within its list"),
        ('[{"source":\n', "a.json: not JSON: ends within its list"),
        ('[{"source": "a"\n"target": "b"}]', "a.json, line 2: not JSON: Expecting ',' delimiter"),
        ('[\n{"source": "a}]', "a.json, line 2: not JSON: Unterminated string"),
        ('[{"source": "a", "target": "b"}]\nx', "a.json, line 2: not JSON: Expecting value"),
    ],
)
def test_a_json_list_that_is_broken(folder, text, sentence):
    (folder / "a.json").write_text(text)
    assert refusal("a.json").startswith(sentence)


# ---------------------------------------------------------------------------------------------------------- TMX, XLIFF

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en-US"><seg>Say <bpt i="1">&lt;b&gt;</bpt>yes<ept i="1">&lt;/b&gt;</ept> &amp; <hi>go</hi></seg></tuv>
    <tuv xml:lang="zh-CN"><seg>说是，走</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Hi</seg></tuv><tuv xml:lang="zh-CN"><seg>嗨</seg></tuv></tu>
</body></tmx>"""
XLIFF = """<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><file source-language="en"><body>
<trans-unit id="1"><source>A <g id="1">b</g><x id="2"/></source><target>C</target>
  <alt-trans><source>other</source><target>other</target></alt-trans></trans-unit></body></file></xliff>"""
XLIFF_2 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en"><file id="f"><unit id="u">
<segment><source>A <pc id="1">b</pc></source><target>C</target></segment></unit></file></xliff>"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_tmx(folder, encoding):
    (folder / "a.tmx").write_bytes(TMX.replace("UTF-8", encoding).encode(encoding))
    expected = [("Say yes & go", "说是，走"), ("Hi", "嗨")]
    assert read("a.tmx") == (expected, ["a.tmx: source is `en`, target `zh`; `columns` names others"])
    assert read("a.tmx", columns=["ZH", "en"]) == ([pair[::-1] for pair in expected], [])
    assert read("a.tmx", columns=["en", "zh", "en"]) == ([(*pair, pair[0]) for pair in expected], [])
    assert refusal("a.tmx", columns=["en", "fr"]).startswith(
        "a.tmx: a side is empty in 2 of 2 pairs (line 4: the target"
    )


@pytest.mark.parametrize("text", [XLIFF, XLIFF_2])
def test_xliff(folder, text):
    (folder / "a.xlf").write_text(text)
    assert read("a.xlf") == ([("A b", "C")], [])


def test_entities_are_not_resolved_and_broken_files_named(folder):
    (folder / "secret").write_text("secret")
    head = f'<!DOCTYPE tmx [<!ENTITY a "aaaa"><!ENTITY f SYSTEM "file://{folder}/secret">]>'
    for entity in "af":
        (folder / "a.tmx").write_text(head + TMX.split("\n", 2)[2].replace("Hi", f"&{entity};"))
        assert refusal("a.tmx") == f"a.tmx, line 4: &{entity}; is an entity of its own DTD; write its text"
    (folder / "a.tmx").write_text(TMX[:-20])
    assert "not well-formed XML" in refusal("a.tmx")
    (folder / "a.tmx").write_text("<html><p>a</p></html>")
    assert refusal("a.tmx") == "a.tmx: is XML, but neither TMX (<tu>) nor XLIFF (<trans-unit> or <segment>)"
    (folder / "a.tmx").write_text(TMX.replace('xml:lang="zh-CN"', ""))
    (folder / "a.en").write_text("a\n")
    assert refusal(["a.en", "a.tmx"]).startswith("a.tmx: is XML, and two files are read side by side, line by line")


def test_a_missing_package_is_named(folder, monkeypatch):
    (folder / "a.zst").write_bytes(bytes.fromhex("28b52ffd04582100003120320a"))  # RFC 8878
    monkeypatch.setitem(__import__("sys").modules, "backports", None)
    with pytest.raises(
        UserError, match=r"^a.zst: is packed by zstd, which needs a package: pip install backports.zstd"
    ):
        list(lines.lines("a.zst"))
