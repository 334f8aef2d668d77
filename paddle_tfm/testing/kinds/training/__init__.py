"""Checks of what training is made with."""
