"""Solvers of other libraries, as peers in a comparison."""
