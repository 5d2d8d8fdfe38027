"""Comparisons of two results folders, or of two solvers of one: what changed, and how sure it is.

Importing this package is light.
"""
