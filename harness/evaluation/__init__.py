"""The work of a run in a worker, and the judging of its result."""
