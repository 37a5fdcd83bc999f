"""`parkade.testing.Client` for a test outside the process: a request for each line of JSON, and its answer.

`in_process.py FILE`: the application of that file. `{"encode": options}` gives the body of a request instead, as the
testing client would write it.
"""

import base64
import json
import sys

from parkade._loading import load
from parkade.testing import Client
from parkade.testing._request import body_of


def main(target: str) -> None:
    answers = sys.stdout
    sys.stdout = sys.stderr  # for whatever the application prints
    with Client(load(target)) as client:
        for line in sys.stdin:
            asked = json.loads(line)
            answer = encoded(asked["encode"]) if "encode" in asked else sent(client, **asked)
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


def options_of(given: dict) -> dict:
    files = given.get("files")
    return given | ({"files": {name: tuple(file) for name, file in files.items()}} if files else {})


def encoded(given: dict) -> list:
    options = options_of(given)
    body, content_type = body_of(*(options.get(name) for name in ("json", "data", "content", "files")))
    return [base64.b64encode(body).decode(), content_type]


def sent(client: Client, method: str, path: str, options: dict) -> list:
    client.cookies.clear()
    response = client.request(method, path, **options_of(options))
    if response.parked:
        client.advance(1)
    return [response.status, response.headers.pairs(), base64.b64encode(response.body).decode()]


if __name__ == "__main__":
    main(sys.argv[1])
