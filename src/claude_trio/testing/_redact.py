"""What does not belong into a file: secrets, and where somebody lives.

A string is looked at as it is meant, not as it is spelled: JSON within it is taken apart, and an
escape is read as the character that it stands for.  What is found becomes ``[redacted]``, a home
becomes ``/home/user``, and doing it again changes nothing: so a replay can treat what is said in
the same way, and compare.  Ids survive.
"""

from __future__ import annotations

import functools
import json
import os
import re
from typing import TYPE_CHECKING, Final, TypeAlias, cast, final
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = ["MARK", "Redact", "Redactor"]

Redact: TypeAlias = "Callable[[str], str]"
"""A function that takes secrets out of a string; it must change nothing the second time."""

MARK: Final = "[redacted]"
_HOME: Final = "/home/user"
# A shorter value stands in too many words that are none.
_SHORTEST: Final = 8
_SHORT: Final = 200

# What the name of a secret ends with.  Each begins with a plain word, which a search finds fast, in
# texts of megabytes too, and then looks back.
_KEY: Final = "|".join(
    f"(?<={kind}key)|(?<={kind}[-_]key)"
    for kind in (
        *("api", "access", "account", "auth", "client", "encryption", "master"),
        *("private", "secret", "service", "session", "signing"),
    )
)
_NAMES: Final = (
    rf"key(?:{_KEY}|(?-i:(?<=[A-Z0-9]_KEY)))",
    # An id of MCP is called a token too.
    r"token(?<!progresstoken)(?<!progress[-_]token)",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credentials?",
    "authorization",
    "cookie",
    "auth(?<=[-_]auth)",
)
_STEMS: Final = ("key", "token", "secret", "passw", "passphrase", "credential", "auth", "cookie")
_SECRET_NAME: Final = re.compile(rf"(?:{'|'.join(_NAMES)})(?:[-_]?\d+)?$", re.IGNORECASE)
_SECRET_VARIABLE: Final = re.compile(
    r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|PASSPHRASE|CREDENTIALS?|AUTH|COOKIE|HEADERS"
    r"|APIKEY)(?:_|\d|$)",
    re.IGNORECASE,
)

# Each begins with something that a search finds fast, in texts of megabytes too.
_SHAPES: Final = tuple(
    re.compile(shape)
    for shape in (
        r"sk-ant-[\w-]{4,}",  # Anthropic
        r"sk-(?<![A-Za-z0-9]sk-)[\w-]{16,}",  # OpenAI
        r"(?:sk|rk|pk)_(?<![A-Za-z0-9].._)(?:live_|test_)?[A-Za-z0-9]{16,}",  # Stripe
        r"gh[opsur]_(?<![A-Za-z0-9]gh._)[A-Za-z0-9]{16,}",  # GitHub
        r"github_pat_\w{16,}",
        r"glpat-[\w-]{16,}",  # GitLab
        r"xox[a-z]-[\w-]{8,}",  # Slack
        r"(?:AKIA|ASIA)(?<![A-Za-z0-9]....)[A-Z0-9]{12,}",  # AWS
        r"AIza[\w-]{30,}",  # Google
        r"ya29\.[\w.-]{16,}",
        r"npm_(?<![A-Za-z0-9]npm_)[A-Za-z0-9]{30,}",
        r"pypi-(?<![A-Za-z0-9]pypi-)[\w-]{30,}",
        r"hf_(?<![A-Za-z0-9]hf_)[A-Za-z0-9]{16,}",  # Hugging Face
        r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",  # JWT
        r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
        r"(?<=://)[^/\s@\"'\\]+(?=@)",  # user:password@host
        r"(?i:(?<=bearer )|(?<=bearer%20))[\w.~+/=-]{8,}",
    )
)
# A cookie is a list, up to the end of its line or of the string that it stands in.
_COOKIE: Final = re.compile(r"""(?i)(cookie\\*["']?:[ \t]*\\*["']?)(?:(?!\\+[rn"'])[^\r\n"'])+""")
_BARE: Final = r"""(?! \\*["'] | [=\s] ) (?:(?!\\+[rn"']) [^\s"',;&)}])+"""
# The name, or the option, and the value; in quotes, which may be escaped, or without.
_NAMED: Final = (
    re.compile(rf"(?P<name>--[\w-]{{0,40}}?(?:{'|'.join(_NAMES)})[ ]+)(?x:{_BARE})", re.IGNORECASE),
    *(
        re.compile(
            rf"""(?P<name> {name} (?:[-_]?\d+)? (?:\\*["'])? [ \t]* [:=] [ \t]*
            (?P<quote>\\*["'])? (?:(?:basic|bearer|digest|negotiate|token)[ ]+)? )
            (?(quote) .{{1,4000}}? (?= (?P=quote) (?:[\s,;:)}}\]&|>\\]|$) | $ ) | {_BARE} )""",
            re.VERBOSE | re.IGNORECASE,
        )
        for name in _NAMES
    ),
)
_HOMES: Final = re.compile(r"(?<![\w.])/(?:home|Users)/(?!user\b(?![.-]))[^/\s\"'\\:,;)\]}<>|*`]+")
# The CLI names a project's folder by its path, with a dash for all that is no letter or digit.
_ENCODED_HOMES: Final = re.compile(r"(?<=projects/)-(?:home|Users)-[A-Za-z0-9]+")
_ESCAPE: Final = re.compile(r"\\+u00([2-7][0-9a-fA-F])|\\+(/)")


