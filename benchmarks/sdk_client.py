"""The official Python SDK, on Trio, for `session.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, PermissionResultAllow

if TYPE_CHECKING:
    from claude_agent_sdk import ToolPermissionContext


@final
class Sdk:
    """The official SDK."""

    def __init__(self, command: str) -> None:
        self._options = ClaudeAgentOptions(
            cli_path=command, include_partial_messages=True, can_use_tool=self._allow
        )
        self._client = ClaudeSDKClient(self._options)

    async def open(self) -> None:
        self._client = ClaudeSDKClient(self._options)
        await self._client.connect()

    async def turn(self, prompt: str) -> int:
        await self._client.query(prompt)
        count = 0
        async for _ in self._client.receive_response():
            count += 1
        return count

    async def close(self) -> None:
        await self._client.disconnect()

    @staticmethod
    async def _allow(
        _tool: str, _input: dict[str, object], _context: ToolPermissionContext
    ) -> PermissionResultAllow:
        return PermissionResultAllow()
