"""The rules for files, as the testing client has them: every case of `protocol/vectors/files.json`, as for the core."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import vectors
from parkade._mappings import Headers
from parkade._requests.request import Request
from parkade._wire import payloads as p
from parkade.testing import _files
from parkade.testing._file_names import ENCODINGS, accepted, content_type, locate
from parkade.testing._request import _raw

FILES = vectors.files()
LENGTH = 10
MODIFIED = 1_000_000_000_000_000_000
NOW = 2_000_000_000
"""In seconds. The other two are those of the file of a case that does not describe it."""


def case_id(case: Any) -> str:
    return str(case.get("name") or case.get("path"))[:60]


@pytest.mark.parametrize("case", FILES["names"], ids=case_id)
def test_a_path_names_the_file_that_its_vector_says(case: dict[str, Any]) -> None:
    found = locate(case["path"], case["depth"], case.get("hidden", False))
    assert (None if found is None else "/".join(found.names)) == case["found"]
    if found is not None:
        assert found.is_folder == case.get("is_folder", False)
        assert case.get("with_slash") in (None, found.with_slash(case.get("query", "")))


@pytest.mark.parametrize(("name", "told"), FILES["types"])
def test_a_name_has_the_type_that_its_vector_says(name: str, told: str) -> None:
    assert content_type(name) == told


@pytest.mark.parametrize("case", FILES["encodings"], ids=lambda case: "; ".join(case["accepts"]))
def test_a_client_gets_the_encodings_that_its_vector_says(case: dict[str, Any]) -> None:
    assert accepted(case["accepts"]) == case["sends"]


@pytest.mark.parametrize("case", FILES["answers"], ids=case_id)
def test_a_file_is_answered_as_its_vector_says(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a file that is there to the answer, with the clock of the case."""
    about = case.get("file", {})
    length, modified = about.get("length", LENGTH), about.get("modified", MODIFIED)
    content = bytes(range(length))
    stored = tmp_path / "a.txt"
    if "encoding" in about:
        stored.write_bytes(b"not compressed")
        os.utime(stored, ns=(modified, modified))
        stored = tmp_path / f"a.txt{ENCODINGS[about['encoding']]}"
    stored.write_bytes(content)
    os.utime(stored, ns=(modified, modified))
    if stored.stat().st_mtime_ns != modified:
        pytest.skip("the file system has no such time")
    monkeypatch.setattr(_files.time, "time_ns", lambda: case.get("now", NOW) * 10**9)
    wait = p.Files(str(tmp_path), "/a.txt", p.FilesOptions(precompressed=about.get("varies", False)))
    told = _files.answer_of_file(wait, request(case.get("method", "GET"), case["fields"]))
    headers = dict(Headers._of_request(told.headers or []).pairs())
    if told.status >= 400:
        headers = {name: value for name, value in headers.items() if name == "content-range"}
    first, count = case.get("part") or (0, 0)
    assert (told.status, headers) == (case["status"], case["headers"])
    if told.status < 400:  # otherwise it is an error's
        assert (told.body or b"") == content[first : first + count]


def request(method: str, fields: list[tuple[str, str]]) -> Request:
    flat = [text for name, value in fields for text in (name, value.encode())]
    head = p.RequestHead(method, "/a.txt", "", _raw(flat), "", "http", "1.1", "id")
    return Request(p.Request(None, [], None, b"", _raw(head)))
