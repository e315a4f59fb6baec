"""The health of the ready queue as JetStream tells it."""

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from horolog.application.health import QueueDepth, QueueHealth
from horolog.infrastructure.nats.connection import connect, disconnect, translated
from horolog.infrastructure.nats.permissions import inbox


class NatsHealth:
    """Looks at the ready queue; connects for each look."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url = url
        self._stream = f"{namespace}_ready"
        self._inbox = inbox(namespace, "auditor")

    async def queue_health(self) -> QueueHealth:
        """Errors: ``QueueUnavailable``."""
        client, jetstream = await connect(self._url, name="horolog doctor", inbox=self._inbox)
        try:
            with translated(f"looking at stream {self._stream}"):
                return await self._look(client, jetstream)
        finally:
            await disconnect(client)

    async def _look(self, client: Client, jetstream: JetStreamContext) -> QueueHealth:
        version = client.connected_server_version
        server = f"{version.major}.{version.minor}.{version.patch}"
        try:
            info = await jetstream.stream_info(self._stream)
        except NotFoundError:
            return QueueHealth(server=server, stream=False)
        consumers = await jetstream.consumers_info(self._stream)
        return QueueHealth(
            server=server,
            stream=True,
            messages=info.state.messages,
            bytes=info.state.bytes,
            max_messages=info.config.max_msgs or 0,
            queues=[
                QueueDepth(
                    queue=consumer.name,
                    waiting=consumer.num_pending or 0,
                    held=consumer.num_ack_pending or 0,
                    redelivered=consumer.num_redelivered or 0,
                    most_held=max(0, consumer.config.max_ack_pending or 0),
                )
                for consumer in consumers
            ],
        )
