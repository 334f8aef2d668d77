"""Checks of components that stand in a model."""
