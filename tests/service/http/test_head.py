"""HEAD is answered as GET, and no body is made for it."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.head import HeadMiddleware

REQUEST = {"type": "http", "method": "HEAD"}


async def receive() -> Message:
    raise AssertionError("HEAD has no body to be read")


def answer_of(app: ASGIApp) -> list[Message]:
    """Return all messages of the answer to a HEAD."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(HeadMiddleware(app)(REQUEST, receive, send))
    return sent


def test_a_body_that_is_there_in_pieces_is_ended_once() -> None:
    async def in_pieces(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    messages = answer_of(in_pieces)
    assert [message["type"] for message in messages] == [
        "http.response.start",
        "http.response.body",
    ]


def test_what_makes_the_body_is_stopped_at_its_first_piece() -> None:
    made: list[int] = []

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(100):
            made.append(number)
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            await asyncio.sleep(0)

    sent = answer_of(endless)
    assert made == [0]
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert (sent[1]["body"], sent[1]["more_body"]) == (b"", False)
