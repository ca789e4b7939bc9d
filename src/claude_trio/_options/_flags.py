"""How each option reaches the CLI: three tables, and together they hold every option.

The order of `FLAGS` is the order on the command line.  What `initialize` takes goes there, also
where a flag exists: it has no limit of length, no quoting, and nobody else on the machine can
read it.  CLI 2.1.332 and 2.1.197 both honour every field of `FIELDS` that they know, and ignore
the others, where an unknown flag would end them.
"""

from __future__ import annotations

import enum
from typing import Final

__all__ = ["ENVIRONMENT", "FIELDS", "FLAGS", "TAKEN_FLAGS", "How"]


class How(enum.Enum):
    """How a value is written behind its flag."""

    SWITCH = enum.auto()
    """No value: the flag says it all."""
    VALUE = enum.auto()
    """One argument."""
    MAYBE_VALUE = enum.auto()
    """A flag whose value may be left out."""
    JOINED = enum.auto()
    """One argument with commas; an empty one has a meaning."""
    RULES = enum.auto()
    """One argument with commas, none if there is nothing in it."""
    EACH = enum.auto()
    """One argument for each item."""
    JSON = enum.auto()
    """One argument that is JSON."""
    JSON_OR_PATH = enum.auto()
    """One argument that is JSON or a path; long JSON goes into a file."""


FLAGS: Final[tuple[tuple[str, str, How], ...]] = (
    ("permission_prompt_tool", "--permission-prompt-tool", How.VALUE),
    ("permission_mode", "--permission-mode", How.VALUE),
    ("permission_prompts", "--permission-prompts", How.VALUE),
    ("allow_dangerously_skip_permissions", "--allow-dangerously-skip-permissions", How.SWITCH),
    ("session_id", "--session-id", How.VALUE),
    ("resume", "--resume", How.VALUE),
    ("continue_", "--continue", How.SWITCH),
    ("fork_session", "--fork-session", How.SWITCH),
    ("resume_session_at", "--resume-session-at", How.VALUE),
    ("resume_drops_turn", "--resume-drops-turn", How.VALUE),
    ("no_session_persistence", "--no-session-persistence", How.SWITCH),
    ("session_mirror", "--session-mirror", How.SWITCH),
    ("model", "--model", How.VALUE),
    ("fallback_model", "--fallback-model", How.RULES),
    # The CLI does not split this one at commas.
    ("betas", "--betas", How.EACH),
    ("effort", "--effort", How.VALUE),
    ("thinking", "--thinking", How.VALUE),
    ("max_thinking_tokens", "--max-thinking-tokens", How.VALUE),
    ("thinking_display", "--thinking-display", How.VALUE),
    ("max_turns", "--max-turns", How.VALUE),
    ("max_budget_usd", "--max-budget-usd", How.VALUE),
    ("task_budget", "--task-budget", How.VALUE),
    ("autocompact", "--autocompact", How.VALUE),
    ("system_prompt_file", "--system-prompt-file", How.VALUE),
    ("append_system_prompt_file", "--append-system-prompt-file", How.VALUE),
    ("tools", "--tools", How.JOINED),
    ("allowed_tools", "--allowedTools", How.RULES),
    ("disallowed_tools", "--disallowedTools", How.RULES),
    ("agent", "--agent", How.VALUE),
    ("brief", "--brief", How.SWITCH),
    ("add_dirs", "--add-dir", How.EACH),
    ("worktree", "--worktree", How.MAYBE_VALUE),
    ("project_config_root", "--project-config-root", How.VALUE),
    ("setting_sources", "--setting-sources", How.JOINED),
    ("settings", "--settings", How.JSON_OR_PATH),
    ("managed_settings", "--managed-settings", How.JSON),
    ("mcp_servers", "--mcp-config", How.JSON_OR_PATH),
    ("mcp_config", "--mcp-config", How.EACH),
    ("strict_mcp_config", "--strict-mcp-config", How.SWITCH),
    ("plugin_dirs", "--plugin-dir", How.EACH),
    ("plugin_dirs_no_mcp", "--plugin-dir-no-mcp", How.EACH),
    ("plugin_urls", "--plugin-url", How.EACH),
    ("disable_slash_commands", "--disable-slash-commands", How.SWITCH),
    ("bare", "--bare", How.SWITCH),
    ("safe_mode", "--safe-mode", How.SWITCH),
    ("restricted", "--restricted", How.SWITCH),
    ("include_partial_messages", "--include-partial-messages", How.SWITCH),
    ("include_hook_events", "--include-hook-events", How.SWITCH),
    ("replay_user_messages", "--replay-user-messages", How.SWITCH),
    ("prompt_suggestions", "--prompt-suggestions", How.VALUE),
    ("debug", "--debug", How.MAYBE_VALUE),
    ("debug_file", "--debug-file", How.VALUE),
    ("debug_to_stderr", "--debug-to-stderr", How.SWITCH),
    ("await_initialize", "--await-initialize", How.SWITCH),
)

