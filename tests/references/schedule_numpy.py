"""Every schedule of the zoo in NumPy, as its paper has it: `plugin check … --reference schedule_numpy.py`."""

from paper_equations import cosine, inverse_sqrt, noam, wsd

__all__ = ["constant", "cosine", "inverse_sqrt", "noam", "wsd"]


def constant(step, learning_rate):
    return learning_rate
