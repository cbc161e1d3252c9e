"""The layout of a tree of boxes, from the top down, compact and without overlaps.

The algorithm is that of Reingold and Tilford: each subtree is laid out separately and then pushed
against its left neighbour until their outlines (outline.py) touch; a parent is centred over its
children. It takes time linear in the number of boxes, at any depth.

Plans are wide at the leaves (the patterns of a basic graph pattern), and screens are not. So three
or more adjacent leaves are stacked in one or more *columns*, each next to a vertical line, its
*rail*. All children of a parent are stacked if their row would be wider than a screen, and than a
square that has room for all boxes. A chain of joins, whose row is hardly wider than the join below,
stays a staircase.

A parent whose children are wider than a screen is placed over the first of them, so that the root
of a large picture is in its upper left corner.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from math import ceil, sqrt

from streamsparql.look.explain.drawing.outline import Outline, distance

GAP_X = 20.0
GAP_Y = 26.0
RAIL = 14.0
"""The width reserved for the rail of a column, which is drawn in its middle."""

_SCREEN_WIDTH = 1250.0
_SPREAD = 2.5  # the ratio of width to height of a large picture
_MAX_WIDTH_RATIO = 0.8  # of a column to the row that it replaces
_LEAF_GAP, _TREE_GAP = 8.0, 18.0  # between the leaves, and between the trees, of a column
_MIN_COLUMN = 3  # the number of adjacent leaves that are stacked

Size = tuple[float, float]


@dataclass
class TreeBlock:
    """A box with its children, or a column of blocks, whose `box` is None.

    During the layout x and y are relative to the block's frame, and `frame` is the origin of its
    frame in that of the parent. Afterwards they are coordinates of the picture.
    """

    box: int | None
    width: float = 0.0
    height: float = 0.0
    children: list[TreeBlock] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    frame: Size = (0.0, 0.0)
    outline: Outline = field(init=False)

    @property
    def bottom(self) -> float:
        """The y at which the box ends."""
        return self.y + self.height

    @property
    def anchor(self) -> float:
        """The x of the line from the parent: the middle of a box, the rail of a column."""
        return self.x + (RAIL / 2 if self.box is None else self.width / 2)


def layout(children: list[list[int]], sizes: list[Size]) -> tuple[list[TreeBlock], Size]:
    """Return the positioned blocks of a tree, parents first, and the size of the picture.

    `children` lists the children of each box by index; box 0 is the root.

    >>> blocks, size = layout([[1, 2], [], []], [(40, 20), (50, 20), (50, 20)])
    >>> [(block.x, block.y) for block in blocks], size
    ([(40.0, 0.0), (0.0, 46.0), (70.0, 46.0)], (120.0, 66.0))
    """
    blocks = _blocks(children, sizes)
    area = sum((width + GAP_X) * (height + GAP_Y) for width, height in sizes)
    max_width = max(_SCREEN_WIDTH, sqrt(_SPREAD * area))
    for block in reversed(blocks):  # children first
        _place_children(block, max_width)
    outline = blocks[0].outline
    return _absolute(blocks[0], -outline.low), (outline.width, outline.bottom)


def _blocks(children: list[list[int]], sizes: list[Size]) -> list[TreeBlock]:
    """Return a block per box, parents first."""
    blocks = [TreeBlock(0, *sizes[0])]
    for block in blocks:
        assert block.box is not None
        block.children = [TreeBlock(child, *sizes[child]) for child in children[block.box]]
        blocks += block.children
    return blocks


def _absolute(root: TreeBlock, x: float) -> list[TreeBlock]:
    """Move all blocks to coordinates of the picture; return them, parents first."""
    blocks: list[TreeBlock] = []
    pending = [(root, x, 0.0)]
    while pending:
        block, x, y = pending.pop()
        blocks.append(block)
        x, y = x + block.frame[0], y + block.frame[1]
        block.x, block.y = block.x + x, block.y + y
        pending += ((child, x, y) for child in reversed(block.children))
    return blocks


def _place_children(block: TreeBlock, max_width: float) -> None:
    """Place the children below the block, and set the outline of its subtree."""
    if block.children:
        block.children = _folded(block.children, max_width)
        block.outline = _row(block)
    else:
        block.outline = Outline.of(block.width, block.height)


def _folded(children: list[TreeBlock], max_width: float) -> list[TreeBlock]:
    """Return the row of blocks below one box: its children, or columns of them."""
    row: list[TreeBlock] = []
    for leaves, run in groupby(children, key=lambda child: not child.children):
        blocks = list(run)
        row += _columns(blocks, max_width) if leaves and len(blocks) >= _MIN_COLUMN else blocks
    width = _row_width(row)
    widest = max(block.outline.width for block in row)
    too_wide = width > max_width and widest < _MAX_WIDTH_RATIO * width
    return _columns(children, max_width) if too_wide else row


def _row_width(row: list[TreeBlock]) -> float:
    """Estimate the width of blocks in a row, where each touches its neighbours only."""
    x = 0.0
    low, high = row[0].outline.low, row[0].outline.high
    for before, block in pairwise(row):
        x += distance(before.outline.right, block.outline.left) + GAP_X
        low, high = min(low, x + block.outline.low), max(high, x + block.outline.high)
    return high - low


def _columns(blocks: list[TreeBlock], max_width: float) -> list[TreeBlock]:
    """Stack blocks in one column, or in several that together are about as tall as wide."""
    heights = [block.outline.bottom + _gap(block) for block in blocks]
    widest = max(block.outline.width for block in blocks) + RAIL + GAP_X
    count = max(1, min(ceil(sum(heights) / max_width), int(max_width / widest)))
    height = sum(heights) / count
    columns: list[list[TreeBlock]] = [[] for _ in range(count)]
    for block, end in zip(blocks, accumulate(heights), strict=True):
        columns[min(int((end - 1) / height), count - 1)].append(block)
    return [_column(column) for column in columns if column]


def _column(blocks: list[TreeBlock]) -> TreeBlock:
    """Stack subtrees, flush left, to the right of a rail."""
    y = 0.0
    for block in blocks:
        block.frame = RAIL - block.outline.low, y
        y += block.outline.bottom + _gap(block)
    width = RAIL + max(block.outline.width for block in blocks)
    column = TreeBlock(None, width, children=blocks)
    column.outline = Outline.of(width, y - _gap(blocks[-1]))
    return column


def _gap(block: TreeBlock) -> float:
    return _TREE_GAP if block.children else _LEAF_GAP


def _row(block: TreeBlock) -> Outline:
    """Place the children in a row, and the block over their middle; return the outline.

    A block whose only child is a column is placed over its rail.
    """
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
    if max(child.outline.high for child in children) - low > _SCREEN_WIDTH:
        block.x = children[0].frame[0] + children[0].x
    anchors = [child.frame[0] + child.anchor for child in children]
    if not alone:
        anchors.append(block.anchor)
    left.add(block.height, y, min(anchors))
    left.add(0.0, block.height, block.x)
    right.add(block.height, y, max(anchors))
    right.add(0.0, block.height, block.x + block.width)
    low = min(block.x, *(child.outline.low for child in children))
    high = max(block.x + block.width, *(child.outline.high for child in children))
    return Outline(left, right, low, high)
