"""Read stdin to its end, and say how many bytes came."""

import sys

print(len(sys.stdin.buffer.read()), flush=True)
