"""The sections of the report that come with the engine, a file each, registered as a plugin's are."""

from paddle_tfm.hookspecs import hookimpl

HERE = "paddle_tfm.comparison.sections"


@hookimpl
def register_sections():
    return {
        "results": f"{HERE}.results:Results",
        "claims": f"{HERE}.claims:Claims",
        "compared": f"{HERE}.compared:Compared",
        "beside": f"{HERE}.beside:Beside",
        "curves": f"{HERE}.curves:Curves",
        "outputs": f"{HERE}.outputs:Outputs",
        "runs": f"{HERE}.runs:Runs",
        "again": f"{HERE}.again:Again",
        "reading": f"{HERE}.reading:Reading",
    }
