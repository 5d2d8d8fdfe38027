"""Sequential minimal optimisation."""
