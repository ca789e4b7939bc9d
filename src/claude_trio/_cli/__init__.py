"""The command line, a user of the public API."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from typing import TYPE_CHECKING, Final

import trio

from claude_trio import ClaudeTrioError, CLINotFound, LaunchFailed
from claude_trio._cli._demo import demo
from claude_trio._cli._record import record
from claude_trio._cli._replay import replay_command
from claude_trio._cli._run import run_command

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

__all__ = ["run"]

_FAILED: Final = 1
_NOT_STARTED: Final = 3
_INTERRUPTED: Final = 128 + signal.SIGINT


def run(arguments: Sequence[str]) -> int:
    """Run a command, and return its exit code.

    0: completed; 1: failed; 2: wrong usage; 3: the CLI was not found or did not start;
    130: interrupted.
    """
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], Awaitable[int]] = options.command
    # A model's words may hold what the terminal cannot show: half an emoji, for example.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        return trio.run(command, options)
    except (ClaudeTrioError, ValueError) as exc:
        sys.stderr.write(f"claude-trio: {exc}\n")
        return _NOT_STARTED if isinstance(exc, CLINotFound | LaunchFailed) else _FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read has gone, and the interpreter shall not complain of that at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="claude-trio", description="Run Claude Code from the command line, by way of Trio."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser(
        "run",
        help="send one prompt, and print the answer as it comes",
        description="Send one prompt, and print the answer as it comes.",
        epilog="Exit codes: 0 completed, 1 failed, 2 wrong usage, 3 the CLI was not found or did "
        "not start, 130 interrupted.",
    )
    one.add_argument("prompt", metavar="PROMPT", help="what to say; - reads it from stdin")
    one.add_argument("--model", help="an alias such as sonnet, or a model's id")
    one.add_argument("--cwd", help="the folder to work in")
    one.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="TOOL",
        help="allow what this tool asks for; may be repeated; everything else is denied",
    )
    one.add_argument(
        "--json",
        action="store_true",
        help="print each message as a line of JSON; the last line has the type claude_trio_result",
    )
    one.set_defaults(command=run_command)
    show = commands.add_parser(
        "demo",
        help="show a whole conversation, offline and without a key",
        description="Show a conversation with a tool and its permission, an interrupt and a "
        "subagent in the background, offline: with the real CLI where there is one, else with a "
        "fake.",
    )
    show.add_argument("--fake", action="store_true", help="use the fake even if there is a CLI")
    show.set_defaults(command=demo)
    _add_recordings(commands)
    return parser


def _add_recordings(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    write = commands.add_parser(
        "record",
        help="stand in for claude, and record what it and its host say",
        usage="%(prog)s FILE -- ARGUMENT...",
        description="Run claude with the ARGUMENTs, pass stdin, stdout, stderr and signals on, and "
        "write both directions into FILE, without secrets.",
    )
    write.add_argument("file", metavar="FILE", help="where to; what is there is replaced")
    write.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER)
    write.set_defaults(command=record)
    play = commands.add_parser(
        "replay",
        help="stand in for claude, and say what was recorded",
        usage="%(prog)s [--timing] [--patience SECONDS] FILE",
        description="Say on stdout what claude said in a recording, as long as stdin says what its "
        "host said.  When it does not, print the difference to stderr, and exit with 1.",
    )
    play.add_argument("file", metavar="FILE", help="a recording")
    play.add_argument("--timing", action="store_true", help="take the time that claude took")
    play.add_argument(
        "--patience",
        type=float,
        default=60,
        metavar="SECONDS",
        help="how much longer than in the recording the host may take for what it says next; 60",
    )
    # A host adds the arguments of claude, and they do not matter.
    play.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    play.set_defaults(command=replay_command)
