"""Text from outside may hold lone surrogates: JSON of a client may (`"\\ud800"`), and so may the names of files. UTF-8
has none, so in what is told of such text they are escaped.
"""

from __future__ import annotations


def encoded(text: str) -> bytes:
    """As UTF-8. A lone surrogate becomes `\\ud800`."""
    return text.encode("utf-8", "backslashreplace")


def encodable(text: str) -> str:
    """The text with lone surrogates as `\\ud800`."""
    return text if text.isascii() else encoded(text).decode()
