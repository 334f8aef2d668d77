"""What is tried on small real trainings and comparisons: sweeps, listeners, sections of the report."""
