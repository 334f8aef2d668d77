"""Pairs of texts out of XML, a unit at a time: TMX 1.4, XLIFF 1.2 and 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from lxml import etree

from paddle_tfm.data.lines import File, at_line, one_line
from paddle_tfm.errors import UserError
from paddle_tfm.language import _

STARTS = ("<?xml", "<!doctype", "<tmx", "<xliff", "<html")
UNITS = ("{*}tu", "{*}trans-unit", "{*}segment")  # of TMX, XLIFF 1.2 and XLIFF 2
CODES = {"bpt", "ept", "it", "ph", "ut"}  # hold what another program marks a text up with, and no text
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def is_markup(line: str) -> bool:
    """Whether a file that begins so is XML."""
    return line.lstrip().lower().startswith(STARTS)


def rows(
    file: IO[bytes],
    path: File,
    languages: Sequence[int | str] | None,
    encoding: str | None,
    say: Callable[[str], None],
) -> Iterator[tuple[int, list[str]]]:
    """(line number, source and target) of each unit; any text may be empty.

    No DTD is loaded, no entity of its own resolved, and nothing fetched; libxml2 bounds depth and length.

    Args:
        languages: of source and target in a TMX, and of further references: `en` is also `en-US`. Default: the two that
            its first unit has.
    Raises:
        UserError: it is not well-formed, holds no unit, or not the languages.
    """
    units = etree.iterparse(
        file, tag=UNITS, encoding=encoding, resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False
    )
    unit = None
    try:
        for _event, unit in units:
            if etree.QName(unit).localname == "tu":
                texts = {_language(each): _text(each.find("{*}seg"), path) for each in unit.iterfind("{*}tuv")}
                if languages is None:
                    languages = _two(texts, path)
                    source, target = languages
                    text = _("{path}: source is `{source}`, target `{target}`; `columns` names others")
                    say(text.format(path=path, source=source, target=target))
                row = [_of(str(language), texts) for language in languages]
            else:
                row = [_text(unit.find(f"{{*}}{side}"), path) for side in ("source", "target")]
            yield unit.sourceline, row
            unit.clear()
            while unit.getprevious() is not None:  # read, and free
                del unit.getparent()[0]
    except etree.XMLSyntaxError as error:
        text = _("{place}: not well-formed XML: {why}")
        raise UserError(text.format(place=at_line(path, error.lineno or 0), why=error.msg)) from error
    if unit is None:
        text = _("{path}: is XML, but neither TMX (<tu>) nor XLIFF (<trans-unit> or <segment>)")
        raise UserError(text.format(path=path))


def _language(variant: Any) -> str:
    return variant.get(LANGUAGE) or variant.get("lang") or ""


def _two(texts: dict[str, str], path: File) -> list[str]:
    if len(texts) != 2:
        sentence = _("{path}: its first unit is in {languages}; name those of source and target: `columns: [{two}]`")
        languages, two = ", ".join(texts) or _("no language"), ", ".join([*texts, "en", "zh"][:2])
        raise UserError(sentence.format(path=path, languages=languages, two=two))
    short = [name.partition("-")[0] for name in texts]  # units may differ in regions
    return short if len(set(short)) == 2 else list(texts)


def _of(language: str, texts: dict[str, str]) -> str:
    """The text in a language, or in one of its regions; "" where there is none."""
    wanted = language.lower()
    return next((text for name, text in texts.items() if f"{name.lower()}-".startswith(f"{wanted}-")), "")


def _text(element: Any, path: File) -> str:
    """The text in an element, on one line, without the codes of other programs."""
    return "" if element is None else one_line("".join(_parts(element, path)))


def _parts(element: Any, path: File) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if child.tag is etree.Entity:
            text = _("{place}: {entity} is an entity of its own DTD; write its text")
            raise UserError(text.format(place=at_line(path, element.sourceline), entity=child.text))
        if isinstance(child.tag, str) and etree.QName(child).localname not in CODES:
            yield from _parts(child, path)
        yield child.tail or ""
