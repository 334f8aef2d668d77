"""Where a model looks: the cross-attention of each decoder layer on one example, as a map that is drawn by the page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from paddle_tfm.errors import UserError
from paddle_tfm.inference.align import Alignment, align
from paddle_tfm.train.run import Run

PIECES = (4, 14)  # of a source that is shown: fewer say little, more have no room on a phone
MAX_ROWS = 28  # pieces of the output


def html(run: Run, sources: Sequence[str]) -> str:
    """The maps of the first source of a handy length, a layer at a time, the last one first; a sentence where there is
    nothing to show."""
    text = next((text for text in sources if PIECES[0] <= len(run.codec.source.tokenize(text)) <= PIECES[1]), None)
    if text is None:
        return "<p>No source of a length that can be drawn is known.</p>"
    try:
        output = run.hypotheses([text])[0][0]
        decoder = run.model.decoder
        layers = range(len(decoder.layers)) if decoder is not None else ()
        maps = [align(run.model, run.codec, [text], [output], layer)[0] for layer in layers]
    except UserError as error:
        return f"<p>There is no map: {escape(str(error))}.</p>"
    if not maps or not maps[0].target:
        return "<p>There is no map: the output is empty.</p>"
    maps = [Alignment(item.source, item.target[:MAX_ROWS], item.weights[:MAX_ROWS]) for item in maps]
    last = len(maps) - 1
    radios = "".join(
        f'<label><input type="radio" name="layer" id="layer-{i}"{" checked" if i == last else ""}>{i}</label>'
        for i in range(len(maps))
    )
    note = "Mean of heads. A row may sum to less than 1: the end of the source has no column."
    scale = '<p class="scale-of-map"><span>0</span><span class="shades"></span><span>1</span> attention weight</p>'
    switch = f"<fieldset><legend>decoder layer</legend>{radios}</fieldset>" if last else ""
    figures = "".join(_map(item, layer) for layer, item in enumerate(maps))
    return f'<div class="maps">{switch}{figures}{scale}<p class="note">{note}</p></div>'


def _map(item: Alignment, layer: int) -> str:
    head = "".join(f'<span class="column">{escape(_visible(piece))}</span>' for piece in item.source)
    cells = ""
    for j, piece in enumerate(item.target):
        cells += f'<span class="row">{escape(_visible(piece))}</span>'
        for i, weight in enumerate(item.weights[j]):
            title = f"{piece} on {item.source[i]}: {weight:.2f}"
            cells += f'<i title="{escape(title)}" style="opacity:{max(0.04, float(weight)):.2f}"></i>'
    spoken = "; ".join(f"{item.target[j]} on {item.source[i]}" for i, j in item.pairs())
    return (
        f'<figure class="map layer-{layer}"><div class="cells" role="img" '
        f'aria-label="Most attention: {escape(spoken)}" style="--columns:{len(item.source)}"><span></span>'
        f'<span class="axis">source</span><span class="row axis">output</span>{head}{cells}</div></figure>'
    )


def _visible(piece: str) -> str:
    return "".join("␣" if character.isspace() else character for character in piece)
