"""Options that exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from claude_trio._options._session import SessionOptions

__all__ = ["refuse_combinations"]


def _session(options: SessionOptions) -> Iterator[tuple[bool, str]]:
    goes_on = options.continue_ or options.resume is not None
    yield (
        options.continue_ and options.resume is not None,
        "continue_: goes on with the newest session, so that resume cannot name another",
    )
    yield (
        options.fork_session and not goes_on,
        "fork_session: needs resume or continue_, which say what to copy",
    )
    yield (
        options.session_id is not None and goes_on and not options.fork_session,
        "session_id: a session that goes on keeps its id; a fork_session may have a new one",
    )
    yield (
        options.resume_session_at is not None and options.resume is None,
        "resume_session_at: needs resume, which says of which session",
    )
    yield (
        options.resume_drops_turn is not None and options.resume_session_at is None,
        "resume_drops_turn: needs resume_session_at, which drops it",
    )
    yield (
        options.no_session_persistence and options.session_mirror,
        "session_mirror: there is no transcript to mirror, with no_session_persistence",
    )


def _model(options: SessionOptions) -> Iterator[tuple[bool, str]]:
    yield (
        options.model is not None and options.model in (options.fallback_model or ()),
        f"fallback_model: {options.model!r} is the model itself",
    )
    yield (
        options.thinking == "disabled" and bool(options.max_thinking_tokens),
        "max_thinking_tokens: there is no thinking, with thinking='disabled'",
    )
    yield (
        options.system_prompt is not None and options.system_prompt_file is not None,
        "system_prompt: there is one already, with system_prompt_file",
    )
    yield (
        options.append_system_prompt is not None and options.append_system_prompt_file is not None,
        "append_system_prompt: there is one already, with append_system_prompt_file",
    )


def _settings(options: SessionOptions) -> Iterator[tuple[bool, str]]:
    yield (
        options.sandbox is not None and isinstance(options.settings, str),
        "sandbox: cannot be added to a file; write it there, or give the settings as a mapping",
    )
    yield (
        options.sandbox is not None
        and isinstance(options.settings, Mapping)
        and "sandbox" in options.settings,
        "sandbox: the settings hold one already",
    )


def refuse_combinations(options: SessionOptions) -> None:
    """Refuse what the CLI would refuse, or take for something else.

    Raises:
      ValueError: if an option excludes another.
    """
    for group in (_session, _model, _settings):
        for wrong, why in group(options):
            if wrong:
                raise ValueError(why)
