"""Bodies of HTML forms: urlencoded, and multipart/form-data (RFC 7578).

The multipart reader is our own and strict. The standard library's `email` is for mail: it unfolds headers, guesses at
broken boundaries and re-encodes line ends. All of that turns a malformed body into a valid one with other contents.

Fields are counted before a form is split, so that a form of a million empty fields costs no more than one of a
thousand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .._limits import FIELDS_MAX, PART_HEADER_LINES_MAX, PART_HEADER_MAX, URLENCODED_MAX
from .._mappings import Fields
from ..errors import HTTPError
from .filenames import plain_name
from .percent import percent_decode, percent_decode_text


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in a form: `def upload(photo: Upload)`, or `list[Upload]` for several of that name."""

    filename: str
    """A plain name made of what the client gave: without folders, control characters and what systems reserve, and not
    hidden. Empty if the client gave none. Two uploads may have the same one."""
    content_type: str
    """As the client gave it; empty without one."""
    body: bytes
    """What is in the file."""
    raw_filename: str = ""
    """The name as the client gave it: never a path to open."""


FormValue = str | Upload


def parse_query(text: str) -> list[tuple[str, str]]:
    """Fields of a query (WHATWG URL, section 5.1). Bytes that are not UTF-8 become U+FFFD, as in browsers.

    Raises `HTTPError` 400 for more than `FIELDS_MAX`.
    """
    return _parse_urlencoded(text.encode(errors="surrogatepass")) if text else []


def parse_form(content_type: str, body: bytes) -> Fields[FormValue]:
    """The fields of a form's body.

    Raises `HTTPError`: 415 for another content type, 413 for more than `URLENCODED_MAX` bytes that are urlencoded, 400
    for a body that does not match its content type.
    """
    media, parameters = parse_content_type(content_type)
    if media == "application/x-www-form-urlencoded":
        return Fields(_parse_urlencoded_body(body))
    if media == "multipart/form-data":
        boundary = parameters.get("boundary", "")
        if not _BOUNDARY.fullmatch(boundary):
            raise HTTPError(400, "multipart/form-data without a boundary")
        return Fields(_parse_part(part) for part in _parts(b"--" + boundary.encode(), body))
    raise HTTPError(415, "a form is application/x-www-form-urlencoded or multipart/form-data")


def is_form(content_type: str) -> bool:
    """Whether a content type is one of the two for forms."""
    return content_type.partition(";")[0].strip().lower() in {
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    }


def parse_content_type(value: str) -> tuple[str, dict[str, str]]:
    """A media type in lower case, and its parameters: `text/html; charset="x"`, also `form-data; name="a"`."""
    first, *rest = _split_quoted(value)
    parameters = {}
    for part in rest:
        name, equals, text = part.partition("=")
        if equals:
            parameters[name.strip().lower()] = _unquote(text.strip())
    return first.strip().lower(), parameters


# Urlencoded


def _parse_urlencoded_body(body: bytes) -> list[tuple[str, str]]:
    if len(body) > URLENCODED_MAX:
        raise HTTPError(413, f"an urlencoded form has at most {URLENCODED_MAX} bytes: send multipart/form-data")
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise HTTPError(400, "the form is not UTF-8") from error
    return _parse_urlencoded(body)


def _parse_urlencoded(data: bytes) -> list[tuple[str, str]]:
    if data.count(b"&") >= FIELDS_MAX:
        raise HTTPError(400, f"more than {FIELDS_MAX} fields")
    fields = []
    for piece in data.split(b"&"):
        if piece:
            name, _, value = piece.partition(b"=")
            fields.append((_decode(name), _decode(value)))
    return fields


def _decode(text: bytes) -> str:
    return percent_decode(text.replace(b"+", b" ")).decode(errors="replace")


# Parameters of a header

# A quote that is not closed ends with the text, so that nothing is ever read twice.
_QUOTED_OR_SEMICOLON = re.compile(r'"[^"\\]*(?:\\.?[^"\\]*)*(?:"|\Z)|;', re.DOTALL)


def _split_quoted(value: str) -> list[str]:
    """Splits at semicolons outside quotes."""
    parts, start = [], 0
    for match in _QUOTED_OR_SEMICOLON.finditer(value):
        if value[match.start()] == ";":
            parts.append(value[start : match.start()])
            start = match.end()
    return [*parts, value[start:]]


def _unquote(text: str) -> str:
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    # Browsers write a quote in a name as %22, and leave a backslash alone (WHATWG HTML, multipart/form-data).
    return text[1:-1].replace('\\"', '"').replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")


# Multipart

# RFC 2046, section 5.1.1, and the stars and other signs that are in use. Without a line end in it a delimiter never
# begins inside another, so that the search for it stays linear.
_BOUNDARY = re.compile(r"[ -~]{0,69}[!-~]")


def _parts(dashed: bytes, body: bytes) -> Iterator[bytes]:
    """The parts between the delimiters, still with the rest of the delimiters' lines."""
    delimiter = b"\r\n" + dashed
    start = -2 if body.startswith(dashed) else body.find(delimiter)
    last = body.rfind(delimiter) if delimiter in body else start
    epilogue = body[last + len(delimiter) :] if start != -1 else b""
    if body[: max(start, 0)].strip() or not epilogue.startswith(b"--") or epilogue[2:].strip():
        raise HTTPError(400, "the multipart body does not begin and end with its boundary")
    if body.count(delimiter) > FIELDS_MAX:
        raise HTTPError(400, f"more than {FIELDS_MAX} parts")
    while start < last:
        start += len(delimiter)
        end = body.find(delimiter, start)
        yield body[start:end]
        start = end


def _parse_part(part: bytes) -> tuple[str, FormValue]:
    end = part.find(b"\r\n\r\n", 0, PART_HEADER_MAX + 4)
    if end == -1 or not part.startswith(b"\r\n") or part.count(b"\r\n", 0, end) > PART_HEADER_LINES_MAX:
        raise HTTPError(400, "a part of the multipart body has no header, or one that is too long")
    content = part[end + 4 :]
    try:
        headers = dict(_header(line) for line in part[2:end].decode().split("\r\n"))
        disposition, parameters = parse_content_type(headers.get("content-disposition", ""))
        if disposition != "form-data" or "name" not in parameters:
            raise ValueError("a part without a name")
        if "filename" not in parameters and "filename*" not in parameters:
            return parameters["name"], content.decode()
    except ValueError as error:
        raise HTTPError(400, f"the multipart body is broken: {error}") from error
    filename = parameters.get("filename") or percent_decode_text(parameters.get("filename*", "").rpartition("'")[2])
    content_type = headers.get("content-type", "application/octet-stream")
    return parameters["name"], Upload(plain_name(filename), content_type, content, filename)


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or name != name.strip() or not name:
        raise ValueError(f"the header {line!r}")
    return name.lower(), value.strip()
