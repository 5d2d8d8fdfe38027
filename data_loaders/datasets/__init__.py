"""The datasets, one module each: its ``SOURCES`` say where it comes from and how it is made."""
