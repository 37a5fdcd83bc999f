"""The prefix of an application's paths, when a proxy passes on only these: `SCRIPT_NAME`, or `root_path`."""

from __future__ import annotations

from urllib.parse import quote


class RootPath:
    """The prefix, decoded, without a slash at its end; empty if there is none.

    Some proxies leave it in the path and some remove it. So a path that begins with it has it, and any other one gets
    it, as frameworks see it too.
    """

    def __init__(self, path: str) -> None:
        self.text = path
        self.native = path.encode().decode("latin-1")
        """As PEP 3333 has text."""
        self._raw = quote(path, safe="/:@!$&'()*+,;=~").encode()

    def __bool__(self) -> bool:
        return bool(self.text)

    def below(self, native: str) -> str:
        """What follows the prefix in a path, both as PEP 3333 has them."""
        return native[len(self.native) :] if _is_below(native, self.native) else native

    def whole(self, path: str, raw: bytes) -> tuple[str, bytes]:
        """A path with the prefix, decoded and as it is sent."""
        return (path, raw) if _is_below(path, self.text) else (self.text + path, self._raw + raw)


def _is_below(path: str, root: str) -> bool:
    return path.startswith(root) and path[len(root) : len(root) + 1] in ("", "/")
