"""What a session may be told when it opens."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Self, final

from claude_trio._options import _check as check
from claude_trio._options import _convert as convert
from claude_trio._options._agents import Agents, agents
from claude_trio._options._combinations import refuse_combinations
from claude_trio._values import field, fields_of, frozen

__all__ = ["SessionOptions"]


@final
@frozen(kw_only=True, repr=False)
class SessionOptions:
    """What a session is told when it opens.

    By default nothing is said that the CLI decides well by itself.  Three states are kept apart:
    None is "not given", an empty value is a value (``tools=()`` is "no tools"), and False is the
    default only where the CLI has no third state.

    A path may be a `pathlib.Path`, a sequence any iterable of strings except a string, a word a
    member of an enum of strings.  A wrong type raises `TypeError`, a wrong value or a combination
    that the CLI refuses `ValueError`, and the message begins with the option's name.
    ``attrs.evolve`` makes a changed copy.  The ``repr`` shows the keys of mappings only: values may
    be secrets.

    Other users of the machine can read a command line.  Secrets in ``settings`` or ``mcp_servers``
    stay off it in a file whose path is given instead, or with ``await_initialize``.
    """

    # How the CLI is started.

    command: tuple[str, ...] | None = field(
        default=None, converter=convert.program, validator=check.arguments
    )
    """The program and its first arguments, before the CLI's own; by default it is looked for.

    ``("ssh", "host", "claude")`` puts a session on another machine.  Its shell splits the arguments
    anew, so that values with spaces, quotes or parentheses need a program in between that quotes.
    """
    cwd: str | None = field(default=None, converter=convert.path, validator=check.argument)
    """The directory of the session, which is its project; by default that of this process."""
    env: Mapping[str, str | None] = field(
        factory=dict[str, "str | None"], converter=convert.copied, validator=check.environment
    )
    """Variables that are added to the inherited environment; None removes one.

    They win over what the library sets and over other options.  The ``env`` of a settings file wins
    over them.
    """
    extra_args: Mapping[str, str | None] = field(
        factory=dict[str, "str | None"], converter=convert.copied, validator=check.extra_args
    )
    """Flags that no option stands for, without their dashes; None is a flag without a value."""

    keep_daemons: bool = field(default=False, validator=check.switch)
    """Whether a command that has daemonised itself outlives a session that closes in good order."""

    # Which conversation.

    session_id: str | None = field(default=None, converter=convert.uuid_text, validator=check.uuid)
    """``--session-id``: the id of a new session or a fork, an unused UUID; by default chosen."""
    resume: str | None = field(default=None, converter=convert.uuid_text, validator=check.argument)
    """``--resume``: the id or the title of the session to go on with."""
    continue_: bool = field(default=False, validator=check.switch)
    """``--continue``: go on with the newest session of `cwd`."""
    fork_session: bool = field(default=False, validator=check.switch)
    """``--fork-session``: go on in a copy, under a new id."""
    resume_session_at: str | None = field(
        default=None, converter=convert.uuid_text, validator=check.argument
    )
    """``--resume-session-at``: the uuid of the last message that is kept."""
    resume_drops_turn: str | None = field(
        default=None, converter=convert.uuid_text, validator=check.argument
    )
    """``--resume-drops-turn``: the uuid of the prompt whose turn alone may be dropped by that."""
    title: str | None = field(default=None, converter=convert.plain, validator=check.prose)
    """Initialize ``title``: a new session's title; a resumed one keeps its own."""
    no_session_persistence: bool = field(default=False, validator=check.switch)
    """``--no-session-persistence``: keep no transcript; the session cannot be resumed."""
    session_mirror: bool = field(default=False, validator=check.switch)
    """``--session-mirror``: send each transcript entry as a ``transcript_mirror`` frame as well."""
    file_checkpointing: bool | None = field(default=None, validator=check.tristate)
    """Variable ``CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING``: keep what ``rewind_files`` needs."""

    # The model, and what it may spend.

    model: str | None = field(default=None, converter=convert.plain, validator=check.argument)
    """``--model``: an alias (``"opus"``, ``"sonnet"``, ``"haiku"``) or a model's id."""
    fallback_model: tuple[str, ...] | None = field(
        default=None, converter=convert.models, validator=check.names
    )
    """``--fallback-model``: a model, or several in order, for when the model is overloaded."""
    betas: tuple[str, ...] | None = field(
        default=None, converter=convert.words, validator=check.arguments
    )
    """``--betas``: beta features of the API; the CLI warns on stderr of those it does not know."""
    effort: str | None = field(default=None, converter=convert.plain, validator=check.argument)
    """``--effort``: ``"low"``, ``"medium"``, ``"high"``, ``"xhigh"`` or ``"max"``."""
    thinking: str | None = field(default=None, converter=convert.plain, validator=check.argument)
    """``--thinking``: ``"adaptive"`` (also called ``"enabled"``) or ``"disabled"``."""
    max_thinking_tokens: int | None = field(default=None, validator=check.counted(0))
    """``--max-thinking-tokens``: the budget of models that have one; 0 turns thinking off."""
    thinking_display: str | None = field(
        default=None, converter=convert.plain, validator=check.argument
    )
    """``--thinking-display``: ``"summarized"`` or ``"omitted"``."""
    max_turns: int | None = field(default=None, validator=check.counted(1))
    """``--max-turns``: the most calls of the model for one prompt."""
    max_budget_usd: float | None = field(default=None, validator=check.amount)
    """``--max-budget-usd``: US dollars for the whole session; one call may overshoot them."""
    task_budget: int | None = field(default=None, validator=check.counted(1))
    """``--task-budget``: tokens that the model is told to get by with."""
    autocompact: int | str | None = field(default=None, validator=check.compaction)
    """``--autocompact``: the tokens at which the CLI compacts, from 100,000 on, or ``"auto"``."""

    # What the model is told.

    system_prompt: tuple[str, ...] | None = field(
        default=None, converter=convert.words_or_word, validator=check.blocks
    )
    """Initialize ``systemPrompt``: a text or several, in place of the CLI's own; empty is none."""
    system_prompt_file: str | None = field(
        default=None, converter=convert.path, validator=check.argument
    )
    """``--system-prompt-file``: the same, from a file that the CLI reads."""
    append_system_prompt: str | None = field(
        default=None, converter=convert.plain, validator=check.prose
    )
    """Initialize ``appendSystemPrompt``: what stands behind the system prompt."""
    append_system_prompt_file: str | None = field(
        default=None, converter=convert.path, validator=check.argument
    )
    """``--append-system-prompt-file``: the same, from a file that the CLI reads."""
    append_subagent_system_prompt: str | None = field(
        default=None, converter=convert.plain, validator=check.prose
    )
    """Initialize ``appendSubagentSystemPrompt``: what stands behind the prompt of each subagent."""
    system_prompt_snapshot: bool | None = field(default=None, validator=check.tristate)
    """Initialize ``systemPromptSnapshot``: False renders the prompt anew for each request."""
    exclude_dynamic_sections: bool | None = field(default=None, validator=check.tristate)
    """Initialize ``excludeDynamicSections``: move what differs by machine to the first prompt."""
    plan_mode_instructions: str | None = field(
        default=None, converter=convert.plain, validator=check.prose
    )
    """Initialize ``planModeInstructions``: how to work in plan mode."""
    json_schema: Mapping[str, object] | None = field(
        default=None, converter=convert.json_mapping, validator=check.json_object
    )
    """Initialize ``jsonSchema``: what ``Result.structured_output`` is like.

    The CLI ignores a schema that is none.
    """

    # What the model may do.

    tools: tuple[str, ...] | None = field(
        default=None, converter=convert.words_or_word, validator=check.rules
    )
    """``--tools``: the built-in tools that there are; ``()`` is none, ``"default"`` all."""
    allowed_tools: tuple[str, ...] | None = field(
        default=None, converter=convert.words, validator=check.rules
    )
    """``--allowedTools``: rules of what needs no permission, as ``"Bash(git log:*)"``.

    What they allow never reaches a permission handler.
    """
    disallowed_tools: tuple[str, ...] | None = field(
        default=None, converter=convert.words, validator=check.rules
    )
    """``--disallowedTools``: tools that there are not, and rules of what is denied."""
    tool_aliases: Mapping[str, str] | None = field(
        default=None, converter=convert.optional_copied, validator=check.text_mapping
    )
    """Initialize ``toolAliases``: tools that take the calls of others."""
    skills: tuple[str, ...] | None = field(
        default=None, converter=convert.words_or_word, validator=check.each_skill
    )
    """Initialize ``skills``, and ``Skill(...)`` rules: the skills that there are.

    ``"all"`` allows every skill that is found, ``()`` hides them all.
    """
    permission_mode: str | None = field(
        default=None, converter=convert.plain, validator=check.argument
    )
    """``--permission-mode``: ``"default"`` unless given, which asks.

    Others are ``"acceptEdits"``, ``"plan"``, ``"auto"``, ``"dontAsk"`` and ``"bypassPermissions"``.
    """
    permission_prompt_tool: str | None = field(
        default=None, converter=convert.plain, validator=check.argument
    )
    """``--permission-prompt-tool``: an MCP tool that answers in place of the permission handler."""
    permission_prompts: str | None = field(
        default=None, converter=convert.plain, validator=check.argument
    )
    """``--permission-prompts``: ``"none"`` denies what would be asked; ``"host"`` asks."""
    allow_dangerously_skip_permissions: bool = field(default=False, validator=check.switch)
    """``--allow-dangerously-skip-permissions``: allow a later change to ``"bypassPermissions"``."""
    restricted: bool = field(default=False, validator=check.switch)
    """``--restricted``: no tools that run code, no settings files, no files elsewhere."""
    sandbox: Mapping[str, object] | None = field(
        default=None, converter=convert.json_mapping, validator=check.json_object
    )
    """``sandbox`` of the settings: what commands may reach.

    One that is enabled does not start without its programs, unless ``failIfUnavailable`` is false.
    """
    question_preview_format: str | None = field(
        default=None, converter=convert.plain, validator=check.argument
    )
    """Variable ``CLAUDE_CODE_QUESTION_PREVIEW_FORMAT``: ``"markdown"`` or ``"html"`` previews."""

    # Agents.

    agents: Agents | None = field(default=None, converter=agents, validator=check.agents)
    """Initialize ``agents``: `AgentDefinition` or the CLI's own spelling of one, by name."""
    agent: str | None = field(default=None, converter=convert.plain, validator=check.argument)
    """``--agent``: the agent that the session itself is, of `agents` or of the settings."""
    forward_subagent_text: bool | None = field(default=None, validator=check.tristate)
    """Initialize ``forwardSubagentText``: send what subagents say and think as well."""
    agent_progress_summaries: bool | None = field(default=None, validator=check.tristate)
    """Initialize ``agentProgressSummaries``: sum up now and then what subagents do."""
    brief: bool = field(default=False, validator=check.switch)
    """``--brief``: give the model a tool with which it writes to the user."""

    # Where settings, servers, plugins and files come from.

    setting_sources: tuple[str, ...] | None = field(
        default=None, converter=convert.words, validator=check.names
    )
    """``--setting-sources``: which of ``"user"``, ``"project"`` and ``"local"``; ``()`` is none."""
    settings: Mapping[str, object] | str | None = field(
        default=None, converter=convert.settings_or_path, validator=check.path_or_json
    )
    """``--settings``: settings that stand above those of files, or the path of a file of them."""
    managed_settings: Mapping[str, object] | None = field(
        default=None, converter=convert.json_mapping, validator=check.json_object
    )
    """``--managed-settings``: settings of an embedding program, which can only restrict."""
    auto_memory: bool | None = field(default=None, validator=check.tristate)
    """Variable ``CLAUDE_CODE_DISABLE_AUTO_MEMORY``: whether there are notes on the project."""
    mcp_servers: Mapping[str, object] | None = field(
        default=None, converter=convert.json_mapping, validator=check.servers
    )
    """``--mcp-config``: MCP servers by name, as in ``.mcp.json``; not those in this program."""
    mcp_config: tuple[str, ...] | None = field(
        default=None, converter=convert.paths, validator=check.path_arguments
    )
    """``--mcp-config``: a file of MCP servers, or several."""
    strict_mcp_config: bool = field(default=False, validator=check.switch)
    """``--strict-mcp-config``: no MCP servers but those given here."""
    plugin_dirs: tuple[str, ...] | None = field(
        default=None, converter=convert.paths, validator=check.arguments
    )
    """``--plugin-dir``: directories of plugins."""
    plugin_dirs_no_mcp: tuple[str, ...] | None = field(
        default=None, converter=convert.paths, validator=check.arguments
    )
    """``--plugin-dir-no-mcp``: the same, without the plugins' own MCP servers."""
    plugin_urls: tuple[str, ...] | None = field(
        default=None, converter=convert.words, validator=check.arguments
    )
    """``--plugin-url``: plugins to fetch."""
    add_dirs: tuple[str, ...] | None = field(
        default=None, converter=convert.paths, validator=check.arguments
    )
    """``--add-dir``: directories to work in besides `cwd`."""
    project_config_root: str | None = field(
        default=None, converter=convert.path, validator=check.argument
    )
    """``--project-config-root``: whose project settings hold, where `cwd` is a worktree."""
    worktree: bool | str = field(default=False, validator=check.switch_or_argument)
    """``--worktree``: work in a new git worktree, whose name may be given."""
    disable_slash_commands: bool = field(default=False, validator=check.switch)
    """``--disable-slash-commands``: no commands and no skills."""
    bare: bool = field(default=False, validator=check.switch)
    """``--bare``: no hooks, plugins, memory or ``CLAUDE.md``; keys from the environment only."""
    safe_mode: bool = field(default=False, validator=check.switch)
    """``--safe-mode``: without whatever the user has added, but with the settings' own values."""

    # What the session hears.

    include_partial_messages: bool = field(default=True, validator=check.switch)
    """``--include-partial-messages``: text as it comes; without it, whole blocks."""
    include_hook_events: bool = field(default=False, validator=check.switch)
    """``--include-hook-events``: the hooks of settings, as they run."""
    replay_user_messages: bool = field(default=False, validator=check.switch)
    """``--replay-user-messages``: prompts, as the CLI takes them up."""
    prompt_suggestions: bool | None = field(default=None, validator=check.tristate)
    """``--prompt-suggestions``: what the user may say next, after a result."""
    supported_dialog_kinds: tuple[str, ...] | None = field(
        default=None, converter=convert.words, validator=check.arguments
    )
    """Initialize ``supportedDialogKinds``: the dialogs that the dialog handler can show."""

    # What helps to find out.

    debug: bool | str = field(default=False, validator=check.switch_or_argument)
    """``--debug``: write a log to a file; text chooses categories, as ``"hooks,mcp"``."""
    debug_file: str | None = field(default=None, converter=convert.path, validator=check.argument)
    """``--debug-file``: which file."""
    debug_to_stderr: bool = field(default=False, validator=check.switch)
    """``--debug-to-stderr``: write the log to stderr, whose tail stands in every error."""
    client_app: str | None = field(default=None, converter=convert.plain, validator=check.header)
    """Variable ``CLAUDE_AGENT_SDK_CLIENT_APP``: the program's name to the API, in ASCII.

    It is ``"claude-trio"`` unless the environment says otherwise; ``""`` is none.
    """
    await_initialize: bool = field(default=False, validator=check.switch)
    """``--await-initialize``: send settings, MCP servers and plugins in the initialize request.

    They are on no command line then, and may have any length.  It needs CLI 2.1.261.
    """

    def __attrs_post_init__(self) -> None:
        refuse_combinations(self)

    @classmethod
    def isolated(cls, **options: object) -> Self:
        """Make options that ignore what the user and the project have configured.

        No settings files, ``CLAUDE.md``, skills, hooks, agents, notes or MCP servers but those that
        are given.  The login, the environment and an administrator's settings still hold.

        Args:
          **options: More options; each wins over what is said here.

        Raises:
          TypeError: as `SessionOptions`.
          ValueError: as `SessionOptions`.
        """
        isolated = {"setting_sources": (), "strict_mcp_config": True, "auto_memory": False}
        return cls(**isolated | options)  # type: ignore[arg-type]  # The fields check them.

    def __repr__(self) -> str:
        given = (
            f"{name}={_shown(value)}"
            for name, option in fields_of(type(self)).items()
            if (value := getattr(self, name)) != option.make_default()
        )
        return f"{type(self).__name__}({', '.join(given)})"


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: ..." for key in value) + "}"
    return reprlib.repr(value)
