"""People are spoken to in their language, by catalogues that are whole and current; what programs read is English."""

import ast
import gettext
import importlib.util
import os
import re
import string
import subprocess
import sys
from pathlib import Path

import pytest

from paddle_tfm.language import FOLDER, _, counted, english, enumerated

ROOT = Path(__file__).parent.parent
PADDLE_TFM = [sys.executable, "-m", "paddle_tfm"]


def load_catalogue_script():
    spec = importlib.util.spec_from_file_location("docs_catalogue", ROOT / "docs/catalogue.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


script = load_catalogue_script()
CATALOGUE = {each.id: each for each in script.read_catalogue("paddle_tfm") if each.id}


def test_every_text_is_translated_and_every_translation_is_of_a_text():
    said = script.collected()
    hint = "run `python docs/catalogue.py` and translate what it names"
    assert [text for text in said if not CATALOGUE.get(text) or not CATALOGUE[text].string] == [], hint
    assert sorted(CATALOGUE.keys() - said.keys()) == [], hint


@pytest.mark.parametrize("name", ["paddle_tfm", "click"])
def test_what_is_compiled_is_what_is_written(name):
    written = {each.id: each.string for each in script.read_catalogue(name) if each.id}
    compiled = gettext.translation(name, FOLDER, ["zh"])
    for text, said in written.items():
        if isinstance(text, tuple):
            assert compiled.ngettext(*text, 2) == said[0]
        else:
            assert compiled.gettext(text) == said, "run `python docs/catalogue.py`"


def places(text):
    return {re.split(r"[.[]", name)[0] for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_a_translation_has_the_places_of_its_text():
    for text, each in CATALOGUE.items():
        if re.search(r"\{[\w.]*(![rs])?(:[^ }]+)?\}", text):  # else braces are of YAML
            assert places(text) == places(each.string), text
        assert re.findall(r"arXiv:[\d.]+\d", text) == re.findall(r"arXiv:[\d.]+\d", each.string), text


def templates(node, values):
    """The texts that `node` may be: `_("…")`, one of two, or what a name was given last."""
    if isinstance(node, ast.IfExp):
        return [*templates(node.body, values), *templates(node.orelse, values)]
    if isinstance(node, ast.Name):
        return templates(values.get(node.id), {})
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_":
        return templates(node.args[0], {})
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def test_a_text_is_given_the_names_that_it_asks_for():
    wrong, seen = [], 0
    for file in (*ROOT.glob("paddle_tfm/**/*.py"), *ROOT.glob("plugins/**/*.py")):
        values = {}  # name -> what it was given last
        nodes = [
            each for each in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(each, ast.Assign | ast.Call)
        ]
        for node in sorted(
            nodes, key=lambda each: each.end_lineno if isinstance(each, ast.Assign) else each.lineno - 0.5
        ):
            if isinstance(node, ast.Assign):
                values |= {each.id: node.value for each in node.targets if isinstance(each, ast.Name)}
            elif getattr(node.func, "attr", "") == "format" and all(each.arg for each in node.keywords):
                given = {each.arg for each in node.keywords}
                for text in (texts := templates(node.func.value, values)):
                    asked, seen = places(text), seen + 1
                    unasked = given - asked if len(texts) == 1 else set()
                    if not asked - {""} <= given or unasked or ("" in asked) != bool(node.args):
                        wrong.append(f"{file.relative_to(ROOT)} line {node.lineno}: {text!r} is given {sorted(given)}")
    assert not wrong and seen > 700, (seen, wrong)


def told(*arguments, **environment):
    """What the command line says to somebody with this environment, and its exit status."""
    names = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
    own = {key: value for key, value in os.environ.items() if key not in names}
    own |= {"PYTHONIOENCODING": "utf-8", **environment}
    ended = subprocess.run([*PADDLE_TFM, *arguments], env=own, capture_output=True, encoding="utf-8")
    return ended.stdout + ended.stderr, ended.returncode


def test_help_is_in_the_language_of_the_environment_or_of_lang():
    chinese, status = told("--lang", "zh", "--help", LANG="C")
    assert status == 0 and "用法：" in chinese and "训练一个配方的全部变体并比较" in chinese
    assert not re.search(r"Usage|Train the|Show this", chinese)
    assert told("--help", LANG="zh_CN.UTF-8")[0] == chinese == told("--help", LC_ALL="zh_TW.UTF-8", LANG="C")[0]
    for environment in ({"LANG": "C"}, {"LANG": "de_DE.UTF-8"}, {"LANG": "zh_CN.UTF-8", "LANGUAGE": "en"}):
        assert "Train the runs of a recipe" in told("--help", **environment)[0]
    assert "Train the runs" in told("--lang", "en", "--help", LANG="zh_CN.UTF-8")[0]


def test_lines_of_chinese_fit_the_terminal():
    from rich.cells import cell_len

    text, _ = told("run", "--help", LANG="zh_CN.UTF-8", COLUMNS="90")
    prose = [line for line in text.splitlines() if "paddle-tfm" not in line and "--" not in line]
    assert max(map(cell_len, prose)) <= 92
    assert "\0" not in text


@pytest.mark.reliability
def test_a_run_speaks_chinese_and_writes_what_it_writes_in_english(tmp_path):
    """Of the files of a sweep only the page is for people."""
    small = ["train.steps=4", "model.d_model=16", "model.d_ff=16", "model.num_heads=2", "evaluate.every=4"]
    small += ["task={name: copy, symbols: 5, min_length: 2, max_length: 5, train: 60, valid: 10, test: 10}"]
    whole = [*small, "model.norm=layer,rms", "--seeds", "1", "--device", "cpu", "--out", str(tmp_path / "a")]
    said, status = told("run", "copy", *whole, LANG="zh_CN.UTF-8")
    assert status == 0, said
    assert re.search("变体.*结论.*差异.*95% 区间", said) and re.search("“(layer|rms)”.*均值", said), said
    page = (tmp_path / "a/comparison.html").read_text("utf-8")
    assert '<html lang="zh-CN">' in page and "<h2>得分</h2>" in page and "<h2>比较的内容</h2>" in page
    assert not re.search(r"<h[1-3]>[^<]*(Scores|What|Runs|Every)", page)
    written = [file for file in (tmp_path / "a").rglob("*") if file.is_file() and file.name != "comparison.html"]
    texts = [file for file in written if file.suffix in (".json", ".jsonl", ".yaml", ".tsv", ".csv", ".tex", ".txt")]
    assert len(texts) > 20
    assert [file.name for file in texts if re.search("[一-龥]", file.read_text("utf-8"))] == []
    asked = ["compare", str(tmp_path / "a"), "--csv", "--out", str(tmp_path / "b")]
    said, status = told(*asked, LANG="zh_CN.UTF-8")
    assert status == 0 and not re.search("[一-龥]", said)


def test_errors_speak_chinese():
    said, status = told(
        "run", "reverse", "model.norm=layers", "train.steps=x", "train.max_tokens=0", LANG="zh_CN.UTF-8"
    )
    assert status == 2
    assert "reverse.yaml 有 3 个问题" in said and "未知的归一化 'layers'；是不是 'layer'？" in said
    assert re.search(r"命令行 +train\.steps +必须是整数，现在是 'x'", said), said
    assert re.search(r"train\.max_tokens +必须是大于 0 的数，现在是 0", said), said
    said, status = told("report", "--sentences", LANG="zh_CN.UTF-8")
    assert status == 2 and "错误：没有选项" in said and "查看帮助" in said


def test_counts_lists_and_what_programs_read(monkeypatch):
    assert (counted(1, "seed"), counted(3, "seed")) == ("1 seed", "3 seeds")
    assert enumerated([1, 2, 3]) == "1, 2 and 3"
    monkeypatch.setenv("LANGUAGE", "zh_CN.UTF-8")
    assert (counted(1, "seed"), counted(3, "seed")) == ("1 个种子", "3 个种子")
    assert enumerated([1, 2, 3]) == "1、2 和 3"
    with english():
        assert _("Gallery") == "Gallery"
