"""Linear methods, without a kernel."""
