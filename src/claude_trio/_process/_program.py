"""Find the program that a bare name means, and say why one did not start.

One error number has many causes: ENOENT is a missing program, a missing working directory or a
missing interpreter.  So the system tries first, and after a failure the file system is asked what
it meant.

Everything here looks at the file system, which may be slow: it belongs into a worker thread.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from claude_trio._errors import CLINotFound, LaunchFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["explain", "find", "places"]

_CLI: Final = "claude"
_CHOICE: Final = "CLAUDE_CLI_PATH"

# Where installers put the CLI without putting it on PATH, in the order of the official SDKs.
_USUAL: Final = (
    "~/.npm-global/bin/claude",
    "/usr/local/bin/claude",
    "~/.local/bin/claude",
    "~/node_modules/.bin/claude",
    "~/.yarn/bin/claude",
    "~/.claude/local/claude",
)
_ADVICE: Final = (
    "Install Claude Code, or say where it is: in CLAUDE_CLI_PATH, or as the command of the session."
)


def places(name: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """List the paths that ``name`` may mean for a process with this environment, in order.

    Relative entries of PATH do not count: what they mean depends on the working directory, and a
    project must not bring its own ``claude``.
    """
    # In text, since a `Path` for each entry costs more than a look at it.
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    found = [f"{folder.rstrip('/')}/{name}" for folder in folders if folder.startswith("/")]
    if name == _CLI:
        # A session may have a home of its own, such as a scratch folder: the CLI is in the user's.
        for home in (env.get("HOME", ""), os.environ.get("HOME", "")):
            here = home.startswith("/")
            found += [place.replace("~", home) for place in _USUAL if here or place[0] == "/"]
    return tuple(dict.fromkeys(found))


def find(name: str, env: Mapping[str, str], cwd: str | None) -> str:
    """Find the path of the program called ``name``.

    Raises:
      CLINotFound: if there is none.
      LaunchFailed: if there is one that may not be executed, or no directory to start it in.
    """
    # First, since without it the place of the program does not matter.
    if (trouble := check_directory(cwd)) is not None:
        raise trouble
    if name == _CLI and (choice := env.get(_CHOICE)):
        return _chosen(choice)
    looked = places(name, env)
    for place in looked:
        if os.access(place, os.X_OK) and Path(place).is_file():
            return place
    for place in looked:
        if os.access(place, os.F_OK) and Path(place).is_file():
            raise LaunchFailed(f"{place} is not executable")
    raise _not_found(name, looked)


def _chosen(choice: str) -> str:
    path = str(Path(choice).absolute())
    if not os.path.lexists(path):
        # Whoever made a choice does not want another `claude` in its place.
        raise CLINotFound(f"{_CHOICE} says {choice}, which does not exist", looked=(path,))
    return path


def _not_found(name: str, looked: tuple[str, ...]) -> CLINotFound:
    listed = "".join(f"\n  {place}" for place in looked) or "\n  (PATH is empty)"
    advice = f"\n{_ADVICE}" if name == _CLI else ""
    return CLINotFound(f"there is no program {name!r}; looked at:{listed}{advice}", looked=looked)


# -- why it did not start

# The kernel reads no more of the first line of a script (binfmt_script.c, BINPRM_BUF_SIZE).
_SHEBANG_SIZE: Final = 256
_FLAG: Final = re.compile(r"--?[a-z][a-z-]{0,60}", re.ASCII)

_NO_DIRECTORY: Final = {
    errno.ENOENT: "does not exist",
    errno.ENOTDIR: "is not a directory",
    errno.EACCES: "may not be entered (permission denied)",
}
_EXHAUSTED: Final = {
    errno.EAGAIN: "this user has too many processes (see `ulimit -u`)",
    errno.EMFILE: "this process has too many open files (see `ulimit -n`)",
    errno.ENFILE: "the system has too many open files",
    errno.ENOMEM: "there is not enough memory",
}


def explain(
    error: OSError | ValueError,
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
) -> CLINotFound | LaunchFailed:
    """Make the error to raise when starting ``argv`` ended in ``error``."""
    if (trouble := check_directory(cwd)) is not None:
        return trouble
    program = Path(cwd or "", argv[0])
    if isinstance(error, OSError) and error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
        return _explain_missing(program)
    return LaunchFailed(_explain_failed(error, program, argv, env))


def check_directory(cwd: str | None) -> LaunchFailed | None:
    """Make the error to raise if no process can start in ``cwd``; None if one can."""
    if cwd is None:
        return None
    try:
        os.stat(cwd)  # noqa: PTH116 (an empty path is none, to `Path` it is a dot)
        # A directory that may not be entered can be looked at from outside.
        os.stat(os.path.join(cwd, "."))  # noqa: PTH116, PTH118 (`Path` drops the dot)
    except OSError as exc:
        reason = _NO_DIRECTORY.get(exc.errno or 0, f"cannot be entered: {exc.strerror}")
    except ValueError as exc:
        reason = f"cannot be entered: {exc}"
    else:
        return None
    return LaunchFailed(f"the working directory {cwd!r} {reason}")


def _explain_failed(
    error: OSError | ValueError, program: Path, argv: Sequence[str], env: Mapping[str, str]
) -> str:
    if not isinstance(error, OSError):
        # An embedded NUL, or text that no encoding of the system has.
        return f"cannot pass the command line or environment on: {error}"
    match error.errno:
        case errno.EACCES:
            return _explain_denied(program)
        case errno.ENOEXEC:
            return (
                f"{program} is not a program for this machine (exec format error): it is built for"
                " another processor, empty, or a script without a #! line"
            )
        case errno.E2BIG:
            return _explain_size(argv, env)
        case _:
            reason = _EXHAUSTED.get(error.errno or 0, error.strerror or str(error))
            return f"cannot start {program}: {reason}"


def _explain_missing(program: Path) -> CLINotFound | LaunchFailed:
    if not os.path.lexists(program):
        return CLINotFound(f"there is no program {program}", looked=(str(program),))
    if not os.path.exists(program):  # noqa: PTH110 (`Path` raises where it may not look)
        target = os.readlink(program)  # noqa: PTH115 (the text of the link is wanted)
        return CLINotFound(
            f"{program} is a link to {target}, which does not exist", looked=(str(program),)
        )
    if interpreter := _interpreter(program):
        return LaunchFailed(f"{program} exists, but its interpreter does not: {interpreter}")
    return LaunchFailed(
        f"{program} exists, but what loads it does not: it is built for another processor or"
        " another C library (musl or glibc)"
    )


def _explain_denied(program: Path) -> str:
    if os.path.isdir(program):  # noqa: PTH112 (`Path` raises where it may not look)
        return f"{program} is a directory, not a program"
    if not os.access(program, os.X_OK):
        return f"{program} is not executable"
    if interpreter := _interpreter(program):
        return f"{program} may not be executed, or its interpreter may not: {interpreter}"
    return f"{program} may not be executed: its file system or a security policy forbids it"


def _interpreter(program: Path) -> str:
    try:
        with program.open("rb") as file:
            line = file.read(_SHEBANG_SIZE).partition(b"\n")[0]
    except OSError:
        return ""
    return os.fsdecode(line[2:].strip()) if line.startswith(b"#!") else ""


def _explain_size(argv: Sequence[str], env: Mapping[str, str]) -> str:
    # Values stay out of the text: they may be long, and they may be secret.
    sizes = {_position(argv, at): len(os.fsencode(text)) for at, text in enumerate(argv)}
    sizes |= {
        f"the environment variable {name}": len(os.fsencode(name)) + len(os.fsencode(value)) + 1
        for name, value in env.items()
    }
    longest = max(sizes, key=sizes.__getitem__)
    return (
        f"the command line and environment are too long ({sum(sizes.values())} bytes): the longest"
        f" is {longest} with {sizes[longest]} bytes, and Linux takes 131071 at most for one"
    )


def _position(argv: Sequence[str], at: int) -> str:
    flag, equals, _ = argv[at].partition("=")
    if equals and _FLAG.fullmatch(flag):
        return f"argument {at} ({flag})"
    if at and _FLAG.fullmatch(argv[at - 1]):
        return f"argument {at} (after {argv[at - 1]})"
    return f"argument {at}"
