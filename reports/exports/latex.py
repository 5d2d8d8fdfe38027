r"""Text and tables as LaTeX that needs booktabs and nothing else.

Every label of a study may hold any text: what is special to TeX, ligatures, and letters that
pdflatex does not know are written so that they read as they are.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType

from ...harness.words import visible
from ..tables import Cell, Heading, Table

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    # Other characters than these in the classic text fonts.
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': r"{\ttfamily\char34}",
    # After the end of a row these would be its optional argument or its star.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
}
# Capitals that look like Latin ones have no command.
_COMMANDS = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega "
    "leq geq neq approx infty in sum surd"
)
_LETTERS_OF = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ≤≥≠≈∞∈∑√"
_SYMBOLS = {
    letter: f"$\\{name}$" for letter, name in zip(_LETTERS_OF, _COMMANDS.split(), strict=True)
} | {"\N{NARROW NO-BREAK SPACE}": r"\,", "\N{THIN SPACE}": r"\,", "\N{MINUS SIGN}": "$-$"}
# What pdflatex reads as it is in its default encoding: Latin-1 and Latin Extended-A, but for some
# letters, and some punctuation.
_READ = frozenset(map(chr, range(0xA0, 0x180))) - set("«»ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲųſ")
_READ |= set("–—‘’“”†‡•…‖→←€")  # noqa: RUF001
_SUPERSCRIPTS = "⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹"
_SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉"
_RAISED = str.maketrans(_SUPERSCRIPTS, "-+0123456789")
_LOWERED = str.maketrans(_SUBSCRIPTS, "0123456789")
_PIECES = re.compile(f"[{_SUPERSCRIPTS}]+|[{_SUBSCRIPTS}]+|-{{2,}}|'{{2,}}|[?!]`|,,|.", re.DOTALL)
# Columns of running text break their lines; a table of many of them must fit a page.
_TEXT_WIDTHS = MappingProxyType({"wide": "0.25", "reason": "0.25", "statuses": "0.11"})
# Letters of a line above the columns of a group, for each of them.
_LETTERS = 13
# Digits of a line of text in this size, of the gap between columns, and the sizes of what stands
# below values, of bold ones and of capitals: of the class article on paper of either size.
_PAGE, _GAP, _SMALL, _BOLD, _WIDE = 80.0, 2.0, 0.95, 1.15, 1.7
_WIDE_LETTERS = frozenset("mw%\N{MULTIPLICATION SIGN}\N{MINUS SIGN}\N{LESS-THAN OR EQUAL TO}")


def escaped(text: str) -> str:
    """Any text as LaTeX that typesets it; a letter unknown to pdflatex as its code point."""
    return "".join(_piece(match[0]) for match in _PIECES.finditer(visible(text)))


def _piece(piece: str) -> str:
    if piece[0] in _SUPERSCRIPTS:
        return f"$^{{{piece.translate(_RAISED)}}}$"
    if piece[0] in _SUBSCRIPTS:
        return f"$_{{{piece.translate(_LOWERED)}}}$"
    # Some together would be a dash, a quotation mark or an inverted one.
    return "{}".join(map(_letter, piece))


def _letter(letter: str) -> str:
    if letter in _SPECIAL:
        return _SPECIAL[letter]
    if letter.isascii() or letter in _READ:
        return letter
    # The ASCII letters that stand for one, such as those of a ligature.
    plain = unicodedata.normalize("NFKD", letter)
    plain = "".join(map(_letter, plain)) if plain.isascii() else ""
    return _SYMBOLS.get(letter) or plain or f"{{[}}U+{ord(letter):04X}{{]}}"


def tabular(table: Table, name: str) -> str:
    r"""A table with its caption and label, for ``\input``; it needs ``\usepackage{booktabs}``.

    What stands below a value on the page, such as its range, is a smaller line below the row. A
    table of many columns is in several parts below each other, each with the first column.
    """
    caption = table.caption
    if not caption.startswith(table.label):
        caption = ". ".join(filter(None, [table.label, caption]))
    lines = [
        r"\begin{table}",
        r"\centering",
        f"\\caption{{{escaped(caption)}}}",
        f"\\label{{tab:{name}}}",
        r"\footnotesize",
        r"\setlength{\tabcolsep}{4pt}",
    ]
    for index, columns in enumerate(_parts(table)):
        lines += [r"\par\bigskip" if index else r"\par\smallskip"]
        lines += _part(table, columns)
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _parts(table: Table) -> list[list[int]]:
    """The places of columns in parts that fit the width of a page, each with the first one."""
    widths = [_width(table, index) + _GAP for index in range(len(table.headings))]
    parts, room = [[0]], 0.0
    for index, width in enumerate(widths[1:], 1):
        if width > room and len(parts[-1]) > 1:
            parts.append([0])
        room = (_PAGE - widths[0] if parts[-1] == [0] else room) - width
        parts[-1].append(index)
    return parts


def _width(table: Table, index: int) -> float:
    """About how wide a column is, in letters."""
    heading = table.headings[index]
    if heading.style in _TEXT_WIDTHS:
        return _PAGE * float(_TEXT_WIDTHS[heading.style])
    return max(_width_of_values(table, index), *map(_letters, _lines(table, index)))


def _width_of_values(table: Table, index: int) -> float:
    cells = [row[index] for row in table.rows]
    values = [(_BOLD if cell.best else 1.0) * _letters(cell.value) for cell in cells]
    below = [_SMALL * _letters(text) for cell in cells for text in (cell.range, cell.note)]
    return max(0.0, *values, *below)


def _lines(table: Table, index: int) -> list[str]:
    """The heading of a column; that of numbers in lines as short as it has values, or in four."""
    heading = table.headings[index]
    if heading.style != "number":
        return [heading.title]
    words = heading.title.split(" ")
    widest = max(map(_letters, words))
    width = max(_width_of_values(table, index), widest, _letters(heading.title) / 4)
    lines = words[:1]
    for word in words[1:]:
        longer = f"{lines[-1]} {word}"
        lines[-1:] = [longer] if _letters(longer) <= width else [lines[-1], word]
    return lines


def _letters(text: str) -> float:
    """About how wide a text is, in digits; capitals and some others are wider than these."""
    return sum(_WIDE if letter.isupper() or letter in _WIDE_LETTERS else 1.0 for letter in text)


def _part(table: Table, columns: list[int]) -> list[str]:
    headings = [table.headings[index] for index in columns]
    rows = [[row[index] for index in columns] for row in table.rows]
    return [
        f"\\begin{{tabular}}{{{''.join(map(_column, headings))}}}",
        r"\toprule",
        *_groups(replace(table, headings=headings)),
        _row([_stacked(_lines(table, index), "r") for index in columns]),
        r"\midrule",
        *(line for row in rows for line in _rows(row)),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def _column(heading: Heading) -> str:
    if heading.style in _TEXT_WIDTHS:
        return f"p{{{_TEXT_WIDTHS[heading.style]}\\linewidth}}"
    return "r" if heading.style == "number" else "l"


def _stacked(lines: Sequence[str], side: str) -> str:
    if len(lines) == 1:
        return escaped(lines[0])
    text = r" \\ ".join(map(escaped, lines))
    return f"\\begin{{tabular}}[b]{{@{{}}{side}@{{}}}}{text}\\end{{tabular}}"


def _groups(table: Table) -> Iterator[str]:
    """The row of headings of groups, and the rules below it."""
    if not table.groups:
        return
    cells, rules, column = [], [], 1
    for title, width in table.groups:
        words = _stacked(textwrap.wrap(title, _LETTERS * width) or [""], "c")
        cells += [f"\\multicolumn{{{width}}}{{c}}{{{words}}}"] if title else [""] * width
        if title:
            rules.append(f"\\cmidrule(lr){{{column}-{column + width - 1}}}")
        column += width
    yield _row(cells)
    yield "".join(rules)


def _rows(cells: Sequence[Cell]) -> Iterator[str]:
    """The row of values, and below it what each of them has below it."""
    yield _row([_value(cell) for cell in cells])
    below = [[cell.range for cell in cells], [cell.note for cell in cells]]
    for texts in filter(any, below):
        yield _row([f"{{\\scriptsize {escaped(text)}}}" if text else "" for text in texts])
    if any(map(any, below)):
        # A gap before the next row.
        yield r"\addlinespace[2pt]"


def _value(cell: Cell) -> str:
    text = escaped(cell.value)
    if cell.best:
        return f"\\textbf{{\\boldmath {text}}}" if "$" in text else f"\\textbf{{{text}}}"
    return f"\\texttt{{{text}}}" if cell.code else text


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
