"""Path patterns against the protocol's own cases, so that core and worker agree."""

from __future__ import annotations

from typing import Any

import pytest

import vectors
from parkade._routing.patterns import RouteTable, parse
from parkade.errors import SignatureError

CASES = [
    pytest.param(case["routes"], request, id=f"{case['name']}: {request['method']} {request['path']}")
    for case in vectors.routes()["cases"]
    for request in case["requests"]
]


@pytest.mark.parametrize(("routes", "request_"), CASES)
def test_a_path_takes_the_route_that_its_vector_says(routes: list[dict[str, Any]], request_: dict[str, Any]) -> None:
    router = RouteTable((route["methods"], parse(route["path"])) for route in routes)
    found = router.match(request_["method"], request_["path"])
    allowed = router.allowed(request_["path"]) if found is None else []
    expected = request_.get("match")
    assert (found and {"route": found.route, "parameters": list(found.parameters)}) == expected
    assert allowed == request_.get("allow", [])


@pytest.mark.parametrize(
    "path", [refused["path"] for refused in vectors.routes()["refused"]] + ["/a{b}", "/{b}c", "/{b"]
)
def test_a_malformed_pattern_is_refused(path: str) -> None:
    with pytest.raises(SignatureError):
        parse(path)


@pytest.mark.parametrize(
    ("pattern", "values", "path"),
    [
        ("/hola/{name}", {"name": "a/b ü"}, "/hola/a%2Fb%20%C3%BC"),
        ("/n/{n:int}", {"n": 7}, "/n/7"),
        ("/files/{rest:path}", {"rest": "a/b c"}, "/files/a/b%20c"),
    ],
)
def test_a_pattern_is_filled_with_encoded_values(pattern: str, values: dict[str, object], path: str) -> None:
    assert parse(pattern).fill(values) == path
