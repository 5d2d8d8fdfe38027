"""Solvers that are no marginbench solvers: estimators of any library, and programs."""
