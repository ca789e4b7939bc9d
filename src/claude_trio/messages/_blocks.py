"""What a message is made of: text, thinking, tool calls and their results.

Facts: CLI 2.1.332, which sends one block of the model in each assistant message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from claude_trio._values import field, frozen

from ._base import WireObject, of_wire
from ._fields import items, kind

__all__ = [
    "CONTENT",
    "ContentBlock",
    "DocumentBlock",
    "ImageBlock",
    "RedactedThinkingBlock",
    "ServerToolResultBlock",
    "ServerToolUseBlock",
    "TextBlock",
    "ThinkingBlock",
    "ToolReferenceBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "UnknownBlock",
    "text_of",
]


@frozen(kw_only=True, eq=False, repr=False)
class TextBlock(WireObject):
    """Text.

    A content that the wire gives as a bare string is one of these, with an empty `raw`.

    Attributes:
      text: The text.  It may hold half an emoji, which cannot be encoded.
      citations: Where parts of it are taken from, as the API gives them.
    """

    text: str
    citations: tuple[Mapping[str, object], ...] = ()


@frozen(kw_only=True, eq=False, repr=False)
class ThinkingBlock(WireObject):
    """What the model thought.

    Attributes:
      thinking: The thought; empty if it is not shown.
      signature: The API's seal on it.
    """

    thinking: str
    signature: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class RedactedThinkingBlock(WireObject):
    """A thought that the API sends encrypted.

    Attributes:
      data: The encrypted thought.
    """

    data: str


@frozen(kw_only=True, eq=False, repr=False)
class ToolUseBlock(WireObject):
    """A tool call of the model, which the CLI carries out.

    Attributes:
      id: The call's id; its result, its permission request and its progress name it.
      name: The tool.
      input: The arguments, keys as the tool has them.
    """

    id: str
    name: str
    input: Mapping[str, object]


@frozen(kw_only=True, eq=False, repr=False)
class ServerToolUseBlock(WireObject):
    """A tool call that the API itself carries out, such as a web search.

    Attributes:
      id: The call's id.
      name: The tool.
      input: The arguments.
    """

    id: str
    name: str
    input: Mapping[str, object]


@frozen(kw_only=True, eq=False, repr=False)
class ServerToolResultBlock(WireObject):
    """The result of a tool call that the API carried out.

    Attributes:
      type: Which kind: ``web_search_tool_result`` and others that end in ``_tool_result``.
      tool_use_id: The call that it answers.
      content: What came of it, as the API gives it.
    """

    type: str
    tool_use_id: str
    content: object = None


@frozen(kw_only=True, eq=False, repr=False)
class ImageBlock(WireObject):
    """An image.

    Attributes:
      source: Where it is: ``type`` (``base64``, ``url``, ``file``), ``media_type``, ``data``...
    """

    source: Mapping[str, object]


@frozen(kw_only=True, eq=False, repr=False)
class DocumentBlock(WireObject):
    """A document, such as a PDF.

    Attributes:
      source: Where it is: ``type`` (``base64``, ``text``, ``url``, ``file``), ``media_type``...
      title: Its title.
      context: What the sender says about it.
    """

    source: Mapping[str, object]
    title: str | None = None
    context: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class ToolReferenceBlock(WireObject):
    """In the result of a search for tools: one that was found.

    Attributes:
      tool_name: The tool.
    """

    tool_name: str


@frozen(kw_only=True, eq=False, repr=False)
class UnknownBlock(WireObject):
    """A block of a type that this version does not know; `raw` is all of it.

    Attributes:
      type: The wire's word for it; empty if it gives none.
    """

    type: str = ""

    def _values(self) -> tuple[object, ...]:
        return (self.type, self.raw)


def text_of(blocks: tuple[WireObject, ...]) -> str:
    """Join the texts of the text blocks."""
    return "".join(block.text for block in blocks if isinstance(block, TextBlock))


def _read_content(value: object) -> tuple[WireObject, ...]:
    blocks: list[WireObject] = []
    found = items(value)
    if not isinstance(value, list):
        found = (value,)
    for item in found:
        if isinstance(item, str):
            blocks.append(TextBlock(text=item))
        elif isinstance(item, dict):
            blocks.append(_read_block(cast("dict[str, object]", item)))
    return tuple(blocks)


def _read_block(raw: dict[str, object]) -> WireObject:
    name = raw.get("type")
    if not isinstance(name, str):
        return of_wire(UnknownBlock, raw)
    cls = _BLOCKS.get(name)
    if cls is None and name.endswith("_tool_result"):
        cls = ServerToolResultBlock
    return of_wire(cls or UnknownBlock, raw)


CONTENT: Final = kind((list, str, dict), _read_content)
"""The metadata of an attribute that holds content, in whatever shape it came.

A string is one text block, in a list too; an object is one block; anything else is no block.
"""


@frozen(kw_only=True, eq=False, repr=False)
class ToolResultBlock(WireObject):
    """The result of a tool call.

    Attributes:
      tool_use_id: The call that it answers.
      content: What came of it.
      is_error: Whether the call failed, or was denied or interrupted.
    """

    tool_use_id: str
    content: tuple[ContentBlock, ...] = field(default=(), metadata=CONTENT)
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text of the content, joined."""
        return text_of(self.content)


ContentBlock: TypeAlias = (
    TextBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | ServerToolUseBlock
    | ServerToolResultBlock
    | ImageBlock
    | DocumentBlock
    | ToolReferenceBlock
    | UnknownBlock
)
"""What a message, or the result of a tool call, is made of."""

_BLOCKS: Final[dict[str, type[WireObject]]] = {
    "document": DocumentBlock,
    "image": ImageBlock,
    "redacted_thinking": RedactedThinkingBlock,
    "server_tool_use": ServerToolUseBlock,
    "text": TextBlock,
    "thinking": ThinkingBlock,
    "tool_reference": ToolReferenceBlock,
    "tool_result": ToolResultBlock,
    "tool_use": ToolUseBlock,
}
