"""The names of files that clients send, made harmless."""

from __future__ import annotations

import re
import unicodedata

from .._limits import FILENAME_BYTES_MAX

_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|clock\$|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3])(?:\..*)?", re.I | re.S
)
"""Devices of Windows, with any extension: nothing can be stored under such a name there."""
_UNUSABLE = re.compile(r'[<>:"|?*]')
"""What no name on Windows may have."""


def plain_name(given: str) -> str:
    """A name that is safe to show and to store under in a folder; empty only if nothing was given.

    What precedes the last slash or backslash is left out, and so are control characters and those that change the
    direction of text, white space around the name, and dots before and after it. Names of devices get an underscore,
    signs that no name may have become one, and a long name loses the end of what precedes its extension.
    """
    name = unicodedata.normalize("NFC", given.replace("\\", "/").rpartition("/")[2])
    name = "".join(each for each in name if unicodedata.category(each) not in ("Cc", "Cf", "Cs", "Zl", "Zp"))
    name = _UNUSABLE.sub("_", name)
    # What precedes the first letter decides whether it is hidden, what follows the last is dropped by Windows.
    name = re.sub(r"^[\s.]+|[\s.]+$", "", name)
    if _RESERVED.fullmatch(name):
        name = f"_{name}"
    name = _shortened(name)
    return name or ("unnamed" if given else "")


def _shortened(name: str) -> str:
    if len(name.encode()) <= FILENAME_BYTES_MAX:
        return name
    stem, dot, extension = name.rpartition(".")
    if not dot or len(extension.encode()) > FILENAME_BYTES_MAX // 4:
        stem, extension = name, ""
    ending = dot + extension if extension else ""
    room = FILENAME_BYTES_MAX - len(ending.encode())
    return stem.encode()[:room].decode(errors="ignore").rstrip(" .") + ending
