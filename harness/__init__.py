"""Studies and their kinds, the workers, the record store and the command line."""
