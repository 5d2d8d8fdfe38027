"""What is kept of runs: records, the store, the description of a study, several folders in one."""
