"""What the server adds to the answers of an application: its own headers, those for other origins, and those that a
wait was returned with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .._mappings import Headers
from .._wire import payloads as p
from .._wire.ready import Application, CorsPolicy

_LISTS = ("set-cookie", "vary", "link")  # another line adds to the first
_ABOUT_CONTENT = ("cache-control", "etag", "expires", "last-modified")


@dataclass(slots=True)
class Added:
    """`given` is for this request, `usual` only for an answer without a header of that name."""

    usual: list[tuple[str, str]]
    varies: bool = False
    given: p.Added | None = None

    def status(self, status: int) -> int:
        """The status that is sent instead of this one."""
        return (self.given.status if self.given is not None else None) or status if status == 200 else status

    def headers(self, status: int, own: Headers) -> Headers:
        """The headers of an answer, and what is added to them."""
        pairs = Headers._of_request((self.given.headers if self.given is not None else None) or []).pairs()
        given = [(name, value) for name, value in pairs if status < 400 or not _is_about_content(name)]
        replaced = {name for name, _ in given if name not in _LISTS}
        said = [(name, value) for name, value in own.pairs() if name not in replaced] + given
        names = {name for name, _ in said}
        usual = [(name, value) for name, value in self.usual if name not in names]
        return Headers([*said, *usual, *([("vary", "Origin")] if self.varies else [])])


class Surroundings:
    """What an application declares for all its answers."""

    def __init__(self, ready: Application) -> None:
        self._ready = ready
        self._usual = Headers._of_request(ready.headers).pairs()

    def added(self, route: int | None, origin: str | None) -> Added:
        """For the answer of a request; `route` is the number of its route."""
        policy = self._policy(route)
        if policy is None:
            return Added(list(self._usual))
        permitted = _permitted(policy, "*" if "*" in policy.origins else origin)
        cors = [] if permitted is None else _permissions(policy, permitted)
        return Added([*self._usual, *cors], varies="*" not in policy.origins)

    def preflight(self, route: int | None, asked: Headers) -> p.Response | None:
        """The answer to a preflight; `route` is that of the request that it asks about."""
        policy = self._policy(route)
        if policy is None:
            return None
        pairs: list[tuple[str, str]] = []
        permitted = _permitted(policy, asked["origin"])
        if permitted is not None:
            methods, headers = policy.methods, policy.headers
            listed = _names(asked.get("access-control-request-headers", "")) if headers is None else headers
            pairs = [
                ("access-control-allow-origin", permitted),
                ("access-control-allow-methods", ", ".join(methods or _names(asked["access-control-request-method"]))),
                *([("access-control-allow-headers", ", ".join(listed))] if listed else []),
                *([("access-control-allow-credentials", "true")] if policy.credentials else []),
                *([("access-control-max-age", str(policy.max_age))] if policy.max_age is not None else []),
            ]
        pairs.append(("vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"))
        return p.Response(204, Headers(pairs)._flat(), None)

    def preflight_added(self) -> Added:
        """For the answer to a preflight."""
        return Added(list(self._usual))

    def _policy(self, route: int | None) -> CorsPolicy | None:
        number = self._ready.unmatched_cors if route is None else self._ready.routes[route].cors
        return None if number is None else self._ready.cors[number]


def _permitted(policy: CorsPolicy, origin: str | None) -> str | None:
    """The origin as the answer names it; None if it is not permitted."""
    if "*" in policy.origins:
        return "*"
    if origin is None or not any(_is(known, origin) for known in policy.origins):
        return None
    return origin


def _is(known: str, origin: str) -> bool:
    scheme, wild, host = known.partition("*")
    if not wild:
        return known == origin
    name = origin.removeprefix(scheme).removesuffix(host)
    return origin == scheme + name + host and name != "" and all(one.isalnum() or one in "-._" for one in name)


def _permissions(policy: CorsPolicy, origin: str) -> Iterable[tuple[str, str]]:
    yield "access-control-allow-origin", origin
    if policy.credentials:
        yield "access-control-allow-credentials", "true"
    if policy.expose:
        yield "access-control-expose-headers", ", ".join(policy.expose)


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]


def _is_about_content(name: str) -> bool:
    return name in _ABOUT_CONTENT or (name.startswith("content-") and not name.startswith("content-security-policy"))
