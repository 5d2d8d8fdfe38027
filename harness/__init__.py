"""Tasks, studies, the runner, the record store and the command line."""
