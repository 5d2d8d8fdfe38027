"""Cutting planes with kernels: two or more classes, sequences, and custom structures."""
