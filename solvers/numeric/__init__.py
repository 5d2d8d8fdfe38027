"""Matrices, threads, draws, checks of parameters, and procedures that several families share."""
