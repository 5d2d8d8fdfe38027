"""Text from elsewhere is shown on one line, in bounded length, with nothing hidden in it."""

import sys
import unicodedata

from hypothesis import given, strategies as st

from marginbench.harness.errors import first_line
from marginbench.harness.words import shown as shown_value, visible, visible_lines

# Surrogates and unassigned code points included.
TEXTS = st.text(st.characters(min_codepoint=0, max_codepoint=sys.maxunicode), max_size=300)


def test_text_in_any_script_stays_as_it_is():
    for text in (
        "plain ASCII, with signs: <b>&\\n</b>",
        "naïve e\u0301t\u00e9",
        "Метод опорных векторов",
        "支持向量机　サポートベクターマシン",
        "شاهد ניסיון ไทย हिन्दी",
        "1\u202f234\u00a0€ · 2.2·10⁻⁴",
    ):
        assert visible(text) == visible_lines(text) == text


def test_what_cannot_be_seen_is_an_escape_and_breaks_of_lines_are_spaces_or_stay():
    for show in (visible, visible_lines):
        assert show("a\0\u2028\u2029\ud800\ue000b") == r"a\x00\u2028\u2029\ud800\ue000b"
    text = "first\r\n\t second\n\nthird  word\n"
    assert visible(text) == "first second third  word"
    assert visible_lines(text) == "first\\r\n\t second\n\nthird  word\n"


def test_a_long_text_says_how_long_it_was():
    shown = visible("x" * 5_242_880, 500)
    assert len(shown) == 500
    assert shown.endswith("x... (5 242 880 characters)")
    assert visible("x" * 500, 500) == "x" * 500
    assert (shown_value("x" * 58), shown_value("x" * 59)) == (f"'{'x' * 58}'", f"'{'x' * 56}...")
    # A traceback keeps its head and tail.
    text = "Traceback (most recent call last):\n" + "  frame\n" * 10_000 + "ValueError: at last"
    shown = visible_lines(text)
    assert len(shown) == 10_000
    assert shown.startswith("Traceback (most recent call last):\n  frame\n")
    assert shown.endswith("  frame\nValueError: at last")
    assert "... (80 054 characters) ..." in shown


@given(TEXTS, st.integers(40, 200))
def test_any_text_is_bounded_and_showing_it_twice_is_the_same(text, limit):
    for show in (visible, visible_lines):
        shown = show(text, limit)
        assert len(shown) <= limit
        assert show(shown, limit) == shown
        assert all(c.isprintable() or unicodedata.category(c) == "Zs" or c in "\t\n" for c in shown)
    assert not {"\t", "\n"} & set(visible(text, limit))


def test_an_exception_that_cannot_say_what_it_is():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    assert first_line(Mute()) == "Mute: its message cannot be shown, that raises RuntimeError"
    assert first_line(ValueError("a\nb")) == "ValueError: a"
    assert len(first_line(ValueError("x" * 10_000))) == 500
