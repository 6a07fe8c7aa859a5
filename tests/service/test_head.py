"""HEAD is answered as GET, and no body is made for it."""

import asyncio

from starlette.types import Message, Receive, Scope, Send

from service.head import HeadMiddleware

REQUEST = {"type": "http", "method": "HEAD"}


def test_what_makes_the_body_is_stopped_at_its_first_piece() -> None:
    made: list[int] = []
    sent: list[Message] = []

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(100):
            made.append(number)
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            await asyncio.sleep(0)

    async def receive() -> Message:
        raise AssertionError("HEAD has no body to be read")

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(HeadMiddleware(endless)(REQUEST, receive, send))
    assert made == [0]
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert (sent[1]["body"], sent[1]["more_body"]) == (b"", False)
