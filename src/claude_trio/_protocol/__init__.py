"""The protocol without I/O: what a session means, apart from how its bytes travel.

Theory of operation
===================

Bytes go in and events come out; requests go in and bytes come out.  There is no clock here, no
callback and no logging: times are inputs, ids come from a counter, and the same input gives the
same output, so that a recording replays exactly.

`_connection` is the front.  It cuts what was read into lines, leaves the frames of the
conversation undecoded, and decodes what changes state:

* control frames go to `_control`, which ties each answer to its request, in both directions;
* results, the lifecycle of prompts, the session's state and the frames of tasks go to `_gate`.

A turn of ours is more than a turn of the CLI.  The `_ledger` says which result answers which
prompt, `_tasks` which agents still run and whose they are, and `_gate` puts both together: its
`verdict` is the one rule by which a turn is open, held or over.  `_turns` is the table of moves
that a session may make, `_steering` decides who may add to a running turn, and `_outcome` reads
what a result means.

What only time decides (a follow-up that does not begin, work that is never heard of again) waits
for `Connection.tick`, which is due at `Connection.deadline`.

Classes are written out here where they would be attrs classes elsewhere.  Some of them are made
for each read, and a plain constructor is the fastest; and to define one costs what a line of code
costs, where attrs takes a third of a millisecond, which every program would pay when it starts.
"""

from __future__ import annotations

__all__: list[str] = []
