"""Fill stderr with many megabytes, text and not, and end it in the middle of a line."""

import os
import sys

line = "ä".encode() * 500 + b"\xff\n"
for _ in range(int(sys.argv[1]) * 1_000_000 // len(line)):
    os.write(2, line)
os.write(2, b"the end")
print("done", flush=True)
sys.stdin.read()