@final
class Redactor:
    """Takes out what `recording` promises to take out.

    Args:
      env: The environment of the CLI: secrets are told by the names of their variables.
      more: What else is taken out of each string.
    """

    def __init__(self, env: Mapping[str, str], more: Redact | None = None) -> None:
        self._more = more
        # Most strings of a conversation are short and come again and again.
        self._short = functools.lru_cache(maxsize=4096)(self._look)
        both = [*env.items(), *os.environ.items()]
        secrets = {v for name, v in both if _SECRET_VARIABLE.search(name) and len(v) >= _SHORTEST}
        # What takes the place of something is never taken out itself.
        secrets = {secret for secret in secrets if secret not in f"{MARK} {_HOME}"}
        self._secrets = _any_of({s for secret in secrets for s in _spellings(secret)})
        homes = {v.rstrip("/") for name, v in both if name == "HOME" and v.startswith("/")}
        homes = {home for home in homes if home and not f"{home}/".startswith(f"{_HOME}/")}
        self._homes = _any_of(homes, r"(?<![\w.-])", r"(?![\w.-])")
        encoded = {re.sub(r"[^A-Za-z0-9]", "-", home) for home in homes}
        self._encoded = _any_of(encoded, "(?<=projects/)", "(?![A-Za-z0-9])")

    def variables(self, env: Mapping[str, str]) -> dict[str, str]:
        """Redact the values of variables."""
        return {
            name: MARK if _SECRET_VARIABLE.search(name) else self.text(value)
            for name, value in env.items()
        }

    def arguments(self, argv: Sequence[str]) -> list[str]:
        """Redact a command line, where the value of an option may be an argument of its own."""
        told: list[str] = []
        for argument in argv:
            before = told[-1] if told else ""
            secret = before.startswith("--") and _SECRET_NAME.search(before)
            flag, equals, value = argument.partition("=")
            if secret:
                told.append(MARK)
            elif equals and flag.startswith("-") and not _SECRET_NAME.search(flag):
                # The value of a flag may be JSON.
                told.append(flag + equals + self.text(value))
            else:
                told.append(self.text(argument))
        return told

    def value(self, value: object, *, secret: bool = False) -> object:
        """Redact a JSON value: its strings, its keys, and all that a secret's name stands for."""
        match value:
            case str():
                return MARK if secret and value else self.text(value)
            case dict():
                items = cast("dict[str, object]", value).items()
                return {
                    self.text(name): self.value(
                        inner, secret=secret or _SECRET_NAME.search(name) is not None
                    )
                    for name, inner in items
                }
            case list():
                return [self.value(inner, secret=secret) for inner in cast("list[object]", value)]
            case _:
                number = isinstance(value, int | float) and not isinstance(value, bool)
                return MARK if secret and number else value

    def text(self, text: str) -> str:
        """Redact a string."""
        found = self._short(text) if len(text) < _SHORT else self._look(text)
        return found if self._more is None else self._more(found)

    def _look(self, text: str) -> str:
        if text[:1] in {"{", "["}:
            text = self._nested(text)
        found = self._plain(text)
        meant = _ESCAPE.sub(_meaning, found) if "\\" in found else found
        told = self._plain(meant)
        # Where nothing was hidden, the spelling stays.
        return found if told == meant else told

    def _nested(self, text: str) -> str:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        told = self.value(value)
        same = told == value
        return text if same else json.dumps(told, ensure_ascii=False, separators=(",", ":"))

    def _plain(self, text: str) -> str:
        if self._secrets is not None:
            text = self._secrets.sub(MARK, text)
        for shape in _SHAPES:
            text = shape.sub(MARK, text)
        text = _without_named(text)
        if self._homes is not None:
            text = self._homes.sub(_HOME, text)
        if self._encoded is not None:
            text = self._encoded.sub("-home-user", text)
        return _ENCODED_HOMES.sub("-home-user", _HOMES.sub(_HOME, text))


def _without_named(text: str) -> str:
    low = text.lower()
    if any(stem in low for stem in _STEMS):
        text = _COOKIE.sub(rf"\g<1>{MARK}", text)
        for named in _NAMED:
            text = named.sub(rf"\g<name>{MARK}", text)
    return text


def _meaning(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else escape[2]


def _any_of(texts: Iterable[str], before: str = "", after: str = "") -> re.Pattern[str] | None:
    # The longest first, since one may be the beginning of another.
    found = "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True))
    return re.compile(f"{before}(?:{found}){after}") if found else None


def _spellings(secret: str) -> Iterator[str]:
    yield secret
    yield quote(secret, safe="")
    once = secret
    for _ in range(2):  # A string within JSON, and one within JSON within a string.
        once = json.dumps(once)[1:-1]
        yield once
