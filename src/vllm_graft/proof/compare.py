"""The first place at which two pieces of JSON differ, bit for bit."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

ABSENT: Final = "<absent>"
_SHOWN: Final = 60  # characters of a value


class Difference(NamedTuple):
    """Two values that should be the same.

    Args:
        path: Where they stand, as in ``greedy[2].outputs[0].tokens[5]``.
        base: What is there in the one.
        grafted: What is there in the other.
    """

    path: str
    base: Any
    grafted: Any

    def __str__(self) -> str:
        return f"{self.path}: base {_short(self.base)}, grafted {_short(self.grafted)}"


def first_difference(base: Any, grafted: Any, path: str = "") -> Difference | None:
    """The first difference in document order, keys sorted; None where all is equal.

    Numbers are compared with their type: 1, 1.0 and true are three values.

    Args:
        base: A JSON value.
        grafted: The one that must equal it.
        path: What to call them.
    """
    if type(base) is not type(grafted):
        return Difference(path, base, grafted)
    if isinstance(base, dict):
        for key in sorted(base.keys() | grafted.keys()):
            inner = f"{path}.{key}" if path else str(key)
            found = first_difference(
                base.get(key, ABSENT), grafted.get(key, ABSENT), inner
            )
            if found is not None:
                return found
        return None
    if isinstance(base, list):
        for place, (one, other) in enumerate(zip(base, grafted, strict=False)):
            found = first_difference(one, other, f"{path}[{place}]")
            if found is not None:
                return found
        if len(base) != len(grafted):
            place = min(len(base), len(grafted))
            values = [v[place] if place < len(v) else ABSENT for v in (base, grafted)]
            return Difference(f"{path}[{place}]", *values)
        return None
    # By their text: NaN is itself here, and 0.0 is not -0.0.
    return None if repr(base) == repr(grafted) else Difference(path, base, grafted)


def _short(value: Any) -> str:
    text = repr(value) if value != ABSENT else ABSENT
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
