"""Sets of characters in regular expressions: Unicode categories and blocks, cases, XML names.

A set is a sorted list of disjoint ranges of code points, both ends inclusive. The tables are
computed at first use, since most queries do not need them.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby

from streamsparql.algebra.expression_error import ExpressionError

Ranges = list[tuple[int, int]]


@cache
def character_set(escape: str) -> Ranges:
    """Return the characters of `\\d`, `\\p{Lu}`, ...; a capital letter denotes the complement."""
    letter = escape[1]
    name = escape[3:-1] if letter in "pP" else escape.lower()
    ranges = _named_sets().get(name)
    if ranges is None:
        raise ExpressionError(f"unknown character set {name}")
    return complement(ranges) if letter.isupper() else ranges


def complement(ranges: Ranges) -> Ranges:
    """Return the complement of a set.

    >>> complement(complement([(5, 9)]))
    [(5, 9)]
    """
    starts = [0, *(high + 1 for _, high in ranges)]
    ends = [*(low - 1 for low, _ in ranges), sys.maxunicode]
    return [(low, high) for low, high in zip(starts, ends, strict=True) if low <= high]


def union(*sets: Ranges) -> Ranges:
    """Return the union of sets.

    >>> union([(5, 9)], [(1, 4), (12, 12)])
    [(1, 9), (12, 12)]
    """
    joined: Ranges = []
    for low, high in sorted(range_ for ranges in sets for range_ in ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


def without(ranges: Ranges, removed: Ranges) -> Ranges:
    """Return the characters of the first set that are not in the second.

    >>> without([(1, 9)], [(3, 4)])
    [(1, 2), (5, 9)]
    """
    return complement(union(complement(ranges), removed))


def class_text(ranges: Sequence[tuple[int, int]]) -> str:
    """Return a set as Python's regular expressions write it.

    >>> class_text([(0x61, 0x7A)]), class_text([(0x61, 0x61)]), class_text(complement([(10, 10)]))
    ('[\\\\U00000061-\\\\U0000007a]', 'a', '[^\\\\U0000000a]')
    """
    if not ranges:
        return "(?!)"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return re.escape(chr(ranges[0][0]))
    if ranges[0][0] == 0 and ranges[-1][1] == sys.maxunicode:  # shorter, hence faster
        excluded = complement(list(ranges))
        return f"[^{_members(excluded)}]" if excluded else r"[\s\S]"
    return f"[{_members(ranges)}]"


def _members(ranges: Iterable[tuple[int, int]]) -> str:
    return "".join(
        f"\\U{low:08x}" + (f"-\\U{high:08x}" if low < high else "") for low, high in ranges
    )


def with_case_variants(ranges: Ranges) -> Ranges:
    """Add the characters that have the same lower or upper case (F&O 5.6.1.1, flag i).

    >>> with_case_variants([(0x61, 0x61)])
    [(65, 65), (97, 97)]
    """
    edges = [edge for low, high in ranges for edge in (low, high + 1)]
    more = [
        (other, other)
        for code, others in _case_variants().items()
        if bisect_right(edges, code) % 2
        for other in others
    ]
    return union(ranges, more)


@cache
def _case_variants() -> dict[int, list[int]]:
    """Return the cased characters, each with those of the same lower or upper case."""
    groups = defaultdict[str, list[int]](list)
    for code in range(_LAST_CASED + 1):
        char = chr(code)
        lower, upper = char.lower(), char.upper()
        if lower != upper:
            groups[f"l{lower}"].append(code)
            groups[f"u{upper}"].append(code)
    variants = defaultdict[int, list[int]](list)
    for codes in groups.values():
        if len(codes) > 1:
            for code in codes:
                variants[code] += codes
    return variants


_LAST_CASED = 0x1FFFF
"""A bound of the characters that have cases, so that not all are examined."""


@cache
def _named_sets() -> dict[str, Ranges]:
    """Return categories and blocks by name in `\\p`, and `\\s`, `\\d`, `\\w`, `\\i`, `\\c`."""
    categories = defaultdict[str, Ranges](list)
    everything = range(sys.maxunicode + 1)
    for category, run in groupby(everything, lambda code: unicodedata.category(chr(code))):
        codes = list(run)
        for name in (category, category[0]):
            categories[name].append((codes[0], codes[-1]))
    sets = {name: union(ranges) for name, ranges in categories.items()}
    for block in _BLOCKS.split():
        name, low, high = block.split(":")
        sets["Is" + name] = [(int(low, 16), int(high, 16))]
    return sets | {
        "\\s": [(0x9, 0xA), (0xD, 0xD), (0x20, 0x20)],
        "\\d": sets["Nd"],
        "\\w": complement(union(sets["P"], sets["Z"], sets["C"])),
        "\\i": _NAME_START,
        "\\c": union(_NAME_START, _NAME_REST),
    }


# NameStartChar, and the additional characters of NameChar (XML 1.0, 2.3).
_NAME_START = [
    *((0x3A, 0x3A), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6)),
    *((0xF8, 0x2FF), (0x370, 0x37D), (0x37F, 0x1FFF), (0x200C, 0x200D), (0x2070, 0x218F)),
    *((0x2C00, 0x2FEF), (0x3001, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFFD), (0x10000, 0xEFFFF)),
]
_NAME_REST = [
    (0x2D, 0x2E),
    (0x30, 0x39),
    (0xB7, 0xB7),
    (0x300, 0x36F),
    (0x203F, 0x2040),
]

_BLOCKS = """
BasicLatin:0:7F Latin-1Supplement:80:FF LatinExtended-A:100:17F LatinExtended-B:180:24F
IPAExtensions:250:2AF SpacingModifierLetters:2B0:2FF CombiningDiacriticalMarks:300:36F
Greek:370:3FF GreekandCoptic:370:3FF Cyrillic:400:4FF Armenian:530:58F Hebrew:590:5FF
Arabic:600:6FF Syriac:700:74F Thaana:780:7BF Devanagari:900:97F Bengali:980:9FF
Gurmukhi:A00:A7F Gujarati:A80:AFF Oriya:B00:B7F Tamil:B80:BFF Telugu:C00:C7F Kannada:C80:CFF
Malayalam:D00:D7F Sinhala:D80:DFF Thai:E00:E7F Lao:E80:EFF Tibetan:F00:FFF Myanmar:1000:109F
Georgian:10A0:10FF HangulJamo:1100:11FF Ethiopic:1200:137F Cherokee:13A0:13FF
UnifiedCanadianAboriginalSyllabics:1400:167F Ogham:1680:169F Runic:16A0:16FF Khmer:1780:17FF
Mongolian:1800:18AF LatinExtendedAdditional:1E00:1EFF GreekExtended:1F00:1FFF
GeneralPunctuation:2000:206F SuperscriptsandSubscripts:2070:209F CurrencySymbols:20A0:20CF
CombiningMarksforSymbols:20D0:20FF LetterlikeSymbols:2100:214F NumberForms:2150:218F
Arrows:2190:21FF MathematicalOperators:2200:22FF MiscellaneousTechnical:2300:23FF
ControlPictures:2400:243F OpticalCharacterRecognition:2440:245F EnclosedAlphanumerics:2460:24FF
BoxDrawing:2500:257F BlockElements:2580:259F GeometricShapes:25A0:25FF
MiscellaneousSymbols:2600:26FF Dingbats:2700:27BF BraillePatterns:2800:28FF
CJKRadicalsSupplement:2E80:2EFF KangxiRadicals:2F00:2FDF CJKSymbolsandPunctuation:3000:303F
Hiragana:3040:309F Katakana:30A0:30FF Bopomofo:3100:312F HangulCompatibilityJamo:3130:318F
Kanbun:3190:319F BopomofoExtended:31A0:31BF EnclosedCJKLettersandMonths:3200:32FF
CJKCompatibility:3300:33FF CJKUnifiedIdeographsExtensionA:3400:4DBF CJKUnifiedIdeographs:4E00:9FFF
YiSyllables:A000:A48F YiRadicals:A490:A4CF HangulSyllables:AC00:D7AF PrivateUse:E000:F8FF
CJKCompatibilityIdeographs:F900:FAFF AlphabeticPresentationForms:FB00:FB4F
ArabicPresentationForms-A:FB50:FDFF CombiningHalfMarks:FE20:FE2F CJKCompatibilityForms:FE30:FE4F
SmallFormVariants:FE50:FE6F ArabicPresentationForms-B:FE70:FEFF HalfwidthandFullwidthForms:FF00:FFEF
Specials:FFF0:FFFF
"""
"""The blocks of XSD 1.0 (part 2, F.1.1) in the basic plane; Python lacks block names."""
