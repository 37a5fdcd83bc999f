"""Bodies of HTML forms: urlencoded, and multipart/form-data (RFC 7578).

The multipart reader is our own and strict. The standard library's `email` reads mail: it unfolds headers, guesses at
broken boundaries and re-encodes line ends, all of which turns a wrong body into a different right one.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from .errors import HTTPError
from .limits import FIELDS_MAX, PART_HEADER_MAX
from .mappings import Fields


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in a form: its name as the client gave it (never a path to open), its content type, its bytes."""

    filename: str
    content_type: str
    body: bytes


FormValue = str | Upload


def parse_query(text: str) -> list[tuple[str, str]]:
    """Fields of a query or an urlencoded body (WHATWG URL, section 5.1).

    Raises `HTTPError` 400 for more than `FIELDS_MAX`.

    What is no UTF-8 becomes U+FFFD, as browsers have it.
    """
    if not text:
        return []
    pieces = text.split("&")
    if len(pieces) > FIELDS_MAX:
        raise HTTPError(400, f"more than {FIELDS_MAX} fields")
    fields = []
    for piece in pieces:
        if piece:
            name, _, value = piece.partition("=")
            fields.append((_decode(name), _decode(value)))
    return fields


def parse_form(content_type: str, body: bytes) -> Fields[FormValue]:
    """The fields of a form's body.

    Raises `HTTPError`: 415 for another content type, 400 for a body that is not what it says.
    """
    media, parameters = parse_content_type(content_type)
    if media == "application/x-www-form-urlencoded":
        try:
            text = body.decode()
        except UnicodeDecodeError as error:
            raise HTTPError(400, "the form is not UTF-8") from error
        return Fields(parse_query(text))
    if media == "multipart/form-data":
        boundary = parameters.get("boundary", "")
        if not 1 <= len(boundary) <= 70:  # RFC 2046, section 5.1.1
            raise HTTPError(400, "multipart/form-data without a boundary")
        return Fields(_parse_multipart(boundary.encode(), body))
    raise HTTPError(415, "a form is application/x-www-form-urlencoded or multipart/form-data")


def is_form(content_type: str) -> bool:
    """Whether a content type is one of the two of forms."""
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


def _decode(text: str) -> str:
    if "+" in text:
        text = text.replace("+", " ")
    return unquote(text) if "%" in text else text


def _split_quoted(value: str) -> list[str]:
    """Splits at semicolons outside quotes."""
    parts, start, quoted, skip = [], 0, False, False
    for at, character in enumerate(value):
        if skip:
            skip = False
        elif character == "\\" and quoted:
            skip = True
        elif character == '"':
            quoted = not quoted
        elif character == ";" and not quoted:
            parts.append(value[start:at])
            start = at + 1
    return [*parts, value[start:]]


def _unquote(text: str) -> str:
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    # Browsers write a quote in a name as %22, and leave a backslash alone (WHATWG HTML, multipart/form-data).
    return text[1:-1].replace('\\"', '"').replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")


def _parse_multipart(boundary: bytes, body: bytes) -> list[tuple[str, FormValue]]:
    delimiter = b"\r\n--" + boundary
    preamble, *parts = (b"\r\n" + body).split(delimiter)
    if preamble.strip() or not parts or not parts[-1].startswith(b"--") or parts[-1][2:].strip():
        raise HTTPError(400, "the multipart body does not begin and end with its boundary")
    if len(parts) - 1 > FIELDS_MAX:
        raise HTTPError(400, f"more than {FIELDS_MAX} parts")
    return [_parse_part(part) for part in parts[:-1]]


def _parse_part(part: bytes) -> tuple[str, FormValue]:
    head, blank, content = part.partition(b"\r\n\r\n")
    if not blank or not head.startswith(b"\r\n") or len(head) > PART_HEADER_MAX:
        raise HTTPError(400, "a part of the multipart body has no header, or a too long one")
    try:
        headers = dict(_header(line) for line in head[2:].decode().split("\r\n"))
        disposition, parameters = parse_content_type(headers.get("content-disposition", ""))
        if disposition != "form-data" or "name" not in parameters:
            raise ValueError("a part without a name")
        if "filename" not in parameters and "filename*" not in parameters:
            return parameters["name"], content.decode()
    except ValueError as error:
        raise HTTPError(400, f"the multipart body is broken: {error}") from error
    filename = parameters.get("filename") or unquote(parameters.get("filename*", "").rpartition("'")[2])
    return parameters["name"], Upload(filename, headers.get("content-type", "application/octet-stream"), content)


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or name != name.strip() or not name:
        raise ValueError(f"the header {line!r}")
    return name.lower(), value.strip()
