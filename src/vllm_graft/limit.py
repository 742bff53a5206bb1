"""What the statements under an ellipsis must and must not have."""

from __future__ import annotations

import ast
from typing import Final, NamedTuple


class Limit(NamedTuple):
    """The rest of a line ``... without EXPR, EXPR`` or ``... with EXPR, EXPR``.

    Args:
        without: Expressions of which none may occur, at any depth.
        having: Expressions that must all occur, at any depth; their metavariables
            are bound by it.
    """

    without: tuple[ast.expr, ...] = ()
    having: tuple[ast.expr, ...] = ()


NO_LIMIT: Final = Limit()
