"""Stored results: records, the journal, the description of a study, and object stores."""
