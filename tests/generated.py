"""Strategies for sources in every shape, for the property tests."""

from typing import NamedTuple

from hypothesis import strategies as st

from vllm_graft.engine.text import lines_in_strings

NAMES = st.sampled_from(["alpha", "beta", "self", "\u00e9t\u00e9", "out"])
HEADERS = [
    "if {0}:",
    "for {1} in {0}:",
    "while {0}:",
    "with {0} as {1}, open(x):  # with",
    "def {1}(a, *b, c={0}):",
    "async def {1}(a: int = 1) -> 'str':",
    "class {1}(Base, metaclass={1}):",
]

# A block is a list of logical lines, comments and blank lines (strings) and of
# compound statements: lists of clauses, each a header with its block.
Block = list[object]


@st.composite
def expressions(draw: st.DrawFn) -> str:
    name, other = draw(NAMES), draw(NAMES)
    shapes = [
        name,
        f"{name}.{other}",
        f"{name}( {other},k = '\u65e5\u672c # no' )",
        f"[{name} for {name} in {other}]",
        f"{name} if {other} else (1, 2)",
        f"f'{{{name}!r}} {{{other}:>4}} #'",
        f"{name} and not {other} or -1 < 2",
        f"lambda {name}, *a: {name}",
        f'"""two\nlines # really\n""" + {name}',
        f"({name}\n     # inner\n   + {other})",
        f"{name} + \\\n  {other}",
        f"call({name},  # why\n  {other})",
    ]
    return draw(st.sampled_from(shapes))


@st.composite
def simple(draw: st.DrawFn) -> str:
    name, value = draw(NAMES), draw(expressions())
    shapes = [
        f"{name} = {value}",
        f"{name}: int = {value}",
        f"{name} += {value}  # trailing",
        f"{name}({value})",
        f"assert {value}",
        f"del {name}",
        "pass",
        f"return {value}",
        f"raise {name} from None",
        f"import {name} as x, os",
    ]
    return draw(st.sampled_from(shapes))


@st.composite
def blocks(draw: st.DrawFn, depth: int = 2, *, notes: bool = True) -> Block:
    """A block; with comments and blank lines above its statements, if wanted."""
    block: Block = []
    for _ in range(draw(st.integers(1, 3))):
        if notes and draw(st.integers(0, 3)) == 0:
            block.append(draw(st.sampled_from(["# a comment", "", "# more"])))
        nested = depth > 0 and draw(st.integers(0, 2)) == 0
        block.append(draw(_compounds(depth, notes=notes) if nested else simple()))
    return block


@st.composite
def _compounds(draw: st.DrawFn, depth: int, *, notes: bool) -> Block:
    def inner() -> Block:
        return draw(blocks(depth - 1, notes=notes))

    shape = draw(st.integers(0, len(HEADERS)))
    if shape == len(HEADERS):
        clauses: Block = [("try:", inner()), ("except E as e:", inner())]
        clauses += [("else:", inner())] if draw(st.booleans()) else []
        return clauses + ([("finally:", inner())] if draw(st.booleans()) else [])
    header = HEADERS[shape].format(f"({draw(expressions())})", draw(NAMES))
    has_else = shape < 3 and draw(st.booleans())
    return [(header, inner()), *([("else:", inner())] if has_else else [])]


def render(block: Block, unit: str, indent: str = "") -> list[str]:
    """The physical lines of a block, without their ends."""
    out: list[str] = []
    for item in block:
        if isinstance(item, str):
            inside = lines_in_strings(item)
            out += [
                line if number in inside or not line else indent + line
                for number, line in enumerate(item.split("\n"))
            ]
            continue
        assert isinstance(item, list)
        for header, body in item:
            out += render([header], unit, indent)
            out += render(body, unit, indent + unit)
    return out


class Frame(NamedTuple):
    """What surrounds the code that a patch is about."""

    above: Block
    below: Block
    newline: str
    unit: str
    ending: bool

    def text(self, block: Block) -> str:
        """A file with a block between the calls ``above()`` and ``below()``."""
        body = [*self.above, "above()", *block, "below()", *self.below]
        lines = render(["# \u65e5\u672c", [("def scope():", body)]], self.unit)
        text = self.newline.join("\n".join(lines).split("\n"))
        return text + (self.newline if self.ending else "")


frames = st.builds(
    Frame,
    blocks(),
    blocks(),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["    ", "\t", "  "]),
    st.booleans(),
)

PIECES = [
    *"\n\t ()[]{}:;#$'\"\\@+-.,=\0\r\f\ufeff\u2028\ud800",
    *("...", "$x", "$_", "\n+", "\n-", "\n ", "\n#", "\n@@ or\n", "\nor\n", "where "),
    *(" without ", " with ", "'''", 'f"{', "else:", "\n    ", "async ", "if 1: "),
]


@st.composite
def mutated(draw: st.DrawFn, text: str) -> str:
    """``text`` with a few pieces replaced."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        stop = min(len(text), at + draw(st.integers(0, 12)))
        text = text[:at] + draw(st.sampled_from(["", *PIECES])) + text[stop:]
    return text
