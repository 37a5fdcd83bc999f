"""Messages of WebSockets of many sizes, cut in many ways: into fragments, on the wire, and compressed. The cases are
those of sections 9, 10, 12 and 13 of Autobahn, which `autobahn.py` runs as a whole, as far as they fit into the limit.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator

import pytest

from .conftest import Serve
from .harness.server import Server
from .harness.websocket import BINARY, CONTINUED, TEXT, Opener, WebSocket, frame
from .harness.websocket_window import FAR_REPEATS, Receiver

MESSAGE_MAX = 1_048_576
SIZES = [0, 1, 125, 126, 127, 1_000, 4_096, 65_535, 65_536, 131_072]

OFFERS = [
    "permessage-deflate",
    "permessage-deflate; client_max_window_bits",
    "permessage-deflate; client_max_window_bits=9; server_max_window_bits=15",
    "permessage-deflate; client_no_context_takeover",
    "permessage-deflate; server_no_context_takeover",
    "permessage-deflate; client_no_context_takeover; server_no_context_takeover",
    "permessage-deflate; server_max_window_bits=8, permessage-deflate",
]


@pytest.fixture(scope="module", params=["sockets_asgi", "sockets_native"])
def shared(request: pytest.FixtureRequest, serve_for_all: Serve) -> Server:
    return serve_for_all(request.param, workers=1)


@pytest.fixture(scope="module", params=["message", "context"])
def compressing(request: pytest.FixtureRequest, serve_for_all: Serve) -> Server:
    """Compresses each message by itself, or with a memory of earlier ones."""
    return serve_for_all("sockets_asgi", workers=1, websocket_compression=request.param)


def _text(size: int) -> str:
    """So many bytes, or a few less: some characters have several."""
    words = random.Random(size).choices(["again ", "J\u00fcrgen ", "\U0001f600 ", "x"], k=size)
    return "".join(words).encode()[:size].decode(errors="ignore")


def _pieces(data: bytes, size: int) -> Iterator[bytes]:
    yield from (data[start : start + size] for start in range(0, len(data), size))


def _frames(kind: int, payload: bytes, fragment: int, reserved: int = 0) -> list[bytes]:
    """A message in fragments of that size. Only the first has a kind, and the bit of compression."""
    pieces = list(_pieces(payload, fragment)) or [b""]
    first, last = 0, len(pieces) - 1
    return [
        frame(
            kind if number == first else CONTINUED, piece, number == last, reserved=reserved if number == first else 0
        )
        for number, piece in enumerate(pieces)
    ]


def _comes_back(client: WebSocket, message: str | bytes, fragment: int) -> None:
    kind, payload = (TEXT, message.encode()) if isinstance(message, str) else (BINARY, message)
    assert client.raw(*_frames(kind, payload, fragment)).receive() == message


@pytest.mark.parametrize("fragment", [64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, MESSAGE_MAX])
def test_a_message_comes_back_whatever_the_size_of_its_fragments(server: Server, fragment: int, opened: Opener) -> None:
    client = opened(server, "/echo")
    size = min(MESSAGE_MAX, fragment * 2_048)
    _comes_back(client, random.Random(size).randbytes(size), fragment)
    _comes_back(client, _text(size), fragment)
    assert client.close()[0] == 1000


@pytest.mark.parametrize("piece", [1, 2, 7, 64, 512, 2_048, 16_384])
def test_a_message_comes_back_wherever_it_is_cut_on_the_wire(server: Server, piece: int, opened: Opener) -> None:
    client = opened(server, "/echo")
    size = min(65_536, piece * 500)
    for kind, payload in ((BINARY, random.Random(size).randbytes(size)), (TEXT, _text(size).encode())):
        for part in _pieces(b"".join(_frames(kind, payload, size // 3)), piece):
            client.raw(part)
        message = client.receive()
        assert (message.encode() if isinstance(message, str) else message) == payload
    assert client.close()[0] == 1000


def test_many_messages_of_each_size_come_back_in_their_order(server: Server, opened: Opener) -> None:
    client = opened(server, "/echo")
    for size in SIZES:
        messages = [random.Random(number).randbytes(size) for number in range(20)]
        # As many together as there is room for at both ends.
        for start in range(0, 20, group := max(1, min(20, 131_072 // max(size, 1)))):
            together = messages[start : start + group]
            client.raw(*[frame(BINARY, message) for message in together])
            assert [client.receive() for _ in together] == together
    assert client.close()[0] == 1000


@pytest.mark.parametrize("offer", OFFERS, ids=lambda offer: offer.removeprefix("permessage-deflate; "))
def test_compressed_messages_of_each_size_come_back(compressing: Server, offer: str, opened: Opener) -> None:
    client = opened(compressing, "/echo", f"Sec-WebSocket-Extensions: {offer}")
    squeezed = _Compressor(client.opening["sec-websocket-extensions"])
    for size in SIZES:
        for message in (_text(size), random.Random(size).randbytes(size), bytes(size)):
            kind, payload = (TEXT, message.encode()) if isinstance(message, str) else (BINARY, message)
            for fragment in (MESSAGE_MAX, 1_000):
                client.raw(*_frames(kind, squeezed(payload), fragment, reserved=4))
                assert client.receive() == message
    assert client.close()[0] == 1000


@pytest.mark.parametrize("bits", range(9, 16))
def test_a_client_may_compress_with_a_window_of_any_size(compressing: Server, bits: int, opened: Opener) -> None:
    client = opened(compressing, "/echo", "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits")
    squeezed = _Compressor(client.opening["sec-websocket-extensions"], bits)
    for size in (100, 10_000, 100_000):
        text = _text(size)
        for _ in range(3):
            assert client.raw(*_frames(TEXT, squeezed(text.encode()), 5_000, reserved=4)).receive() == text
    assert client.close()[0] == 1000


@pytest.mark.parametrize("bits", range(9, 16))
def test_a_client_gets_messages_that_fit_the_window_it_asks_for(compressing: Server, bits: int, opened: Opener) -> None:
    asked = f"server_max_window_bits={bits}"
    client = opened(compressing, "/echo", f"Sec-WebSocket-Extensions: permessage-deflate; {asked}")
    agreed = client.opening["sec-websocket-extensions"]
    assert asked in agreed
    receiver = Receiver(agreed, bits)
    for message in FAR_REPEATS:
        client.raw(*_frames(BINARY, message, MESSAGE_MAX))
        assert receiver.next(client) == message
    assert client.close()[0] == 1000


def test_a_receiver_notices_what_does_not_fit_its_window(opened: Opener, compressing: Server) -> None:
    client = opened(compressing, "/echo", "Sec-WebSocket-Extensions: permessage-deflate")
    client.raw(*_frames(BINARY, FAR_REPEATS[0], MESSAGE_MAX))
    with pytest.raises(zlib.error, match="too far back"):
        Receiver("", 9).next(client)


class _Compressor:
    """By hand: the compressor of wsproto chooses its window itself."""

    def __init__(self, agreed: str, bits: int = 15) -> None:
        self._forgets, self._bits = "client_no_context_takeover" in agreed, bits
        self._squeezed = zlib.compressobj(wbits=-bits)

    def __call__(self, payload: bytes) -> bytes:
        if self._forgets:
            self._squeezed = zlib.compressobj(wbits=-self._bits)
        data = self._squeezed.compress(payload) + self._squeezed.flush(zlib.Z_SYNC_FLUSH)
        return data.removesuffix(b"\0\0\xff\xff")
