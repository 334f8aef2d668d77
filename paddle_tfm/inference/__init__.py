"""Using a trained run: translate, generate, align."""
