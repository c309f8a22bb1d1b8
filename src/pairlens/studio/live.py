"""Live updates: one stream of server-sent events for each browser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

__all__ = ["Hub"]

BEAT_SECONDS = 15.0
MOST_WAITING = 200


class Hub:
    """Hands what happens to all streams; one that does not keep up loses the oldest events, which are superseded."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queues: set[asyncio.Queue[str | None]] = set()
        self._closed = False

    def attach(self) -> None:
        """Say which loop the streams run in."""
        self._loop = asyncio.get_running_loop()

    def publish(self, topic: str, content: Mapping[str, Any]) -> None:
        """Tell all streams; may be called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._put, _event(topic, content))

    def _put(self, text: str | None) -> None:
        for queue in self._queues:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(text)

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        self._put(None)

    async def stream(self, status: Callable[[], Awaitable[Mapping[str, Any]]]) -> AsyncIterator[str]:
        """What one browser reads; a beat now and then shows both sides that the other is there.

        It begins with the status, found when the stream listens already: between the page that was loaded and its
        stream the first map may have been made, and nothing else would tell of it.
        """
        queue: asyncio.Queue[str | None] = asyncio.Queue(MOST_WAITING)
        self._queues.add(queue)
        try:
            yield "retry: 1000\n\n"
            yield _event("status", await status())
            while not self._closed:
                try:
                    text = await asyncio.wait_for(queue.get(), BEAT_SECONDS)
                except TimeoutError:
                    text = ": beat\n\n"
                if text is None:
                    return
                yield text
        finally:
            self._queues.discard(queue)


def _event(topic: str, content: Mapping[str, Any]) -> str:
    return f"event: {topic}\ndata: {json.dumps(dict(content))}\n\n"
