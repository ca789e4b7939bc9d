"""One line of JSON to one object, whatever its text."""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["parse_object"]

_decode: Final = msgspec.json.Decoder(dict[str, object]).decode


def parse_object(line: bytes | str) -> dict[str, object]:
    """Parse a line that holds one JSON object.

    Half emojis (lone surrogates), ``NaN`` and numbers out of a float's range are taken as
    Python's `json` takes them; of a key that is there twice, the last counts.

    Args:
      line: The line, with or without its end; bytes are UTF-8, with or without a mark.

    Raises:
      ValueError: if it is no JSON object, or one that cannot be held: not UTF-8, nested too
        deeply, an integer of more digits than Python converts.
    """
    try:
        return _decode(line)
    except msgspec.ValidationError as error:
        # An array or a bare value, or a number that msgspec does not hold.
        if not _begins_object(line):
            raise ValueError(str(error)) from error
    except (ValueError, RecursionError):
        pass
    return _parse_slowly(line)


def _begins_object(line: bytes | str) -> bool:
    if isinstance(line, str):
        return line.lstrip().startswith("{")
    return line.lstrip().startswith(b"{")


def _parse_slowly(line: bytes | str) -> dict[str, object]:
    import json  # noqa: PLC0415  Hardly any program ever needs it, and it takes a while to import.

    text = line.decode() if isinstance(line, bytes) else line
    try:
        parsed: object = json.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    if not isinstance(parsed, dict):
        raise ValueError("the JSON is not an object")
    return parsed
