"""From YAML to a plan: a recipe is data and never code."""
