"""Be a program that goes away without closing what it opened, as nobody should.

It says the pids of two processes that it started, and ends when a line comes: by an exit of the
interpreter under a run of Trio that never ends.
"""

import os
import queue
import sys
import threading
from collections.abc import Callable

import trio

from claude_trio import spawn

steps = queue.SimpleQueue[Callable[[], object]]()
started = threading.Event()


async def main() -> None:
    async with trio.open_nursery() as nursery:
        transports = [await spawn(sys.argv[1:], os.environ, None, nursery) for _ in range(2)]
        for transport in transports:
            await transport.receive()
        print(*(transport.pid for transport in transports), flush=True)
        started.set()
        await trio.sleep_forever()


trio.lowlevel.start_guest_run(main, run_sync_soon_threadsafe=steps.put, done_callback=print)
while not started.is_set():
    steps.get()()
sys.stdin.readline()
