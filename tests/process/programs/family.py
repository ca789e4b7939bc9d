"""Start a child of one's own, say its pid, and stay until stdin ends, or leave at once.

The words say what the child does: `setsid` has a session of its own, `deaf` outlives SIGTERM,
`holds` keeps all pipes open, `nested` belongs to a nested run.
"""

import os
import signal
import sys

words = sys.argv[1:]
ready, tell = os.pipe()
child = os.fork()
if not child:
    if "setsid" in words:
        os.setsid()
    if "deaf" in words:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "holds" not in words:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
    if "nested" in words:
        os.environ["CLAUDE_TRIO_RUN"] += ":inner"
    # Through an exec, so that the environment of the process is the one of `os.environ`.
    os.set_inheritable(tell, True)
    waits = f"import os, signal; os.write({tell}, b'.'); os.close({tell})\nwhile 1: signal.pause()"
    os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", waits])
os.close(tell)
os.read(ready, 1)
print(child, flush=True)
if "leaves" not in words:
    sys.stdin.read()
