"""`MessagesApi`: a stand-in for Anthropic's Messages API, so that the real CLI runs offline.

It listens on the loopback interface only, answers by a script, and hands out an environment in
which the CLI talks to it and knows nothing of the user's own settings and credentials.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

import trio

from claude_trio._options import SessionOptions, to_environment
from claude_trio._options._flags import ENVIRONMENT
from claude_trio._scopes import background_tasks
from claude_trio.testing._api_script import Director, ScriptExhausted, answer_side
from claude_trio.testing._api_server import ApiServer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from claude_trio.testing._api_requests import ApiRequest
    from claude_trio.testing._api_script import Agents, Script, ScriptFunction

__all__ = ["MessagesApi", "open_messages_api"]

_HOST: Final = "127.0.0.1"
_REMOVAL_SECONDS: Final = 10
_TMP: Final = "tmp"
_NO_AGENTS: Final[Agents] = MappingProxyType({})

# What the CLI is told: a key that is none, no traffic but to us, and few tries.
_SETTINGS: Final = {
    "ANTHROPIC_API_KEY": "sk-ant-fake",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "2",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    "NO_PROXY": _HOST,
    "no_proxy": _HOST,
}
# What the CLI must not inherit, whatever the program's own environment is: who it is, where it
# sends, and how it converses ...
_REMOVED: Final = (
    "AI_AGENT",
    "ALL_PROXY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "API_TIMEOUT_MS",
    "AWS_BEARER_TOKEN_BEDROCK",
    "BASH_DEFAULT_TIMEOUT_MS",
    "BASH_MAX_OUTPUT_LENGTH",
    "BASH_MAX_TIMEOUT_MS",
    "CLAUDECODE",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_VERTEX",
    "DISABLE_AUTO_COMPACT",
    "DISABLE_COMPACT",
    "DISABLE_INTERLEAVED_THINKING",
    "DISABLE_PROMPT_CACHING",
    "ENABLE_TOOL_SEARCH",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "MAX_MCP_OUTPUT_TOKENS",
    "MAX_STRUCTURED_OUTPUT_RETRIES",
    "MAX_THINKING_TOKENS",
    "MCP_TIMEOUT",
    "MCP_TOOL_TIMEOUT",
    "SLASH_COMMAND_TOOL_CHAR_BUDGET",
    "TASK_MAX_OUTPUT_LENGTH",
    "XDG_CONFIG_HOME",
    "all_proxy",
    "http_proxy",
    "https_proxy",
)
# ... and the families of names that change from one CLI to the next, but for ours, and for what a
# session sets by itself or by its options: the environment that a session is given wins over both.
_REMOVED_PREFIXES: Final = ("ANTHROPIC_", "CLAUDE_")
_KEPT_PREFIXES: Final = ("CLAUDE_CLI_PATH", "CLAUDE_TRIO_")
_KEPT: Final = frozenset(name for _option, name, *_values in ENVIRONMENT) | frozenset(
    to_environment(SessionOptions(append_subagent_system_prompt="any"), {})
)


@final
class MessagesApi:
    """A stand-in for the Messages API that listens; made by `open_messages_api`."""

    def __init__(self, url: str, home: Path, server: ApiServer) -> None:
        self._url = url
        self._home = home
        self._server = server

    @property
    def url(self) -> str:
        """The base URL, without a slash at its end."""
        return self._url

    @property
    def home(self) -> Path:
        """The CLI's home directory: made for this block, and removed at its end."""
        return self._home

    @property
    def config_dir(self) -> Path:
        """Where the CLI keeps its settings and transcripts, inside of `home`."""
        return self._home / ".claude"

    @property
    def requests(self) -> tuple[ApiRequest, ...]:
        """The requests for messages so far, in the order in which they came."""
        return tuple(self._server.requests)

    async def wait_requests(self, count: int) -> tuple[ApiRequest, ...]:
        """Wait until ``count`` requests have come in all, side requests included, and give them.

        A reply may be on its way, or hang, meanwhile.

        Cancellation:
          A checkpoint.  If cancelled, nothing has changed.
        """
        await self._server.wait_requests(count)
        return self.requests[:count]

    def environment(self) -> dict[str, str | None]:
        """Give what a CLI needs in its environment to talk to this API, and to nothing else.

        Returns:
          Values to set; a name with None is to be removed.  Every name of the program's own
          environment that begins with ``ANTHROPIC_`` or ``CLAUDE_`` is removed, unless it is set
          here or by the options of a session.  The CLI tries a request three times in all;
          ``CLAUDE_CODE_MAX_RETRIES`` may be overridden, as may all others.
        """
        inherited = [
            name
            for name in os.environ
            if name.startswith(_REMOVED_PREFIXES)
            and not name.startswith(_KEPT_PREFIXES)
            and name not in _KEPT
        ]
        return {
            **dict.fromkeys((*_REMOVED, *inherited), None),
            **_SETTINGS,
            "ANTHROPIC_BASE_URL": self._url,
            "CLAUDE_CODE_TMPDIR": str(self._home / _TMP),
            "CLAUDE_CONFIG_DIR": str(self.config_dir),
            "HOME": str(self._home),
        }


