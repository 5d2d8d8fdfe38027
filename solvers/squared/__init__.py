"""Kernel machines with the squared loss."""
