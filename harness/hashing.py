"""Hashes of values and of files: the same on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=repr)


def hash_json(value: Any) -> str:
    """SHA-256, in hexadecimal, of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces; what JSON does not know goes by its ``repr``."""
    return _ENCODER.encode(value)


def hash_files(files: Mapping[str, str]) -> str:
    """SHA-256 of files of code, each given by its name and its hash."""
    lines = (f"{name}\0{digest}\n" for name, digest in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
