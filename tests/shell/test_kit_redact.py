"""Laws of redaction: no secret stays, whatever hides it; ids do; and twice is as good as once."""

from __future__ import annotations

import json
import uuid
from typing import Any, Final
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_trio.testing._redact import MARK, Redactor
from tests.recordings import rows, whole_set

VARIABLE: Final = 'pa"ss\\wörd/1'
ENV: Final = {"HOME": "/srv/alice", "MY_SERVICE_TOKEN": VARIABLE, "SHORT_TOKEN": "abc", "LANG": "C"}
REDACTOR: Final = Redactor(ENV)
KEY: Final = "sk-ant-api03-AbCdEfGh-123_456"


def escaped(text: str) -> str:
    """Spell each character as JSON may."""
    return "".join(f"\\u{ord(character):04x}" for character in text)


def quoted(text: str, times: int) -> str:
    for _ in range(times):
        text = json.dumps(text)[1:-1]
    return text


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (f"my key is {KEY}, yes", f"my key is {MARK}, yes"),
        ("sk-proj-0123456789abcdefghij", MARK),
        ("ghp_0123456789abcdefghij and github_pat_0123456789abcdefghij", f"{MARK} and {MARK}"),
        ("glpat-0123456789abcdefghij", MARK),
        ("xoxb-123456789012-abc", MARK),
        ("AKIAIOSFODNN7EXAMPLE", MARK),
        ("AIzaSyA0123456789abcdefghijklmnopqrstuv", MARK),
        ("sk_live_0123456789abcdefghij", MARK),
        ("npm_0123456789abcdefghij0123456789abcdef", MARK),
        ("pypi-AgEIcHlwaS5vcmcCJDU2N2Y1NDE2LTk4", MARK),
        ("hf_0123456789abcdefghij", MARK),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ", MARK),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nx",
            f"{MARK}\nx",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMIIE", MARK),
        ("Bearer abcdefgh12345", f"Bearer {MARK}"),
        ("https://me:hunter2@example.org/x", f"https://{MARK}@example.org/x"),
        ("git clone https://tok@github.com", f"git clone https://{MARK}@github.com"),
        ("export MY_TOKEN=abc; ls", f"export MY_TOKEN={MARK}; ls"),
        ("OPENAI_KEY=abc ls", f"OPENAI_KEY={MARK} ls"),
        ("password: hunter2", f"password: {MARK}"),
        ("Authorization: Basic dXNlcjpwYXNz", f"Authorization: Basic {MARK}"),
        ('curl -H "x-api-key: abc" x', f'curl -H "x-api-key: {MARK}" x'),
        ("curl -H 'Cookie: a=b; c=d' x", f"curl -H 'Cookie: {MARK}' x"),
        ("tool --api-key abc --fast", f"tool --api-key {MARK} --fast"),
        ("tool --api-key=abc", f"tool --api-key={MARK}"),
        ('password = "it\\"s me"', f'password = "{MARK}"'),
        ("client_secret='two words', x", f"client_secret='{MARK}', x"),
        ('1→  \\"apiKey\\": \\"a b\\",', f'1→  \\"apiKey\\": \\"{MARK}\\",'),
        (f"it is {VARIABLE}.", f"it is {MARK}."),
        (f"it is {quoted(VARIABLE, 1)}.", f"it is {MARK}."),
        (f"it is {quoted(VARIABLE, 2)}.", f"it is {MARK}."),
        (f"https://x?a={quote(VARIABLE, safe='')}", f"https://x?a={MARK}"),
        ("/srv/alice/x and /srv/alice", "/home/user/x and /home/user"),
        ("/home/bob/x /Users/eve", "/home/user/x /home/user"),
        ("~/.claude/projects/-srv-alice-x/1", "~/.claude/projects/-home-user-x/1"),
        ("~/.claude/projects/-Users-eve-x/1", "~/.claude/projects/-home-user-x/1"),
    ],
)
def test_a_secret_in_a_text_is_taken_out(text: str, redacted: str) -> None:
    assert REDACTOR.text(text) == redacted
    assert REDACTOR.text(redacted) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "input_tokens=5 max_tokens: 100",
        '{"progressToken": 7, "progress_token": "p-1"}',
        "toolu_01Fake000001abcdef msg_01Fake000001abcdef req_011CSabcdefghijkl",
        "task-notification-with-a-long-name, disk_0123456789abcdefghij",
        "the secret of the token is the key",
        "/srv/alicex /mnt/srv/alice/x /home",
        "abc is short, and C is no secret",
        "monkey=1 keyboard: x",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert REDACTOR.text(text) == text


@given(st.uuids())
def test_a_uuid_stays(each: uuid.UUID) -> None:
    for text in (str(each), f"--session-id={each}", f"/x/{each}.jsonl", each.hex):
        assert REDACTOR.text(text) == text


@pytest.mark.slow
def test_a_recorded_conversation_stays() -> None:
    # Their home is the neutral one.
    redactor = Redactor({})
    for path in whole_set():
        for row in rows(path):
            assert redactor.value(row) == row, path


def json_of(spelled: str) -> str:
    return f'{{"x": "{spelled}"}}'


