"""Foreign text inside a message: one line, whatever was found in a file or its name."""

from __future__ import annotations


def escape_text(text: str, longest: int | None = None) -> str:
    r"""Return a text with what cannot be printed escaped, cut short if it is long.

    >>> escape_text("two\nlines"), escape_text("a" * 9, longest=5)
    ('two\\nlines', 'aa...')
    """
    if longest is not None and len(text) > longest:
        text = text[: longest - 3] + "..."
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
