"""What three modules share, and no more."""

from __future__ import annotations

from typing import Final

__all__ = ["INTERRUPT_TEXT_PREFIX"]

# The CLI puts an internal diagnostic in `errors` of an interrupted turn; it is not for people
# (CLI 2.1.332).
INTERRUPT_TEXT_PREFIX: Final = "[ede_diagnostic]"
