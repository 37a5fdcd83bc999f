"""The charsets that a body may have.

Python has a hundred codecs and caches each name that was ever requested; some codecs take time that grows with the
square of the length. So a client chooses from a list: the charsets of web pages that do not use UTF-8 yet.
"""

from __future__ import annotations

from ..errors import HTTPError

_NAMES = {
    "utf-8": ("utf-8", "utf8"),
    "ascii": ("us-ascii", "ascii", "ansi_x3.4-1968"),
    "latin-1": ("iso-8859-1", "iso8859-1", "iso_8859-1", "latin-1", "latin1", "l1"),
    "cp1252": ("windows-1252", "cp1252", "cp-1252", "x-cp1252"),
    "utf-16": ("utf-16", "utf16"),
    "utf-16-le": ("utf-16le", "utf-16-le"),
    "utf-16-be": ("utf-16be", "utf-16-be"),
}
_CODECS = {name: codec for codec, names in _NAMES.items() for name in names}
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


def decode_text(body: bytes, charset: str) -> str:
    """The text of a body.

    Raises `HTTPError`: 415 for a charset that is not on the list (RFC 9110, section 15.5.16), 400 for a body that is
    not text in its charset.
    """
    codec = _CODECS.get(charset.lower())
    if codec is None:
        raise HTTPError(415, "unsupported charset: send UTF-8, US-ASCII, ISO-8859-1, Windows-1252 or UTF-16")
    if codec == "utf-16" and not body.startswith(_BYTE_ORDER_MARKS):
        codec = "utf-16-le"  # whatever this machine has (WHATWG Encoding, section 4.2)
    try:
        return body.decode(codec)
    except UnicodeError as error:
        raise HTTPError(400, "the body is not text in its charset") from error
