"""All runs of a recipe: the same data, the same order, the same budget for every variant, and who trains them."""
