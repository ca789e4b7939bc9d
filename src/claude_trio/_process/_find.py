"""Find the program that a bare name means.

Everything here looks at the file system, which may be slow: it belongs into a worker thread.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from claude_trio._errors import CLINotFound, LaunchFailed
from claude_trio._process._explain import check_directory

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["find", "places"]

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
