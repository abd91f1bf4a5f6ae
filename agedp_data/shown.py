"""Foreign text inside a message: one printable line, whatever a file or its name contains."""

from __future__ import annotations


def escape_text(text: str, longest: int | None = None) -> str:
    r"""Return a text with unprintable characters escaped, truncated if long; use it on foreign text in messages.

    Args:
        text: text from a file, a name or a service.
        longest: largest number of characters before escaping; None: no limit.

    >>> escape_text("two\nlines"), escape_text("a" * 9, longest=5)
    ('two\\nlines', 'aa...')
    """
    if longest is not None and len(text) > longest:
        text = text[: longest - 3] + "..."
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
