"""What can be wrong with a results folder."""

from __future__ import annotations

from ..harness.errors import UserError


class ReportError(UserError):
    """A results folder that no report can be made of; the message is one line for the user."""
