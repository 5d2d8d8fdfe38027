"""Where the keys of a TOML file stand: the standard library reads TOML, but gives no lines."""

from __future__ import annotations

import contextlib
import re
from bisect import bisect_right
from collections.abc import Mapping

#: A key's way from the top of the file: names of tables and keys, and places in lists from 0.
Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\r\n]*")
_LITERAL = re.compile(r"'[^'\n]*'")
_BASIC = re.compile(r'"(?:[^"\\\n]|\\.)*"')
# Up to two quotes may stand right before the three that end the text.
_LONG_LITERAL = re.compile(r"'''.*?'''(?:'{0,2})", re.DOTALL)
_LONG_BASIC = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"""(?:"{0,2})', re.DOTALL)
_ESCAPE = re.compile(r'\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(["\\bfnrte]))')
_SHORT_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "e": "\x1b"}


def key_lines(text: str) -> dict[Path, int]:
    """The line of each key, table and entry of a list, counted from 1.

    Parameters
    ----------
    text : str
        Valid TOML. Of other text the lines are found up to what cannot be read.

    Returns
    -------
    dict
        The path of a key -> the line where it is first written: ``("task", 1, "C")`` is the key
        ``C`` of the second ``[[task]]``.
    """
    scanner = _Scanner(text)
    with contextlib.suppress(_UnreadableError, RecursionError):
        scanner.document()
    return scanner.lines


def line_of(lines: Mapping[Path, int], path: Path) -> int | None:
    """The line of a key; of one that is not written that of the nearest table around it."""
    for length in range(len(path), 0, -1):
        line = lines.get(tuple(path[:length]))
        if line is not None:
            return line
    return None


class _UnreadableError(Exception):
    """The text is not TOML here."""


class _Scanner:
    """One pass over a file; values are skipped, except for the keys inside them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.lines: dict[Path, int] = {}
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        # How many entries each array of tables has so far.
        self._entries: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        while True:
            self._skip(_BLANK)
            if self.place >= len(self.text):
                return
            if self._starts("[["):
                table = self._entry_header()
            elif self._starts("["):
                table = self._table_header()
            else:
                self._pair(table)

    def _entry_header(self) -> Path:
        start = self.place
        self.place += 2
        keys = self._keys()
        self._expect("]]")
        path = self._resolved(keys[:-1], start) + (keys[-1],)
        self._note(path, start)
        number = self._entries.get(path, 0)
        self._entries[path] = number + 1
        self._note(path + (number,), start)
        return path + (number,)

    def _table_header(self) -> Path:
        start = self.place
        self.place += 1
        keys = self._keys()
        self._expect("]")
        return self._resolved(keys, start)

    def _resolved(self, keys: list[str], start: int) -> Path:
        """The path of a header; below an array of tables it means the last entry."""
        path: Path = ()
        for key in keys:
            path += (key,)
            self._note(path, start)
            if path in self._entries:
                path += (self._entries[path] - 1,)
        return path

    def _pair(self, table: Path) -> None:
        start = self.place
        path = table
        for key in self._keys():
            path += (key,)
            self._note(path, start)
        self._expect("=")
        self._skip(_SPACE)
        self._value(path)

    def _keys(self) -> list[str]:
        """The parts of a dotted key."""
        keys = []
        while True:
            self._skip(_SPACE)
            keys.append(self._key())
            self._skip(_SPACE)
            if not self._starts("."):
                return keys
            self.place += 1

    def _key(self) -> str:
        if self._starts("'"):
            return self._take(_LITERAL)[1:-1]
        if self._starts('"'):
            return _ESCAPE.sub(_unescaped, self._take(_BASIC)[1:-1])
        return self._take(_BARE_KEY)

    def _value(self, path: Path) -> None:
        if self._starts("["):
            self._array(path)
        elif self._starts("{"):
            self._inline_table(path)
        elif self._starts("'''"):
            self._take(_LONG_LITERAL)
        elif self._starts('"""'):
            self._take(_LONG_BASIC)
        elif self._starts("'"):
            self._take(_LITERAL)
        elif self._starts('"'):
            self._take(_BASIC)
        else:
            self._skip(_SCALAR)

    def _array(self, path: Path) -> None:
        self.place += 1
        number = 0
        while True:
            self._skip(_BLANK)
            if self._starts("]"):
                self.place += 1
                return
            self._note(path + (number,), self.place)
            self._value(path + (number,))
            number += 1
            self._separator("]")

    def _inline_table(self, path: Path) -> None:
        self.place += 1
        while True:
            self._skip(_BLANK)
            if self._starts("}"):
                self.place += 1
                return
            self._pair(path)
            self._separator("}")

    def _separator(self, end: str) -> None:
        self._skip(_BLANK)
        if self._starts(","):
            self.place += 1
        elif not self._starts(end):
            raise _UnreadableError

    def _note(self, path: Path, start: int) -> None:
        self.lines.setdefault(path, bisect_right(self._breaks, start) + 1)

    def _starts(self, text: str) -> bool:
        return self.text.startswith(text, self.place)

    def _expect(self, text: str) -> None:
        self._skip(_SPACE)
        if not self._starts(text):
            raise _UnreadableError
        self.place += len(text)

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.place)
        if match is None:
            raise _UnreadableError
        self.place = match.end()
        return match[0]

    def _skip(self, pattern: re.Pattern[str]) -> None:
        self._take(pattern)


def _unescaped(match: re.Match[str]) -> str:
    digits = match[1] or match[2]
    if digits:
        code = int(digits, 16)
        return chr(code) if code <= 0x10FFFF else match[0]
    return _SHORT_ESCAPES.get(match[3], match[3])
