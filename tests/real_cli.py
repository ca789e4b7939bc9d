"""Fetch the real ``claude`` for the tests, once, into the user's cache.

The npm registry is asked first; where it cannot be had, the wheel of the official SDK brings the
same binary from the Python index.  Where neither works the tests fail: a suite that skips its real
peer proves nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["DEFAULT_VERSION", "RealCLIUnavailable", "real_cli"]

DEFAULT_VERSION: Final = "2.1.332"
OVERRIDE: Final = "CLAUDE_TRIO_TEST_CLI"
# Which release of the official SDK carries which CLI.
_WHEELS: Final = {"2.1.332": "claude-agent-sdk==0.2.189"}
# A download is about 180 MB; a slow line deserves a chance, a dead one ends.
_FETCH_SECONDS: Final = 900
_VERSION_SECONDS: Final = 60


class RealCLIUnavailable(Exception):
    """Tell that the real CLI could not be fetched, and what each way said."""


@functools.cache
def real_cli(version: str = DEFAULT_VERSION) -> Path:
    """Return the path of a ``claude`` of this version, fetching it if it is not in the cache.

    The environment variable ``CLAUDE_TRIO_TEST_CLI`` names another binary for the default version.
    Any number of processes may call at once: one fetches, the others wait for it.

    Raises:
      RealCLIUnavailable: if it cannot be had, or is not what it should be.
    """
    override = os.environ.get(OVERRIDE)
    if override and version == DEFAULT_VERSION:
        path = Path(override).absolute()
        _said_version(path)
        return path
    store = _cache_home() / "claude-trio" / "cli"
    store.mkdir(parents=True, exist_ok=True)
    path = store / version / "claude"
    with _locked(store / f"{version}.lock"):
        if not path.exists():
            _fetch(version, path.parent)
        _check(path, version)
    return path


def _cache_home() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return Path(home) if home else Path.home() / ".cache"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # Closing the file gives it back, and so does any death.
        yield


def _fetch(version: str, target: Path) -> None:
    """Put the binary at ``target/claude``; a fetch that breaks off leaves no ``target``."""
    failures: list[str] = []
    for stale in target.parent.glob(f".{version}-*"):  # What a killed fetch left.
        shutil.rmtree(stale)
    for name, fetch in (("npm", _from_npm), ("the Python index", _from_wheel)):
        with tempfile.TemporaryDirectory(prefix=f".{version}-", dir=target.parent) as scratch:
            try:
                binary = fetch(version, Path(scratch))
                done = Path(scratch, "done")
                done.mkdir()
                binary.rename(done / "claude")
                _check(done / "claude", version)
            except (RealCLIUnavailable, OSError, zipfile.BadZipFile) as error:
                failures.append(f"{name}: {error}")
                continue
            done.rename(target)
            return
    tried = "\n".join(failures)
    raise RealCLIUnavailable(
        f"claude {version} could not be fetched; {OVERRIDE} can name one.\n{tried}"
    )


def _from_npm(version: str, scratch: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise RealCLIUnavailable("there is no npm on PATH")
    # The package's scripts would only link the binary of its platform package to another place.
    quiet = ("--ignore-scripts", "--no-save", "--no-audit", "--no-fund", "--no-update-notifier")
    package = f"@anthropic-ai/claude-code@{version}"
    _run([npm, "install", "--prefix", str(scratch), *quiet, package])
    found = sorted(scratch.glob("node_modules/@anthropic-ai/claude-code-*/claude"))
    if len(found) != 1:
        raise RealCLIUnavailable(f"{package} brought {len(found)} binaries for this platform")
    return found[0]


def _from_wheel(version: str, scratch: Path) -> Path:
    requirement = _WHEELS.get(version)
    if requirement is None:
        raise RealCLIUnavailable(f"no wheel is known to carry claude {version}")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    _run([*pip, "--no-deps", "--only-binary=:all:", "--dest", str(scratch), requirement])
    (wheel,) = scratch.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith("/_bundled/claude")]
        if len(names) != 1:
            raise RealCLIUnavailable(f"{wheel.name} carries {len(names)} binaries")
        binary = Path(archive.extract(names[0], scratch))
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return binary


def _check(path: Path, version: str) -> None:
    said = _said_version(path)
    if said.split()[:1] != [version]:
        raise RealCLIUnavailable(f"{path} says {said!r} and should be {version}")


def _said_version(path: Path) -> str:
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.defpath, "HOME": home, "CLAUDE_CONFIG_DIR": home, "TMPDIR": home}
        return _run([str(path), "--version"], env=env, seconds=_VERSION_SECONDS).strip()


def _run(
    argv: list[str], *, env: Mapping[str, str] | None = None, seconds: float = _FETCH_SECONDS
) -> str:
    try:
        done = subprocess.run(
            argv,
            check=False,
            capture_output=True,
            env=env,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=seconds,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RealCLIUnavailable(f"{argv[0]}: {error}") from error
    if done.returncode != 0:
        tail = (done.stderr or done.stdout).strip()[-2000:]
        raise RealCLIUnavailable(f"{argv[0]} ended with {done.returncode}: {tail}")
    return done.stdout