@contextlib.asynccontextmanager
async def open_messages_api(
    script: Script,
    *,
    agents: Agents = _NO_AGENTS,
    side: ScriptFunction = answer_side,
) -> AsyncGenerator[MessagesApi]:
    """Serve a scripted Messages API on the loopback interface while the block runs.

    An exception of a function of the script cancels the block, and leaves it as it was raised.  The
    block's own exception leaves as it is; if both raise, they leave in an exception group.

    Args:
      script: Replies that the requests of the main conversation take in their order, or a function
        from `ApiRequest` to `Reply`, sync or async, which is asked for subagents as well.
      agents: For each agent whose prompt contains the key: the replies that it takes in their
        order.  What `call_agent` brings for its agent comes first.  Agents that match no key say
        "Done." if the script is a row of replies.
      side: Answers what the CLI asks beside its conversations, such as titles and summaries.

    Raises:
      ScriptExhausted: at the end of the block, if there were more requests than replies.  The CLI
        got an error for each.
      OSError: if there is no port or no directory to be had.

    Cancellation:
      Entering is a checkpoint.  When the block is left, whatever the reason, no task, no connection
      and no file is left.
    """
    director = Director(script, agents=agents, side=side)
    server: ApiServer | None = None
    raised: BaseException | None = None
    async with _scratch_directory() as home:
        try:
            async with background_tasks() as nursery:
                server = ApiServer(director, on_failure=nursery.cancel_scope.cancel)
                yield MessagesApi(await _listen(nursery, server), home, server)
        except BaseException as exc:  # noqa: ASYNC103, BLE001  Raised below.
            raised = exc
    verdict = _verdict(raised, server.failures if server else (), director.unanswered)
    if verdict is not None:
        raise verdict


async def _listen(nursery: trio.Nursery, server: ApiServer) -> str:
    listeners = await trio.open_tcp_listeners(0, host=_HOST)
    nursery.start_soon(functools.partial(trio.serve_listeners, server.serve_stream, listeners))
    port: int = listeners[0].socket.getsockname()[1]
    return f"http://{_HOST}:{port}"


def _verdict(
    raised: BaseException | None,
    failures: Sequence[Exception],
    unanswered: Sequence[ApiRequest],
) -> BaseException | None:
    """Choose what leaves the block."""
    exhausted = ScriptExhausted(unanswered) if unanswered else None
    if raised is not None and exhausted is not None:
        raised.add_note(str(exhausted))
    everything = [*failures] if raised is None else [raised, *failures]
    match everything:
        case []:
            return exhausted
        case [single]:
            return single
        case _:
            return BaseExceptionGroup("the block and its script failed", everything)


@contextlib.asynccontextmanager
async def _scratch_directory() -> AsyncGenerator[Path]:
    home = await trio.to_thread.run_sync(_make_directory)
    try:
        yield home
    finally:
        remove = functools.partial(shutil.rmtree, home, ignore_errors=True)
        with trio.move_on_after(_REMOVAL_SECONDS, shield=True):
            await trio.to_thread.run_sync(remove, abandon_on_cancel=True)


def _make_directory() -> Path:
    # The names are short: the CLI puts a socket in there, whose path may not be long.
    home = Path(tempfile.mkdtemp(prefix="claude-api-")).resolve()
    (home / _TMP).mkdir()
    return home
