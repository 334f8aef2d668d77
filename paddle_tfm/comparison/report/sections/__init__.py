"""The sections of the report that come with the engine, registered as a plugin's are."""

from paddle_tfm.hookspecs import hookimpl

HERE = "paddle_tfm.comparison.report.sections"
SECTIONS = {  # file → name of a section → its class
    "scores": {"results": "Results"},
    "ablation": {"ablation": "Ablation"},
    "further_tests": {"tests": "Tests"},
    "seeds": {"seeds": "Seeds"},
    "chance": {"chance": "Chances"},
    "by_size": {"ladder": "Ladders"},
    "claims": {"claims": "Claims"},
    "tuning": {"tuning": "Tuning", "untuned": "Untuned"},
    "recipes": {"compared": "Compared", "budgets": "Budgets"},
    "gaps": {"gaps": "Gaps"},
    "carried": {"carried": "Carried"},
    "costs": {"costs": "Costs"},
    "training": {"curves": "Curves", "gradients": "Gradients", "layers": "Layers", "norms": "Norms"},
    "attention": {"attention": "Attention"},
    "outputs": {"outputs": "Outputs", "lengths": "Lengths"},
    "how": {"runs": "Runs", "again": "Again", "paper": "Paper"},
}


@hookimpl
def register_sections():
    return {name: f"{HERE}.{file}:{cls}" for file, classes in SECTIONS.items() for name, cls in classes.items()}
