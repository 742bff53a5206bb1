"""What the statements under an ellipsis must and must not have."""

from __future__ import annotations

import ast
from typing import Final, NamedTuple


class Limit(NamedTuple):
    """The rest of a line ``... with EXPR, EXPR without EXPR, EXPR``.

    Args:
        without: Expressions of which none may occur, at any depth.
        having: Expressions that must all occur, at any depth; their metavariables
            are bound by it.
    """

    without: tuple[ast.expr, ...] = ()
    having: tuple[ast.expr, ...] = ()

    @property
    def reaches_edge(self) -> bool:
        """Whether an ellipsis at a pattern's edge runs to the edge of the block.

        What must be without something means nothing where it may stop anywhere.
        """
        return bool(self.without and not self.having)


NO_LIMIT: Final = Limit()
