"""Write so many lines of such a size."""

import os
import sys

count, size = map(int, sys.argv[1:])
line = b"x" * (size - 1) + b"\n"
for _ in range(count):
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(1, rest) :]
