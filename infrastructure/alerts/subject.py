"""A subject of NATS: the notice as JSON, to whoever subscribes just now."""

import json
from collections.abc import Mapping
from typing import Any

import nats.errors
from nats.aio.client import Client

from horolog.application.alerting.ports import NotDelivered
from horolog.domain.errors import QueueUnavailable
from horolog.infrastructure.nats.connection import connect, disconnect, one_line
from horolog.infrastructure.nats.permissions import inbox


class NatsSubjects:
    """Publishes on a connection of its own, made at the first notice."""

    def __init__(self, url: str | None, namespace: str) -> None:
        self._url = url
        self._inbox = inbox(namespace, "scanner")
        self._client: Client | None = None

    async def publish(self, subject: str, notice: Mapping[str, Any]) -> None:
        """Returns when the server has it. Raises ``NotDelivered``."""
        if self._url is None:
            raise NotDelivered("there is no NATS to publish to")
        try:
            if self._client is None or self._client.is_closed:
                self._client, _ = await connect(self._url, name="horolog-alerts", inbox=self._inbox)
            await self._client.publish(subject, json.dumps(notice).encode())
            await self._client.flush()
        except (QueueUnavailable, nats.errors.Error, OSError, TimeoutError) as error:
            raise NotDelivered(one_line(error)) from error

    async def close(self) -> None:
        if self._client is not None:
            await disconnect(self._client)
