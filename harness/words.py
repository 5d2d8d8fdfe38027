"""Words for messages and reports: numbers in words, and text from elsewhere made safe to show."""

from __future__ import annotations

import re
import unicodedata

#: Characters that a message, the reason of a run and a traceback may have at most.
MESSAGE_LIMIT = 2_000
REASON_LIMIT = 500
TRACEBACK_LIMIT = 10_000

# All but the printable characters of ASCII.
_SUSPECTS = re.compile(r"[^ -~]")
_BREAKS = re.compile(r"[ \t\n\v\f\r]*[\t\n\v\f\r][ \t\n\v\f\r]*")


def plural(n: int, word: str) -> str:
    """ "1 run", "3 runs"."""
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def shown(value: object) -> str:
    """A value in a message."""
    try:
        text = repr(value)
    except ValueError:  # a number with more digits than Python writes out
        text = "a number with thousands of digits"
    except Exception:  # noqa: BLE001 - a user's object may raise anything here
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def visible(text: str, limit: int = MESSAGE_LIMIT) -> str:
    r"""Text from elsewhere as one line that is safe to show; applied twice, it changes nothing.

    Breaks of lines become spaces; control and bidirectional characters become escapes
    such as ``\x00`` and ``\u202e``; other text stays, in any script. What is longer than the limit
    loses its end, and the result says how long it was.
    """
    line = _BREAKS.sub(" ", text).strip(" ")
    # What is beyond the limit now is beyond it with escapes too.
    shown = _escaped(line[: limit + 1], "")
    if len(shown) <= limit:
        return shown
    note = f"... ({_count(len(text))} characters)"
    return shown[: max(0, limit - len(note))] + note


def visible_lines(text: str, limit: int = TRACEBACK_LIMIT) -> str:
    """Text of several lines, such as a traceback, that is safe to show.

    Like :func:`visible`, but tabs and new lines stay, and a text that is too long loses its middle:
    a traceback begins with where it was called and ends with what was raised.
    """
    head = _escaped(text[: limit + 1], "\t\n")
    if len(head) <= limit:
        return head
    note = f"\n... ({_count(len(text))} characters) ...\n"
    room = max(0, limit - len(note))
    tail = _escaped(text[-limit:], "\t\n")
    return head[: room - room // 2] + note + tail[len(tail) - room // 2 :]


def _escaped(text: str, kept: str) -> str:
    def shown(match: re.Match[str]) -> str:
        character = match[0]
        is_space = unicodedata.category(character) == "Zs"
        stays = is_space or character.isprintable() or character in kept
        return character if stays else character.encode("unicode_escape").decode()

    return _SUSPECTS.sub(shown, text)


def _count(number: int) -> str:
    """Digits in groups of three: 5 242 880."""
    return f"{number:,}".replace(",", " ")
