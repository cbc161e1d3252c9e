"""Where the boxes of a picture stand: a tree from the top down, compact and without overlaps.

In the manner of Reingold and Tilford: each subtree is laid out by itself and then pushed against
its left neighbour until their outlines (outline.py) touch, and a parent stands over the middle of
its children. The whole takes time linear in the number of boxes, however deep the tree.

Plans are broad at the leaves (the patterns of a basic graph pattern) and screens are not. So three
leaves or more in a row stand below each other, in a *column* beside a rail or in several, and so do
all children of a parent that would else be broader than a screen, or than a square for all boxes. A
chain of joins, whose row is not much broader than the join below, stays a staircase.

A parent whose children fill more than a screen stands over the first of them: a reader who looks at
the upper left corner of a large picture sees its root.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from math import ceil, sqrt

from streamsparql.look.explain.drawing.outline import Outline, distance

GAP_X = 20.0
GAP_Y = 26.0
RAIL = 14.0
"""How far a column is from the line where its rail comes down, half of it to the left."""

_SCREEN = 1250.0
_SPREAD = 2.5
_GAIN = 0.8  # a column has to be narrower than so much of the row that it replaces
_LEAF_GAP, _TREE_GAP = 8.0, 18.0  # between leaves, and between trees, of a column
_COLUMN = 3  # so many leaves in a row, or more, are a column

Size = tuple[float, float]


@dataclass
class Block:
    """A box with its children, or a column of blocks, whose `box` is None.

    During the layout x and y count from the block's own frame, and `frame` is where that stands in
    the frame of its parent; then they are what they are in the picture.
    """

    box: int | None
    width: float = 0.0
    height: float = 0.0
    children: list[Block] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    frame: Size = (0.0, 0.0)
    outline: Outline = field(init=False)

    @property
    def bottom(self) -> float:
        """Where the box ends."""
        return self.y + self.height

    @property
    def anchor(self) -> float:
        """Where the line from above comes in: the middle of a box, the rail of a column."""
        return self.x + (RAIL / 2 if self.box is None else self.width / 2)


def layout(children: list[list[int]], sizes: list[Size]) -> tuple[list[Block], Size]:
    """The blocks of a tree, parents first, with their places, and the size of the whole.

    `children` gives the children of each box by index, box 0 being the root.

    >>> blocks, size = layout([[1, 2], [], []], [(40, 20), (50, 20), (50, 20)])
    >>> [(block.x, block.y) for block in blocks], size
    ([(40.0, 0.0), (0.0, 46.0), (70.0, 46.0)], (120.0, 66.0))
    """
    blocks = _blocks(children, sizes)
    area = sum((width + GAP_X) * (height + GAP_Y) for width, height in sizes)
    broadest = max(_SCREEN, sqrt(_SPREAD * area))
    for block in reversed(blocks):  # what is below comes later
        _placed(block, broadest)
    whole = blocks[0].outline
    return _in_one_frame(blocks[0], -whole.low), (whole.breadth, whole.bottom)


def _blocks(children: list[list[int]], sizes: list[Size]) -> list[Block]:
    """The blocks, parents first."""
    blocks = [Block(0, *sizes[0])]
    for block in blocks:
        assert block.box is not None
        block.children = [Block(child, *sizes[child]) for child in children[block.box]]
        blocks += block.children
    return blocks


def _in_one_frame(root: Block, x: float) -> list[Block]:
    """All blocks, parents first, with x and y as they are in the picture."""
    found: list[Block] = []
    pending = [(root, x, 0.0)]
    while pending:
        block, x, y = pending.pop()
        found.append(block)
        x, y = x + block.frame[0], y + block.frame[1]
        block.x, block.y = block.x + x, block.y + y
        pending += ((child, x, y) for child in reversed(block.children))
    return found


def _placed(block: Block, broadest: float) -> None:
    """Puts the children below the block, and so knows the outline of the whole."""
    if block.children:
        block.children = _folded(block.children, broadest)
        block.outline = _row(block)
    else:
        block.outline = Outline.of(block.width, block.height)


def _folded(children: list[Block], broadest: float) -> list[Block]:
    """What stands beside each other below one box: its children, or columns of them."""
    row: list[Block] = []
    for leaves, run in groupby(children, key=lambda child: not child.children):
        blocks = list(run)
        row += _columns(blocks, broadest) if leaves and len(blocks) >= _COLUMN else blocks
    breadth = _breadth(row)
    widest = max(block.outline.breadth for block in row)
    return _columns(children, broadest) if breadth > broadest and widest < _GAIN * breadth else row


def _breadth(row: list[Block]) -> float:
    """About how broad blocks are beside each other."""
    x = 0.0
    low, high = row[0].outline.low, row[0].outline.high
    for before, block in pairwise(row):
        x += distance(before.outline.right, block.outline.left) + GAP_X
        low, high = min(low, x + block.outline.low), max(high, x + block.outline.high)
    return high - low


def _columns(blocks: list[Block], broadest: float) -> list[Block]:
    """One column, or as many as are needed to be no taller than broad."""
    heights = [block.outline.bottom + _gap(block) for block in blocks]
    widest = max(block.outline.breadth for block in blocks) + RAIL + GAP_X
    count = max(1, min(ceil(sum(heights) / broadest), int(broadest / widest)))
    most = sum(heights) / count
    columns: list[list[Block]] = [[] for _ in range(count)]
    for block, end in zip(blocks, accumulate(heights), strict=True):
        columns[min(int((end - 1) / most), count - 1)].append(block)
    return [_column(column) for column in columns if column]


def _column(blocks: list[Block]) -> Block:
    """Subtrees below each other, flush left beside a rail."""
    y = 0.0
    for block in blocks:
        block.frame = RAIL - block.outline.low, y
        y += block.outline.bottom + _gap(block)
    width = RAIL + max(block.outline.breadth for block in blocks)
    column = Block(None, width, children=blocks)
    column.outline = Outline.of(width, y - _gap(blocks[-1]))
    return column


def _gap(block: Block) -> float:
    return _TREE_GAP if block.children else _LEAF_GAP


def _row(block: Block) -> Outline:
    """The children beside each other, the block over their middle, or over a lone column's rail."""
    y = block.height + GAP_Y
    children = block.children
    left, right = children[0].outline.left, children[0].outline.right
    for child in children:
        outline = child.outline
        outline.move(0.0, y)
        x = distance(right, outline.left) + GAP_X if child is not children[0] else 0.0
        outline.move(x, 0.0)
        child.frame = x, y
        if child is not children[0]:
            left, right = left.over(outline.left), outline.right.over(right)
    ends = [child.frame[0] + child.x + child.width / 2 for child in children]
    alone = len(children) == 1 and children[0].box is None
    block.x = children[0].x if alone else (ends[0] + ends[-1] - block.width) / 2
    low = min(child.outline.low for child in children)
    if max(child.outline.high for child in children) - low > _SCREEN:
        block.x = children[0].frame[0] + children[0].x
    reached = [child.frame[0] + child.anchor for child in children]
    if not alone:
        reached.append(block.anchor)
    left.add(block.height, y, min(reached))
    left.add(0.0, block.height, block.x)
    right.add(block.height, y, max(reached))
    right.add(0.0, block.height, block.x + block.width)
    low = min(block.x, *(child.outline.low for child in children))
    high = max(block.x + block.width, *(child.outline.high for child in children))
    return Outline(left, right, low, high)
