"""Who listens to the news of a store in a test, and waits for so much of it."""

import asyncio

from horolog.application.scanner.news import News, read_news


class Ear:
    def __init__(self) -> None:
        self.heard: list[News] = []
        self.begun = 0
        self.changed = asyncio.Event()

    def hear(self, payload: str) -> None:
        self.heard += list(read_news(payload))
        self.changed.set()

    def connected(self) -> None:
        self.begun += 1
        self.changed.set()

    async def until(self, heard: int = 0, begun: int = 0) -> None:
        async with asyncio.timeout(10):
            while len(self.heard) < heard or self.begun < begun:
                self.changed.clear()
                await self.changed.wait()
