"""Say something, and exit with a code, or by a signal if it is negative."""

import os
import sys

code = int(sys.argv[1])
sys.stdout.write("x" * int(sys.argv[2]))
sys.stdout.flush()
if code < 0:
    os.kill(os.getpid(), -code)
sys.stderr.write("last words")
sys.stderr.flush()
os._exit(code)
