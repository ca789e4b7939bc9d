"""Be an MCP server on stdio that answers, and then hears neither the end of its stdin nor SIGTERM.

It writes its pid into the file that it is told.  With the word `apart` it runs in a session of its
own, where no signal to the group that it came from reaches it.
"""

import json
import os
import signal
import sys
from pathlib import Path

signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "apart" in sys.argv:
    os.setsid()
# The file is there when all of it is.
unfinished = Path(f"{sys.argv[1]}.new")
unfinished.write_text(str(os.getpid()))
unfinished.rename(sys.argv[1])

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result: dict[str, object] = {}
    if request["method"] == "initialize":
        result = {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "deaf", "version": "1"},
        }
    elif request["method"] == "tools/list":
        result = {"tools": []}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
while True:
    signal.pause()
