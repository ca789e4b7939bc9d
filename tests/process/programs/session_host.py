"""Hold a session open, and say the pid of its CLI.

Arguments: the CLI, its working directory, the changes of its environment as JSON, and what to do:
`prompt` waits for an answer, `turn` reads one, `idle` says so after one and does nothing more.
"""

import json
import sys

import trio

from claude_trio import SessionOptions, Timeouts, open_session

cli, cwd, env, what = sys.argv[1:]


async def main() -> None:
    options = SessionOptions(command=[cli], cwd=cwd, env=json.loads(env))
    # Whoever started this does not wait for a CLI that does not go when its stdin ends.
    async with open_session(None, options, timeouts=Timeouts(eof=600)) as session:
        print(session.server_info["pid"], flush=True)
        if what == "prompt":
            await session.prompt("slow")
        elif what == "turn":
            async with session.turn("slow") as turn:
                async for _ in turn:
                    pass
        else:
            await session.prompt("quick")
            print("idle", flush=True)
            await trio.sleep_forever()


trio.run(main)
