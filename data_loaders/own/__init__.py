"""Anyone's own data: files, Python code, arrays and tables, made into datasets like any other."""
