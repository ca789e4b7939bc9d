"""With the environment of the API the real CLI sees nothing of its user, and no network."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio

from claude_trio import SessionOptions, open_session
from claude_trio.testing import say
from claude_trio.testing._http import serve_http
from tests.process.real import cli_options, real_api
from tests.real_cli import real_cli

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from claude_trio.testing._http import Exchange, HttpRequest

pytestmark = [pytest.mark.real_cli, pytest.mark.slow]

KEY: Final = "sk-ant-planted-key"
MEMORY: Final = "PLANTED-MEMORY"
AGENT: Final = "planted-agent"
MODEL: Final = "claude-planted-model"
HEADER: Final = "x-planted"
PLANTS: Final = (KEY, MEMORY, AGENT, MODEL, HEADER)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a user who has settings of all kinds, and is the one who runs the tests."""
    home = tmp_path / "home"
    config = home / ".claude"
    (config / "agents").mkdir(parents=True)
    hook = {"type": "command", "command": f"touch {home}/hook-ran"}
    settings = {
        "model": MODEL,
        "env": {"ANTHROPIC_CUSTOM_HEADERS": f"{HEADER}: 1"},
        "hooks": {"SessionStart": [{"hooks": [hook]}]},
    }
    (config / "settings.json").write_text(json.dumps(settings))
    (config / "CLAUDE.md").write_text(MEMORY)
    described = f"---\nname: {AGENT}\ndescription: Use it always.\n---\nBe planted.\n"
    (config / "agents" / "planted.md").write_text(described)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(config))
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    return home


class Tap:
    """A server that keeps all that it is asked, secrets too, and has no answer."""

    def __init__(self) -> None:
        self.heard: list[HttpRequest] = []
        self.url = ""

    async def handle(self, request: HttpRequest, exchange: Exchange) -> None:
        self.heard.append(request)
        await exchange.respond(402)

    async def serve(self, stream: trio.abc.Stream) -> None:
        await serve_http(stream, self.handle)

    def told(self) -> str:
        return "\n".join(f"{each.headers} {each.body!r}" for each in self.heard)


@contextlib.asynccontextmanager
async def tapping() -> AsyncIterator[Tap]:
    tap = Tap()
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        # It listens already.
        nursery.start_soon(trio.serve_listeners, tap.serve, [listener])  # noqa: ASYNC113
        tap.url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        yield tap
        nursery.cancel_scope.cancel()


async def ask(env: Mapping[str, str | None], cwd: Path) -> None:
    options: dict[str, Any] = {"command": [str(real_cli())], "cwd": cwd, "env": env}
    async with open_session(None, SessionOptions(**options)) as session:
        await session.prompt("go", check=False)


@pytest.mark.parametrize("isolated", [False, True])
async def test_the_cli_sees_its_users_settings_only_without_the_apis_environment(
    isolated: bool, home: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    async with real_api([]) as api, tapping() as tap:
        env = api.environment() if isolated else {}
        await ask({**env, "ANTHROPIC_BASE_URL": tap.url}, project)
        assert (api.config_dir / "projects").exists() is isolated
    seen = {plant for plant in PLANTS if plant in tap.told()}
    # The other case shows that what is planted would be found.
    assert seen == (set() if isolated else set(PLANTS))
    assert (home / "hook-ran").exists() is not isolated
    assert (home / ".claude" / "projects").exists() is not isolated


QUIET: Final = (
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
    "DISABLE_TELEMETRY",
)


@pytest.mark.parametrize("quiet", [False, True])
async def test_the_cli_talks_to_others_only_without_the_apis_environment(
    quiet: bool, tmp_path: Path
) -> None:
    async with real_api(lambda _request: say("hello")) as api, tapping() as proxy:
        # What goes anywhere but to the loopback interface has to pass here, and is refused.
        env = {**api.environment(), "HTTP_PROXY": proxy.url, "HTTPS_PROXY": proxy.url}
        if not quiet:
            env |= dict.fromkeys(QUIET)
        async with open_session(None, cli_options(api, tmp_path, env=env)) as session:
            assert (await session.prompt("go")).text == "hello"
            while not (quiet or proxy.heard):
                await trio.sleep(0.01)
    assert bool(proxy.heard) is not quiet
