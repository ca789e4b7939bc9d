"""Options that exclude each other, and options that answer in place of the permission handler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from claude_trio._options._session import SessionOptions

__all__ = ["refuse_combinations", "warnings_for"]

_MODES: Final = {
    "bypassPermissions": "allows everything",
    "dontAsk": "denies whatever no rule allows",
}


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


def warnings_for(options: SessionOptions) -> tuple[str, ...]:
    """Say which options keep requests from a permission handler.

    Returns:
      One sentence for each, beginning with the option's name.
    """
    return tuple(_warnings(options))


def _warnings(options: SessionOptions) -> Iterator[str]:
    if does := _MODES.get(options.permission_mode or ""):
        yield f"permission_mode: {options.permission_mode!r} {does}, and the handler is not asked"
    yield from _rules("allowed_tools", options.allowed_tools)
    if options.permission_prompts == "none":
        yield "permission_prompts: 'none' denies what would be asked, and the handler is not asked"
    if options.permission_prompt_tool not in {None, "stdio"}:
        yield f"permission_prompt_tool: {options.permission_prompt_tool!r} is asked instead"
    if isinstance(options.settings, Mapping):
        permissions = options.settings.get("permissions")
        if isinstance(permissions, dict):
            yield from _rules("settings", cast("dict[str, object]", permissions).get("allow"))
    if _sandbox_allows(options.sandbox):
        yield "sandbox: commands inside of it are allowed, and the handler is not asked"


def _rules(option: str, rules: object) -> Iterator[str]:
    if not isinstance(rules, list | tuple):
        return
    from claude_trio._options._rules import allows_whole_tool  # noqa: PLC0415  As in `_check`.

    for rule in cast("Sequence[object]", rules):
        if isinstance(rule, str) and allows_whole_tool(rule):
            yield f"{option}: {rule!r} allows every use of the tool without asking the handler"


def _sandbox_allows(sandbox: Mapping[str, object] | None) -> bool:
    return (
        sandbox is not None
        and sandbox.get("enabled") is True
        and sandbox.get("autoAllowBashIfSandboxed") is not False
    )
