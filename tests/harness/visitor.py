"""A person with a browser, as far as forms need one: cookies, hidden fields, files."""

from __future__ import annotations

import html
import re
from urllib.parse import urlsplit

from .client import Answer
from .server import Server

BOUNDARY = "of-a-test"


class Visitor:
    """Follows no redirects by itself."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._cookies: dict[str, str] = {}

    def get(self, target: str) -> Answer:
        """Opens a page."""
        return self._ask("GET", target)

    def send(
        self,
        target: str,
        fields: dict[str, str],
        files: dict[str, tuple[str, bytes]] | None = None,
        action: str | None = None,
    ) -> Answer:
        """Opens the page of a form, fills it in and sends it there, or to its `action`. Fields that the page has hidden
        are sent as they are; `files` are names and contents.
        """
        page = self.get(target)
        assert page.status == 200, (target, page.status)
        filled = hidden_fields(page.text) | fields
        parts = [
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in filled.items()
        ]
        for name, (filename, content) in (files or {}).items():
            head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="{filename}"\r\n\r\n'
            parts.append(head.encode() + content + b"\r\n")
        body = b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()
        return self._ask("POST", action or target, f"Content-Type: multipart/form-data; boundary={BOUNDARY}", body=body)

    def follow(self, answer: Answer) -> Answer:
        """The page that a redirect leads to."""
        assert answer.status == 302, (answer.status, answer.text[:2000])
        parts = urlsplit(answer["location"])
        return self.get(parts.path + (f"?{parts.query}" if parts.query else ""))

    def _ask(self, method: str, target: str, *fields: str, body: bytes = b"") -> Answer:
        with self._server.connect() as client:
            cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
            sent = [*fields, *([f"Cookie: {cookies}"] if cookies else [])]
            answer = client.ask(method, target, *sent, body=body).answer()
        for name, value in answer.fields:
            if name == "set-cookie":
                key, _, rest = value.partition("=")
                self._cookies[key] = rest.partition(";")[0]
        return answer


def hidden_fields(page: str) -> dict[str, str]:
    """The hidden fields of all forms of a page."""
    found = {}
    for tag in re.findall(r"<input\b[^>]*>", page):
        attributes = {name: html.unescape(value) for name, value in re.findall(r'([\w-]+)="([^"]*)"', tag)}
        if attributes.get("type") == "hidden" and "name" in attributes:
            found[attributes["name"]] = attributes.get("value", "")
    return found