# The fields of the initialize request.
FIELDS: Final[tuple[tuple[str, str], ...]] = (
    ("system_prompt", "systemPrompt"),
    ("append_system_prompt", "appendSystemPrompt"),
    ("append_subagent_system_prompt", "appendSubagentSystemPrompt"),
    ("system_prompt_snapshot", "systemPromptSnapshot"),
    ("exclude_dynamic_sections", "excludeDynamicSections"),
    ("plan_mode_instructions", "planModeInstructions"),
    ("json_schema", "jsonSchema"),
    ("tool_aliases", "toolAliases"),
    ("skills", "skills"),
    ("agents", "agents"),
    ("forward_subagent_text", "forwardSubagentText"),
    ("agent_progress_summaries", "agentProgressSummaries"),
    ("title", "title"),
    ("supported_dialog_kinds", "supportedDialogKinds"),
)

# The variable, and what stands in it for True and for False; text stands in it as it is.
ENVIRONMENT: Final[tuple[tuple[str, str, str | None, str | None], ...]] = (
    ("file_checkpointing", "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true", None),
    ("auto_memory", "CLAUDE_CODE_DISABLE_AUTO_MEMORY", "0", "1"),
    ("question_preview_format", "CLAUDE_CODE_QUESTION_PREVIEW_FORMAT", None, None),
    ("client_app", "CLAUDE_AGENT_SDK_CLIENT_APP", None, None),
)

_LIBRARY: Final = "the library sets it"
_NO_SESSION: Final = "with it, the CLI holds no session on its pipes"

# What `extra_args` may not hold, and why.
TAKEN_FLAGS: Final[dict[str, str]] = {
    **{flag.removeprefix("--"): f"give the option {option!r}" for option, flag, _how in FLAGS},
    "mcp-config": "give the option 'mcp_servers' or 'mcp_config'",
    "allowed-tools": "give the option 'allowed_tools'",
    "disallowed-tools": "give the option 'disallowed_tools'",
    "dangerously-skip-permissions": "give permission_mode='bypassPermissions'",
    "system-prompt": "give the option 'system_prompt'",
    "append-system-prompt": "give the option 'append_system_prompt'",
    "append-subagent-system-prompt": "give the option 'append_subagent_system_prompt'",
    "system-prompt-snapshot": "give the option 'system_prompt_snapshot'",
    "exclude-dynamic-system-prompt-sections": "give the option 'exclude_dynamic_sections'",
    "plan-mode-instructions": "give the option 'plan_mode_instructions'",
    "json-schema": "give the option 'json_schema'",
    "agents": "give the option 'agents'",
    "forward-subagent-text": "give the option 'forward_subagent_text'",
    "name": "give the option 'title'",
    "initialize-fields": "give the option 'await_initialize'",
    "managed-settings-in-initialize": "give the option 'await_initialize'",
    **dict.fromkeys(("output-format", "input-format", "verbose", "print"), _LIBRARY),
    **dict.fromkeys(
        (
            *("help", "version", "background", "bg", "cloud", "remote", "teleport", "environment"),
            *("remote-control", "rc", "desktop", "tmux", "sdk-url", "attach-serve", "init-only"),
            "rewind-files",
        ),
        _NO_SESSION,
    ),
}
