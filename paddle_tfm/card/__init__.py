"""The model card of a run: one page that says what a trained model is, how good, and how to use it."""
