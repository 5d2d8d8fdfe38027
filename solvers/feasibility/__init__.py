"""Feasibility problems: a y that separates, or a certificate that none does."""
