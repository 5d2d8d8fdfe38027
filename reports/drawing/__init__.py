"""Figures as SVG text; they draw statistics and compute none."""
