"""What is checked: a component in small models, and what a check asks of any model."""
