"""VisualDL's pages as `paddle-tfm board` serves them: what version 2.5.3 does wrong with our logs is put right on its
way to the browser, the installed package stays as it is. Another version is served as it comes."""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_tfm.colours import COLOURS
from paddle_tfm.runs.sweep_files import variant_numbers

if TYPE_CHECKING:
    from flask import Response

KNOWN = "2.5.3"  # the version whose pages are put right
CURVES = "/app/scalar"
ENTRANCES = ("/", "/app", "/app/", "/app/index")  # of which VisualDL leads to the texts
INDICATORS = "/app/api/hparams/indicators"
# The colours of a run, and of the faint curve behind it where it is smoothed: those that the report gives its variant;
# of a run whose sweep is not recorded, one by its place.
NUMBERS = "VARIANT_NUMBERS"  # in whose place the numbers stand that are known when a script is asked for
COLOUR_OF_RUN = (
    f'colors:((name,place)=>{{const variant=name.replace(/[/]vdl$/,"").split("/").slice(-2)[0],'
    f'all={json.dumps(COLOURS)},number={NUMBERS}[variant]??place,one=all[number%all.length];return[one,one+"66"]}})'
)
# The end of a script's path → (a piece of it, what takes its place).
SCRIPTS = {
    "/hooks/useTagFilter.js": ("colors:[T[n],Q[n]]", f"{COLOUR_OF_RUN}(l,e)"),
    "/TableView/Table.js": ("colors:[v[e%v.length],z[e%z.length]]", f"{COLOUR_OF_RUN}(t.name,e)"),
    # Only the first section of charts is open, which of curves is `test`, a point each. Here all sections that a page
    # can draw at once are open, such as `train` and `valid`, but not `test`.
    "/components/ChartPage.js": ("opened:a===0", 'opened:e[0]!=="test"&&(a===0||e[1].length<=24)'),
    # Curves are smoothed by 0.6, and the page stores that as the reader's choice. Here 0 is where it starts, and what a
    # reader chooses is stored under a name of its own. (`?smoothing=0` in the address is lost before it is read.)
    "/resource/scalar/data.js": ("let o=.6;", "let o=0;"),
    "/pages/scalar.js": ('"scalar_smoothing"', '"paddle_tfm_smoothing"'),
    # A name wider than its column is cut by one character and gets three dots, until it is narrow enough: it never is,
    # and the page hangs. Here the dots of the round before are cut too.
    "/ParallelCoordinatesGraph.js": (
        'r.text(r.text().slice(0,-1)+"...")',
        'r.text(r.text().replace(/[.]{3}$/,"").slice(0,-1)+"...")',
    ),
}


def version() -> str:
    """That of the installed VisualDL."""
    return importlib.metadata.version("visualdl")


def mended_script(path: str, text: str, folder: Path) -> str:
    """The text of the script at `path`, put right if it is one of `SCRIPTS`, for the runs below `folder`."""
    for end, (piece, instead) in SCRIPTS.items():
        if path.endswith(end):
            text = text.replace(piece, instead.replace(NUMBERS, json.dumps(numbers_below(folder))))
    return text


def numbers_below(folder: Path) -> dict[str, int]:
    """Variant → the number of its colour, of all sweeps that runs below `folder` are of; that of the first sweep where
    several have a variant of one name."""
    sweeps = {log.resolve().parents[3] for log in folder.rglob("vdlrecords.*.log")}
    return {name: number for sweep in sorted(sweeps, reverse=True) for name, number in variant_numbers(sweep).items()}


def differing(answer: dict) -> dict:
    """VisualDL's answer about columns of hyper-parameters, with those only that differ between runs, if any does."""
    data = answer.get("data")
    if isinstance(data, dict):
        columns = data.get("hparams", [])
        data["hparams"] = [column for column in columns if len(column["values"]) > 1] or columns
    return answer


def main() -> None:
    """VisualDL's own command, arguments and all, with its pages put right if they are those that are known."""
    try:
        from flask import Request, redirect, request
        from visualdl.server import app as server
    except ImportError as error:
        fix = f"`pip install visualdl=={KNOWN}` brings the version that this command knows"
        print(f"Error: VisualDL cannot be started: {error}; {fix}", file=sys.stderr)
        sys.exit(2)

    create = server.create_app

    def open_curves():
        return redirect(CURVES) if request.path in ENTRANCES else None

    def mend(response: Response, folder: Path) -> Response:
        if request.path.endswith(tuple(SCRIPTS)):
            response.set_data(mended_script(request.path, response.get_data(as_text=True), folder))
        elif request.path == INDICATORS and response.status_code == 200:
            response.set_data(json.dumps(differing(json.loads(response.get_data()))))
        return response

    def in_a_language(app: Callable) -> Callable:
        """VisualDL fails where a browser asks for none of its languages."""

        def serve(environ: dict, start_response: Callable):
            if not Request(environ).accept_languages.best_match(server.support_language):
                environ["HTTP_ACCEPT_LANGUAGE"] = "en"
            return app(environ, start_response)

        return serve

    def create_mended(args):
        app = create(args)
        app.before_request(open_curves)
        app.after_request(partial(mend, folder=Path(args.logdir[0])))
        app.wsgi_app = in_a_language(app.wsgi_app)
        return app

    if version() == KNOWN:
        server.create_app = create_mended
    os.environ["FLASK_SKIP_DOTENV"] = "1"  # a file .env in the current folder may be somebody else's
    server.main()
