"""Kernel machines in a low-dimensional space of features."""
