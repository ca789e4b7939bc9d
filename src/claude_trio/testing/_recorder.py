"""Record the wire of one CLI, both directions, without its secrets.

A recording is made at the seam between a session and its CLI, where a `Launcher` stands: there the
command line and the first line are seen, and the session need not know.  What comes is written
before the host gets it, and what the host writes as soon as the CLI has it, so whatever the host
says stands behind all that it has heard.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVarTuple, final

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from claude_trio._ndjson import object_or_empty
from claude_trio._process import spawn
from claude_trio.testing._redact import Redactor
from claude_trio.testing._streamed import Held, Streamed
from claude_trio.testing._wire_log import parse_line, row_of_line, to_text

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike

    from claude_trio._transport import Launcher, Transport
    from claude_trio.testing._redact import Redact

__all__ = ["Recorder", "recording"]

_Arguments = TypeVarTuple("_Arguments")

_ENDS: Final = {"stdin_closed": "in", "stdout_eof": "out"}
_CLI_VARIABLES: Final = ("ANTHROPIC", "CLAUDE")
# What the header has gained when the CLI is gone: its version, and how it exited.
_ROOM: Final = 64


@contextmanager
def recording(
    path: str | PathLike[str], *, launch: Launcher = spawn, redact: Redact | None = None
) -> Iterator[Recorder]:
    """Record the wire of one CLI into a file, which `replay` plays.

    ``open_session(launch=recorder.launch)`` within the block records that session.  A file that
    is there is replaced.  What was recorded is in the file at once, and can be read if the program
    crashes; only while the model streams a block are its lines held back, since a secret may come
    in pieces.  If writing fails, or ``redact`` does, the session is not disturbed: the recording
    stops, and the error leaves the block.

    These do not reach the file, wherever they stand, also in JSON within a string, in keys and in
    lines that are no JSON: the values of variables of the CLI and of this process whose names
    speak of a key, token, secret, password, credential, authorization, cookie or headers, if they
    have at least 8 characters; what is called by such a name in JSON, ``name=value``,
    ``name: value`` or ``--name value``; bearer tokens; user and password in a URL; keys and tokens
    of Anthropic, OpenAI, GitHub, GitLab, Slack, AWS, Google, Stripe, npm, PyPI and Hugging Face,
    JSON web tokens and private keys, by their shapes; home directories, which become
    ``/home/user``.

    Args:
      path: The file; only its owner can read it.
      launch: Starts the CLI that is recorded: a process, or a fake.
      redact: Takes more out of each string; what it gives it must leave alone.  `replay` has to
        be given the same.

    Raises:
      OSError: if the file cannot be written.
      BlockingIOError: if the file is being recorded to.
      RuntimeError: at the end of the block, if no CLI was started in it.
    """
    recorder = Recorder(Path(path), launch, redact)
    try:
        yield recorder
    except BaseException as exc:  # Whatever ends the block, the file is closed.
        if (failure := recorder.close()) is not None:
            exc.add_note(f"besides, the recording {path} stopped: {failure!r}")
        raise
    if (failure := recorder.close()) is not None:
        failure.add_note(f"the recording {path} stops here")
        raise failure
    if not recorder.begun:
        raise RuntimeError(f"nothing was recorded in {path}: no CLI was started by its launcher")


@final
@attrs.define(eq=False)
class Recorder:
    """Writes a recording; `recording` gives one.

    A program that starts the CLI by other means tells it what happens: `begin` first, then
    `host_wrote`, `cli_wrote` and `happened` in their order, and `ended` last.

    Attributes:
      begun: Whether a CLI was started.
    """

    _path: Path
    _launch: Launcher
    _redact: Redact | None
    _fd: int = attrs.field(init=False)
    _redactor: Redactor = attrs.field(init=False)
    _streamed: Streamed = attrs.field(init=False)
    _header: dict[str, object] = attrs.field(factory=dict, init=False)
    _room: int = attrs.field(default=0, init=False)
    """How long the header's line may be."""
    _pieces: dict[str, list[bytes]] = attrs.field(factory=dict, init=False)
    """What is there of a line that has no end yet."""
    _started: float = attrs.field(default=0, init=False)
    _failure: Exception | None = attrs.field(default=None, init=False)
    _over: bool = attrs.field(default=False, init=False)
    begun: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Two who write to one file would destroy both recordings.
            if sys.platform != "win32":
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._fd, 0)
        except BaseException:  # Nobody else knows the descriptor.
            os.close(self._fd)
            raise

    async def launch(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        nursery: trio.Nursery,
        /,
    ) -> Transport:
        """Start the CLI, and record it; a `Launcher`.

        Raises:
          RuntimeError: if one was started before: a recording is of one process.
        """
        self.begin(argv, env)
        return _Recorded(self, await self._launch(argv, env, cwd, nursery))

    def begin(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Note the command line of a CLI that is about to start, and its whole environment.

        Raises:
          RuntimeError: if one was started before.
        """
        if self.begun:
            raise RuntimeError("a recording is of one process, and that was started before")
        self.begun, self._started = True, trio.current_time()
        self._redactor = Redactor(env, self._redact)
        self._streamed = Streamed(self._redactor.text)
        self._try(self._write_header, argv, env)

    def host_wrote(self, data: bytes) -> None:
        """Note bytes of stdin."""
        self._try(self._take, "in", data)

    def cli_wrote(self, data: bytes) -> None:
        """Note bytes of stdout."""
        self._try(self._take, "out", data)

    def happened(self, event: str, **more: object) -> None:
        """Note what is no line: ``stdin_closed``, ``stdout_eof``, or ``signal`` with its name."""
        self._try(self._happened, {"event": event, **more})

    def ended(self, code: int, stderr: str) -> None:
        """Note the exit, negative for a signal, and the last text of stderr; again does nothing."""
        self._try(self._end, code, stderr)
        self._over = True

    def close(self) -> Exception | None:
        """Close the file; return what went wrong with it, if anything did."""
        if self.begun:
            self._try(self._flush)
        self._over = True
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        return self._failure

    def _try(self, act: Callable[[*_Arguments], None], *arguments: *_Arguments) -> None:
        # Whatever becomes of the recording, the session goes on.
        if self._failure is None and not self._over:
            try:
                act(*arguments)
            except Exception as exc:  # noqa: BLE001  Whoever opened the recording gets it.
                self._failure = exc

    def _write_header(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        told = {
            name: value
            for name, value in env.items()
            if name.startswith(_CLI_VARIABLES) or os.environ.get(name) != value
        }
        self._header = {
            "scenario": self._path.stem,
            "cli_version": None,
            "argv": self._redactor.arguments(argv),
            "env": self._redactor.variables(told),
            "exit": None,
        }
        line = json.dumps(self._header)
        self._room = len(line) + _ROOM
        self._write(line.ljust(self._room))

    def _take(self, way: str, data: bytes) -> None:
        pieces = self._pieces.setdefault(way, [])
        pieces.append(data)
        if b"\n" in data:
            *lines, rest = b"".join(pieces).split(b"\n")
            pieces[:] = [rest] if rest else []
            for line in lines:
                self._line(way, line)

    def _line(self, way: str, line: bytes, *, cut: bool = False) -> None:
        text = to_text(line)
        frame = parse_line(text)
        changed = self._redactor.text(text) if frame is None else self._redactor.value(frame)
        if way == "out" and frame is not None and self._header["cli_version"] is None:
            self._header["cli_version"] = _version(frame)
        self._note(Held(way, trio.current_time(), changed, frame=frame, line=line, cut=cut))

    def _note(self, held: Held) -> None:
        for ready in self._streamed.add(held):
            self._write_row(ready)

    def _write_row(self, held: Held) -> None:
        row: dict[str, object] = {"t": round(held.t - self._started, 4), "dir": held.way}
        if held.way in {"in", "out"}:
            row |= row_of_line(held.line, held.frame, held.changed)
        else:
            row["frame"] = held.changed
        if held.cut:
            row["cut"] = True
        self._write(json.dumps(row))

    def _happened(self, frame: dict[str, object]) -> None:
        self._end_line(_ENDS.get(str(frame["event"]), ""))
        self._note(Held("ctl", trio.current_time(), frame))

    def _end_line(self, way: str) -> None:
        if rest := b"".join(self._pieces.pop(way, ())):
            self._line(way, rest, cut=True)

    def _flush(self) -> None:
        for way in ("in", "out"):
            self._end_line(way)
        for held in self._streamed.flush():
            self._write_row(held)

    def _end(self, code: int, stderr: str) -> None:
        self._flush()
        now = trio.current_time()
        told = self._redactor.text(stderr).removesuffix("\n")
        for line in told.split("\n") if told else ():
            self._write_row(Held("err", now, line))
        self._write_row(Held("ctl", now, {"event": "exit", "code": code}))
        line = json.dumps({**self._header, "exit": code})
        if len(line) <= self._room:
            os.pwrite(self._fd, line.ljust(self._room).encode(), 0)

    def _write(self, line: str) -> None:
        data = line.encode() + b"\n"
        while data:
            data = data[os.write(self._fd, data) :]


def _version(frame: Mapping[str, object]) -> object:
    answer = object_or_empty(object_or_empty(frame.get("response")).get("response"))
    return frame.get("claude_code_version") or answer.get("claude_code_version")


@final
@attrs.define(eq=False)
class _Recorded:
    """The transport of a CLI that is recorded."""

    _recorder: Recorder
    _inner: Transport
    _at_eof: bool = attrs.field(default=False, init=False)
    _code: int | None = attrs.field(default=None, init=False)
    _stdin_closed: bool = attrs.field(default=False, init=False)

    @property
    def pid(self) -> int | None:
        return self._inner.pid

    @property
    def stderr_tail(self) -> str:
        return self._inner.stderr_tail

    @enable_ki_protection
    async def receive(self) -> bytes:
        return self._came(await self._inner.receive())

    @enable_ki_protection
    def receive_nowait(self) -> bytes:
        return self._came(self._inner.receive_nowait())

    @enable_ki_protection
    def send_nowait(self, data: bytes) -> int:
        taken = self._inner.send_nowait(data)
        self._recorder.host_wrote(data[:taken])
        return taken

    async def wait_writable(self) -> None:
        await self._inner.wait_writable()

    @enable_ki_protection
    def close_stdin(self) -> None:
        self._inner.close_stdin()
        if not self._stdin_closed:
            self._stdin_closed = True
            self._recorder.happened("stdin_closed")

    @enable_ki_protection
    def terminate(self) -> None:
        self._inner.terminate()
        self._signalled(signal.SIGTERM)

    @enable_ki_protection
    def kill(self) -> None:
        self._inner.kill()
        self._signalled(signal.SIGKILL)

    async def wait_exit(self) -> int:
        self._code = await self._inner.wait_exit()
        if self._at_eof:
            self._end()
        return self._code

    async def aclose(self, *, sweep: bool | None) -> bool:
        try:
            return await self._inner.aclose(sweep=sweep)
        finally:
            self._end()

    def _came(self, data: bytes) -> bytes:
        if data:
            self._recorder.cli_wrote(data)
        elif not self._at_eof:
            self._at_eof = True
            self._recorder.happened("stdout_eof")
            if self._code is not None:
                self._end()
        return data

    def _signalled(self, number: signal.Signals) -> None:
        if self._code is None:
            self._recorder.happened("signal", signal=number.name)

    def _end(self) -> None:
        # Exit is not EOF: what was written before the exit may be read after it.
        if self._code is not None:
            self._recorder.ended(self._code, self._inner.stderr_tail)
