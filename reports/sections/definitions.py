"""The glossary: what the headings of tables mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..analysis import Analysis
from ..definitions import glossary
from . import Section


class Definitions(Section):
    """An entry for each term, in alphabetical order; headings lead here."""

    anchor, title, place = "definitions", "Definitions", 95
    template = "definitions.html"

    def data(self, analysis: Analysis) -> Mapping[str, Any]:
        """The entries."""
        entries = analysis.ask(glossary).values()
        return {"entries": sorted(entries, key=lambda entry: entry.title.lower())}
