"""The numbers of a report: pure functions from DataFrame to DataFrame."""
