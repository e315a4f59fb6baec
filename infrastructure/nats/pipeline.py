"""Publishing many messages at once: all are sent, then all answers are waited for.

One inbox for the whole connection, one number for each message. (The client library has such a call
too, but a message that the stream refuses leaves it without an answer until the time-out.)
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, cast

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from horolog.domain.record import record
from horolog.infrastructure.nats.connection import one_line

NO_STREAM = "503"


@record
class Outgoing:
    """A message for a stream; ``message_id`` is what the stream recognises a repetition by,
    ``traceparent`` the span that it is published in."""

    subject: str
    message_id: str
    data: bytes
    traceparent: str | None = None


@record
class Answer:
    """What the stream said: a ``seq`` (perhaps that of a ``duplicate``), an ``error``, or nothing
    at all, where ``unanswered`` says why. ``no_stream``: nothing takes this subject."""

    seq: int = 0
    duplicate: bool = False
    error: str = ""
    too_large: bool = False
    no_stream: bool = False
    unanswered: str = ""


class Pipeline:
    """Over one connection; lives as long as that."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._inbox = client.new_inbox()
        self._waiting: dict[str, asyncio.Future[Answer]] = {}
        self._number = 0
        self._subscribed = False

    async def publish(self, messages: Sequence[Outgoing], timeout_s: float) -> list[Answer]:
        """The answers in the order of the messages, after at most ``timeout_s``."""
        if not self._subscribed:
            await self._client.subscribe(f"{self._inbox}.*", cb=self._answered)  # pyright: ignore[reportUnknownMemberType]
            self._subscribed = True
        futures = [await self._send(message) for message in messages]
        open_ = [future for future in futures if not future.done()]
        if open_:
            await asyncio.wait(open_, timeout=timeout_s)
        answers: list[Answer] = []
        for future in futures:
            if future.done():
                answers.append(future.result())
            else:
                future.cancel()
                answers.append(Answer(unanswered=f"no answer within {timeout_s:g} s"))
        return answers

    async def _send(self, message: Outgoing) -> "asyncio.Future[Answer]":
        self._number += 1
        token = f"{self._inbox}.{self._number}"
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[token] = future
        future.add_done_callback(lambda _: self._waiting.pop(token, None))
        try:
            await self._client.publish(
                message.subject,
                message.data,
                reply=token,
                headers=_headers(message),
            )
        except nats.errors.MaxPayloadError as error:
            future.set_result(Answer(error=one_line(error), too_large=True))
        except (nats.errors.Error, OSError) as error:
            if not future.done():
                future.set_result(Answer(unanswered=one_line(error)))
        return future

    async def _answered(self, message: Msg) -> None:
        future = self._waiting.get(message.subject)
        if future is not None and not future.done():
            future.set_result(_answer(message))


def _headers(message: Outgoing) -> dict[str, str]:
    headers = {"Nats-Msg-Id": message.message_id}
    if message.traceparent is not None:
        headers["traceparent"] = message.traceparent
    return headers


def _answer(message: Msg) -> Answer:
    headers = message.headers or {}
    if headers.get("Status") == NO_STREAM:
        return Answer(error="the stream is not there", no_stream=True)
    try:
        said = cast("dict[str, Any]", json.loads(message.data))
        if error := said.get("error"):
            return Answer(error=str(error.get("description", error)))
        return Answer(int(said["seq"]), bool(said.get("duplicate", False)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Answer(unanswered=f"not an answer of JetStream: {one_line(error)}")
