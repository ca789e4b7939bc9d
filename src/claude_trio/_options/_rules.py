"""Permission rules and skill names: what the CLI makes of the text between two commas.

The CLI splits a list of rules at commas and spaces, except between a parenthesis and the next one
that closes: it counts no depth (CLI 2.1.332 and 2.1.197).  A rule that it would split, trim or
join with its neighbour is another rule than the one that was meant, so it is refused.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["allows_whole_tool", "refuse_rule", "refuse_skill"]

# Control characters, the line and paragraph separators, the byte order mark, lone surrogates.
_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_WHOLE_TOOL: Final = re.compile(r"(?P<tool>[^()]+)\((?:|\*|:\*)\)")


def _split(text: str) -> list[str]:
    items: list[str] = []
    item, inside = "", False
    for character in text:
        if character in "()":
            inside = character == "("
        if character in ", " and not inside:
            items.append(item)
            item = ""
        else:
            item += character
    return [item for item in (*items, item) if item]


def refuse_rule(rule: str) -> str | None:
    """Say why a rule cannot stand in a list; None if it can."""
    if _UNSEEN.search(rule):
        return "holds a control character or another that cannot be seen"
    if not rule or rule != rule.strip():
        return "is empty, or begins or ends with a space"
    # A neighbour shows whether the rule's parentheses are closed.
    if _split(f"{rule},_") != [rule, "_"]:
        return (
            "would be read as other rules: commas and spaces may only stand between one pair of"
            " parentheses; settings={'permissions': ...} takes any rule"
        )
    return None


def refuse_skill(name: str) -> str | None:
    """Say why a name cannot stand in a ``Skill(...)`` rule; None if it can."""
    if _UNSEEN.search(name):
        return "holds a control character or another that cannot be seen"
    if not name or name != name.strip():
        return "is empty, or begins or ends with a space"
    if re.search(r"[(),*\\]", name):
        return "holds a parenthesis, a comma, an asterisk or a backslash, which mean more in a rule"
    if name.startswith("/"):
        return "begins with a slash: give the skill's name, not the command"
    return None


def allows_whole_tool(rule: str) -> bool:
    """Tell a rule for every use of a tool from one for some of its uses."""
    return "(" not in rule or _WHOLE_TOOL.fullmatch(rule) is not None
