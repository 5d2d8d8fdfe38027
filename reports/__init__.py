"""Reports: statistics over run records, figures, the HTML page and the terminal summary.

Importing this package is light; pandas and matplotlib are imported when a report is written.
"""

from __future__ import annotations

from marginbench.harness.errors import UserError


class ReportError(UserError):
    """A results folder that no report can be made of; the message is one line for the user."""
