"""A connection ends without an error, whatever has become of the server."""

import asyncio

from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.nats.connection import connect, disconnect


async def test_what_is_left_to_say_to_a_server_that_is_gone_does_not_keep_us(
    own_servers: EmbeddedServers,
) -> None:
    found = own_servers.find()
    assert found is not None
    client, _ = await connect(found.nats_url)
    subscription = await client.subscribe("some.where")  # pyright: ignore[reportUnknownMemberType]
    await asyncio.to_thread(own_servers.kill_nats)
    async with asyncio.timeout(10):
        while not client.is_reconnecting:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)
    await client.publish("some.where", b"last words")
    await disconnect(client)
    assert client.is_closed
    assert subscription._closed or not client._subs  # pyright: ignore[reportPrivateUsage]
    await disconnect(client)
