"""Commands that read results: a module for each, with its function and its help.

Heavy modules are imported by the commands when they run.
"""
