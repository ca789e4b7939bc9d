"""End what carries the mark that this very process carries, as do its parent and its child.

With the word `old`, do it as a Python does that was built for systems without pidfds.
"""

import contextlib
import os
import signal
import sys

from claude_trio._process._sweep import end_remains

if "old" in sys.argv:
    del os.pidfd_open
ready, tell = os.pipe()
child = os.fork()
if not child:
    os.write(tell, b".")
    while True:
        signal.pause()
os.read(ready, 1)
print(end_remains(None, f"SWEEP_TEST={os.environ['SWEEP_TEST']}"), flush=True)
# It is reaped already, or to be reaped at once.
with contextlib.suppress(ChildProcessError):
    os.waitpid(child, 0)
print("child ended", flush=True)
