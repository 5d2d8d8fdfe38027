"""Hashes of values: the same on every machine."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=repr)


def hash_json(value: Any) -> str:
    """SHA-256, in hexadecimal, of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces; what JSON does not know goes by its ``repr``."""
    return _ENCODER.encode(value)
