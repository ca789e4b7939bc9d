"""Say "ready", and wait for a signal.

Of the words, `deaf` outlives SIGTERM and tells of it, `closed` closes stdin, `mute` stdout.
"""

import os
import signal
import sys

if "deaf" in sys.argv:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
if "closed" in sys.argv:
    os.close(0)
print("ready", flush=True)
if "mute" in sys.argv:
    os.close(1)
while "deaf" in sys.argv:
    signal.sigwait({signal.SIGTERM})
    print("TERM", flush=True)
while True:
    signal.pause()
