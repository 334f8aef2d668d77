"""The sections of the report that come with the engine, a file each, registered as a plugin's are."""

from paddle_tfm.hookspecs import hookimpl

HERE = "paddle_tfm.comparison.report.sections"


@hookimpl
def register_sections():
    return {
        "results": f"{HERE}.results:Results",
        "differences": f"{HERE}.differences:Differences",
        "tests": f"{HERE}.tests:Tests",
        "seeds": f"{HERE}.seeds:Seeds",
        "chance": f"{HERE}.chance:Chances",
        "ladder": f"{HERE}.ladder:Ladders",
        "claims": f"{HERE}.claims:Claims",
        "tuning": f"{HERE}.tuning:Tuning",
        "untuned": f"{HERE}.untuned:Untuned",
        "compared": f"{HERE}.compared:Compared",
        "gaps": f"{HERE}.gaps:Gaps",
        "budgets": f"{HERE}.budgets:Budgets",
        "costs": f"{HERE}.costs:Costs",
        "curves": f"{HERE}.curves:Curves",
        "gradients": f"{HERE}.gradients:Gradients",
        "layers": f"{HERE}.layers:Layers",
        "norms": f"{HERE}.norms:Norms",
        "encodings": f"{HERE}.encodings:Encodings",
        "attention": f"{HERE}.attention:Attention",
        "batches": f"{HERE}.batches:Batches",
        "lengths": f"{HERE}.lengths:Lengths",
        "outputs": f"{HERE}.outputs:Outputs",
        "runs": f"{HERE}.runs:Runs",
        "again": f"{HERE}.again:Again",
        "paper": f"{HERE}.paper:Paper",
        "reading": f"{HERE}.reading:Reading",
    }
