"""Options that answer in place of the permission handler, so that it is never asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from claude_trio._options._rules import allows_whole_tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from claude_trio._options._session import SessionOptions

__all__ = ["warnings_for"]

_MODES: Final = {
    "bypassPermissions": "allows everything",
    "dontAsk": "denies whatever no rule allows",
}


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
    if isinstance(rules, list | tuple):
        for rule in cast("Sequence[object]", rules):
            if isinstance(rule, str) and allows_whole_tool(rule):
                yield f"{option}: {rule!r} allows every use of the tool without asking the handler"


def _sandbox_allows(sandbox: Mapping[str, object] | None) -> bool:
    return (
        sandbox is not None
        and sandbox.get("enabled") is True
        and sandbox.get("autoAllowBashIfSandboxed") is not False
    )