def hidden_in(secret: str) -> dict[str, Any]:
    """Give places where a secret may stand in a frame, or in a line that is none."""
    settings = json.dumps({"env": {"X": secret}})
    return {
        "text": f"it is {secret}",
        "value": {"a": [{"b": secret}]},
        "key": {"a": {secret: 1}},
        "json in a string": {"content": settings},
        "json in json in a string": {"content": json.dumps({"inner": settings})},
        "json behind something": {"content": f"1 {settings}"},
        "json in json behind something": {"content": "1 " + json.dumps({"inner": settings})},
        "escapes in json in a string": {"content": json_of(escaped(secret))},
        "escapes behind something": {"content": f"1 {json_of(escaped(secret))}"},
        "escapes of escapes": {"content": "1 " + json_of(escaped(secret).replace("\\", "\\\\"))},
        "half in escapes": {"content": f'1 "{secret[:5]}{escaped(secret[5])}{secret[6:]}"'},
    }


@pytest.mark.parametrize("place", hidden_in(KEY))
def test_a_secret_is_found_wherever_it_hides(place: str) -> None:
    redacted = REDACTOR.value(hidden_in(KEY)[place])
    told = json.dumps(redacted)
    assert MARK in told
    for piece in (KEY, KEY[-8:], escaped(KEY)[-18:], escaped(KEY[-1:])):
        assert piece not in told
    assert REDACTOR.value(redacted) == redacted


NAMES: Final = """
    apiKey api_key x-api-key API-KEY accessToken ANTHROPIC_AUTH_TOKEN client_secret password
    db_passwd passphrase credentials Authorization proxy-authorization Cookie _auth OPENAI_KEY
    privateKey token2
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_whatever_has_the_name_of_a_secret_is_taken_out(name: str) -> None:
    told = {name: "x", "other": "x", "deep": {name: ["x", 5, {"y": "x"}, None, True, ""]}}
    assert REDACTOR.value(told) == {
        name: MARK,
        "other": "x",
        "deep": {name: [MARK, MARK, {"y": MARK}, None, True, ""]},
    }


def test_the_command_line_and_the_environment_are_redacted() -> None:
    settings = '--settings={"env":{"ANTHROPIC_API_KEY":"x"}}'
    argv = ["claude", settings, "--api-key", "x", "--api-key=x", "--verbose", "x", "--model=x"]
    assert REDACTOR.arguments(argv) == [
        "claude",
        f'--settings={{"env":{{"ANTHROPIC_API_KEY":"{MARK}"}}}}',
        "--api-key",
        MARK,
        f"--api-key={MARK}",
        "--verbose",
        "x",
        "--model=x",
    ]
    env = {"A_TOKEN": "x", "CUSTOM_HEADERS": "x", "PATH": "/srv/alice/bin:/bin", "MAX_TOKENS": "9"}
    assert REDACTOR.variables(env) == {
        "A_TOKEN": MARK,
        "CUSTOM_HEADERS": MARK,
        "PATH": "/home/user/bin:/bin",
        "MAX_TOKENS": "9",
    }


def test_the_hook_sees_each_string_that_is_left() -> None:
    redactor = Redactor(ENV, lambda text: text.replace("Acme", "ACME"))
    told = {"Acme": ["Acme & Sons", json.dumps({"a": "Acme"}), KEY]}
    assert redactor.value(told) == {"ACME": ["ACME & Sons", '{"a":"ACME"}', MARK]}


@pytest.mark.parametrize("home", ["/home/user", "/home/user/x", "/", "", "x", "/home/user2"])
@pytest.mark.parametrize("secret", ["redacted", "[redacted]", "home/user", "acted] /home"])
def test_what_takes_the_place_of_something_stays(home: str, secret: str) -> None:
    redactor = Redactor({"HOME": home, "A_TOKEN": secret})
    for text in (f"{home}/x/x", MARK, "/home/user/x/home/user", f"{secret}{secret}", KEY):
        once = redactor.text(text)
        assert redactor.text(once) == once


PIECES: Final = st.sampled_from(
    [
        *("token", "password", "api_key", "--api-key ", "Bearer ", "Authorization: ", "cookie: "),
        *("=", ": ", " ", '"', "'", "\\", '\\"', "\n", ",", "{", "}", "[", "]", "://", "@", "&"),
        *(
            KEY,
            MARK,
            VARIABLE,
            "abc",
            "/home/bob",
            "/srv/alice",
            "projects/-home-bob",
            "-",
            "\\u002d",
        ),
        *(
            "eyJabcdefgh.eyJabcdefgh.",
            "-----BEGIN PRIVATE KEY-----",
            "AKIA",
            "é",
            "1234567890123456",
        ),
    ]
)
TEXTS: Final = st.lists(PIECES, max_size=12).map("".join)


@given(TEXTS)
def test_the_second_time_changes_nothing(text: str) -> None:
    once = REDACTOR.text(text)
    assert REDACTOR.text(once) == once
    assert KEY not in once


@pytest.mark.slow
@given(
    st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=5)
)
def test_a_value_is_redacted_like_what_is_read_again(value: Any) -> None:
    once = REDACTOR.value(value)
    assert json.loads(json.dumps(once)) == once
    assert REDACTOR.value(once) == once
