"""The way from a host to a server, which a test can spoil: a TCP proxy in a thread of the test.

    open      everything passes
    slow      every piece waits on the way, in both directions
    cut       nobody is connected, and whoever was is cut off
    silent    connections are made, and nothing passes. What was sent meanwhile arrives once the link is open again, as it may in a
              network: after its sender has given up
    deaf      requests arrive and are carried out, and answers are cut off after so many bytes
"""

import asyncio
import socket
import threading
from collections.abc import Coroutine
from typing import Any, Literal, Self

Mode = Literal["open", "slow", "cut", "silent", "deaf"]
PIECE = 1 << 16
SLOW_SECONDS = 0.05
STOP_SECONDS = 10.0


class Link:
    """Passes what comes to a listening socket on to an address. Leaving it as a context manager closes it."""

    def __init__(self, listening: socket.socket, target: tuple[str, int]) -> None:
        self.port: int = listening.getsockname()[1]
        self.mode: Mode = "open"
        self._left = 0
        self._target = target
        self._changed = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"link {self.port}", daemon=True)
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._connected, sock=listening))

    def become(self, mode: Mode, answer_bytes: int = 0) -> None:
        """From now on. `answer_bytes`: how much of each answer still passes when the link is deaf."""
        self._call(self._become(mode, answer_bytes))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_SECONDS)
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(STOP_SECONDS)

    async def _become(self, mode: Mode, answer_bytes: int) -> None:
        self.mode, self._left = mode, answer_bytes
        self._changed.set()
        self._changed = asyncio.Event()
        if mode == "cut":
            for writer in self._writers:
                writer.transport.abort()

    async def _close(self) -> None:
        self._server.close()
        await self._become("cut", 0)
        connections = asyncio.all_tasks() - {asyncio.current_task()}
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.mode == "cut":
            return writer.transport.abort()
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            return writer.transport.abort()
        both = {writer, far_writer}
        self._writers |= both
        try:
            ways = self._pass(reader, far_writer, answer=False), self._pass(far_reader, writer, answer=True)
            await asyncio.gather(*ways)
        finally:
            self._writers -= both
            for one in both:
                one.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: bool) -> None:
        """Until one end closes, which it does for the other too."""
        passed = 0
        try:
            while piece := await reader.read(PIECE):
                await self._delayed()
                lost = answer and self.mode == "deaf" and passed + len(piece) > self._left
                writer.write(piece[: max(0, self._left - passed)] if lost else piece)
                await writer.drain()
                passed += len(piece)
                if lost:
                    break
        except OSError:
            pass
        finally:
            writer.close()

    async def _delayed(self) -> None:
        if self.mode == "slow":
            await asyncio.sleep(SLOW_SECONDS)
        while self.mode == "silent":
            await self._changed.wait()
