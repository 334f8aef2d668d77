"""From YAML to checked settings: a recipe is data and never code."""
