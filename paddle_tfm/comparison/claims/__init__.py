"""What a recipe claims, and whether its runs reproduce it."""
