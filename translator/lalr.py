"""The LALR(1) parser: lark makes its table from the grammar files, this module runs it.

Lark analyses the grammar once; the table goes to a cache in the user's cache folder, and from then
on neither lark nor the grammar's analysis is paid for. Running the table here rather than in lark
has three reasons: a first query is parsed in tens of milliseconds instead of half a second (lark's
contextual lexer compiles one scanner per parser state), nesting costs no recursion, and a failure
hands over exactly what a good message needs: the token, and the terminals that could stand there.

The lexer takes the longest match, as SPARQL asks. A word is read whole and is a keyword only where
it is written as one; `CONTEXTUAL` terminals are tried only where the parser can use them, which
keeps `s`, `m` or `P1D` free as names.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from pkgutil import get_data
from typing import Any, NamedTuple

from streamsparql.errors import Span

LAYERS = (
    "sparql",
    "streaming",
    "streaming_sparql",
    "csparql",
    "cqels",
    "epsparql",
    "rspql",
)
CONTEXTUAL = ("XSD_DURATION", "TIME_UNIT", "NAME")
END = "$END"
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FORMAT = 1  # of the cached table; count up when `_plain_table` changes its shape


class Token(NamedTuple):
    """A terminal as it stands in the text."""

    type: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        """Where the token stands."""
        return Span(self.start, self.end)


class ParseFailure(Exception):
    """The parser cannot go on at `token` (type "" when no terminal matches the text there)."""

    def __init__(self, token: Token, expected: frozenset[str]) -> None:
        super().__init__(f"unexpected {token.text!r}")
        self.token, self.expected = token, expected


class _Rule(NamedTuple):
    origin: str
    callback: str  # "" : splice into the parent; ">" before the name: a single child passes through
    length: int
    kept: tuple[int, ...]


class Table:
    """A parse table with its lexer."""

    def __init__(self, plain: dict[str, Any]) -> None:
        self.start: int = plain["start"]
        self.end: int = plain["end"]
        self.actions: list[dict[str, int]] = plain["actions"]  # >= 0: shift to; < 0: reduce ~n
        self.gotos: list[dict[str, int]] = plain["gotos"]
        self.rules = [_Rule(*rule) for rule in plain["rules"]]
        self.words: dict[str, tuple[str, ...]] = plain["words"]
        self.written: dict[str, str] = plain["written"]
        self._patterns: dict[str, str] = plain["patterns"]
        self._order: list[str] = plain["order"]

    def scanner(self, text: str) -> _Scanner:
        """The lexer for a text. Texts in ASCII have one of their own: it compiles much faster."""
        return self._scanner(text.isascii())

    @cache  # noqa: B019 -- a table lives as long as the process
    def _scanner(self, ascii_only: bool) -> _Scanner:
        return _Scanner(self, ascii_only)

    def accepts(self, states: list[int]) -> frozenset[str]:
        """The terminals that can come next: those that some chain of reductions leads to."""
        return frozenset(name for name in self.actions[states[-1]] if self._shifts(states, name))

    def _shifts(self, states: list[int], terminal: str) -> bool:
        states = states.copy()
        while (action := self.actions[states[-1]].get(terminal)) is not None:
            if action >= 0:
                return True
            rule = self.rules[~action]
            if rule.length:
                del states[-rule.length :]
            states.append(self.gotos[states[-1]][rule.origin])
            if terminal == END and states[-1] == self.end:
                return True
        return False


class _Scanner:
    """The regular expressions of a table's terminals, for ASCII texts or for all."""

    def __init__(self, table: Table, ascii_only: bool) -> None:
        def pattern(name: str) -> str:
            found = table._patterns[name]
            return re.sub(r"[^\x00-\x7f]-[^\x00-\x7f]", "", found) if ascii_only else found

        self.words = table.words
        self.skip = re.compile(pattern("WS"))
        self.contextual = {name: re.compile(pattern(name), re.A) for name in CONTEXTUAL}
        named = (f"(?P<{name}>{pattern(name)})" for name in table._order)
        self.master = re.compile("|".join([*named, f"(?P<WORD>{WORD.pattern})"]))

    def token(self, text: str, at: int, row: dict[str, int]) -> Token:
        """The token at `at`, where the parser's next actions are `row`."""
        if skipped := self.skip.match(text, at):
            at = skipped.end()
        if at == len(text):
            return Token(END, "", at, at)
        found = self.master.match(text, at)
        name, end = (found.lastgroup or "", found.end()) if found else ("", at)
        if name == "WORD":
            name = self._keyword(text[at:end], row)
        elif name == "VAR":
            end = self._end_of_variable(text, at, end, row)
        for other in CONTEXTUAL:
            if other in row and (match := self.contextual[other].match(text, at)):
                if match.end() > end or name not in row:
                    name, end = other, match.end()
        return Token(name, text[at:end] or text[at], at, max(end, at + 1))

    def _end_of_variable(self, text: str, at: int, end: int, row: dict[str, int]) -> int:
        """Where calls can stand, `?x-abs (?y)` subtracts: no hyphen joins a function's name."""
        hyphen = text.rfind("-", at, end)
        if hyphen > 0 and "FUNCTION_1" in row and text[hyphen + 1 : end].upper() in self.words:
            if re.compile(r"\s*\(").match(text, end):
                return hyphen
        return end

    def _keyword(self, word: str, row: dict[str, int]) -> str:
        names = self.words.get(word) or self.words.get(word.upper()) or ("",)
        return next((name for name in names if name in row), names[0])


Reduce = Callable[..., Any]


def run(table: Table, text: str, callbacks: dict[str, Reduce]) -> Any:
    """Parses a text. A reduction calls `callbacks[name](span, *children)`.

    Children are the values of the rule's parts; terminals that only mark the place (keywords and
    punctuation written out in a rule) are left out. Raises `ParseFailure`.
    """
    scanner, actions, gotos, rules = table.scanner(text), table.actions, table.gotos, table.rules
    states, values, spans = [table.start], [], []
    token = scanner.token(text, 0, actions[table.start])
    while True:
        action = actions[states[-1]].get(token.type)
        if action is None:
            raise ParseFailure(token, table.accepts(states))
        if action >= 0:
            states.append(action)
            values.append(token)
            spans.append((token.start, token.end))
            token = scanner.token(text, token.end, actions[action])
            continue
        rule = rules[~action]
        n = rule.length
        if n:
            span, parts = (spans[-n][0], spans[-1][1]), values[-n:]
            del states[-n:], values[-n:], spans[-n:]
        else:
            span, parts = (token.start, token.start), []
        values.append(_reduce(rule, parts, span, callbacks))
        spans.append(span)
        states.append(gotos[states[-1]][rule.origin])
        if token.type == END and states[-1] == table.end:
            return values[0]


class _Splice(list[Any]):
    """The children of a rule that has no value of its own."""


def _reduce(
    rule: _Rule, parts: list[Any], span: tuple[int, int], callbacks: dict[str, Reduce]
) -> Any:
    children = _Splice()
    for index in rule.kept:
        part = parts[index]
        if type(part) is not _Splice:
            children.append(part)
        elif children:
            children.extend(part)
        else:
            children = part  # grows in place, so that a list of n items costs n
    name = rule.callback
    if not name:
        return children
    if name[0] == ">":
        if len(children) == 1:
            return children[0]
        name = name[1:]
    return callbacks[name](Span(*span), *children)


# -- making the table, once per grammar ----------------------------------------------------------


@cache
def load() -> Table:
    """The table of the whole language, from the cache where it is there."""
    texts = grammar_text()
    folder = cache_folder()
    file = None if folder is None else folder / f"grammar-{_key(texts)}.table"
    plain = None if file is None else _read(file)
    if plain is None:
        plain = _plain_table(texts)
        if file is not None:
            _write(file, plain)
    return Table(plain)


def grammar_text(layers: Iterable[str] = LAYERS) -> str:
    """The grammar files of the layers as one text."""
    return "\n".join(_grammar_file(f"grammar/{layer}.lark") for layer in layers)


def _grammar_file(name: str) -> str:
    """A file of this package, which may be in a folder or in a zip (as on Spark's workers)."""
    content = get_data(__package__, name)
    assert content is not None
    return content.decode("utf-8").replace("\r\n", "\n")


def _key(texts: str) -> str:
    parts = (texts, str(_FORMAT), sys.version)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def cache_folder() -> Path | None:
    """The folder of this package in the user's cache; None for a user who has no home."""
    try:
        if sys.platform == "win32":
            root = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        elif sys.platform == "darwin":
            root = Path.home() / "Library" / "Caches"
        else:
            root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(root) / "streamsparql"


def _read(path: Path) -> dict[str, Any] | None:
    """What the file holds, or None where it is not there or is not whole."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, body = content[:32], content[32:]
    if hashlib.sha256(body).digest() != digest:
        return None
    plain: dict[str, Any] = marshal.loads(body)
    return plain


def _write(path: Path, plain: dict[str, Any]) -> None:
    """Keeps the table for the next process; a folder that cannot be written only costs time."""
    import tempfile

    body = marshal.dumps(plain)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(body).digest() + body)
        os.replace(file.name, path)
    except OSError:
        pass


def _plain_table(texts: str) -> dict[str, Any]:
    """Lark's analysis of a grammar, as numbers, strings, lists and dicts."""
    from lark import Lark
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    made = Lark(texts, parser="lalr", lexer="contextual", maybe_placeholders=False)
    data, memo = made.memo_serialize([TerminalDef, Rule])
    parser = data["parser"]["parser"]
    rules = {key: value for key, value in memo.items() if value["__type__"] == "Rule"}
    number = {key: index for index, key in enumerate(rules)}
    table = {
        "start": parser["start_states"]["start"],
        "end": parser["end_states"]["start"],
        "rules": [_plain_rule(rule) for rule in rules.values()],
        "actions": [],
        "gotos": [],
    }
    terminals = {v["name"]: v for v in memo.values() if v["__type__"] == "TerminalDef"}
    names = parser["tokens"]
    for state in range(len(parser["states"])):
        actions, gotos = {}, {}
        for token, (reduces, target) in parser["states"][state].items():
            name = names[token]
            if name == END or name in terminals:
                actions[name] = ~number[target["@"]] if reduces else target
            else:
                gotos[name] = target
        table["actions"].append(actions)
        table["gotos"].append(gotos)
    plain: dict[str, Any] = _without_tokens(table | _plain_lexer(terminals))
    return plain


def _without_tokens(value: Any) -> Any:
    """The same value; strings that are lark's tokens (in lark 1.1) become plain ones."""
    match value:
        case str():
            return str(value)
        case dict():
            return {_without_tokens(key): _without_tokens(item) for key, item in value.items()}
        case list() | tuple():
            return type(value)(map(_without_tokens, value))
    return value


def _plain_rule(rule: dict[str, Any]) -> tuple[str, str, int, tuple[int, ...]]:
    origin, expansion = rule["origin"]["name"], rule["expansion"]
    keep_all = rule["options"]["keep_all_tokens"]
    kept = tuple(i for i, part in enumerate(expansion) if keep_all or not part.get("filter_out"))
    if rule["alias"]:
        callback = rule["alias"]
    elif origin.startswith("_"):
        callback = ""
    else:
        callback = (">" if rule["options"]["expand1"] else "") + origin
    return origin, callback, len(expansion), kept


def _plain_lexer(terminals: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Words that are keywords, and the patterns of all other terminals in the order to try them."""
    words: dict[str, tuple[str, ...]] = {}
    patterns: dict[str, str] = {}
    written: dict[str, str] = {}
    for name, terminal in terminals.items():
        value = terminal["pattern"]["value"]
        exact = terminal["pattern"]["__type__"] == "PatternStr"
        spelled = [value] if exact else re.findall(r"\(\?i:(\w+)\)", value)
        if spelled and all(WORD.fullmatch(word) for word in spelled):
            for word in spelled:
                word = word.upper() if "i" in terminal["pattern"]["flags"] or not exact else word
                words[word] = (*words.get(word, ()), name)
            written[name] = "/".join(spelled)
        else:
            patterns[name] = re.escape(value) if exact else value
            if exact:
                written[name] = value
    order = [name for name in patterns if name not in ("WS", *CONTEXTUAL)]
    order.sort(key=lambda name: (-terminals[name]["priority"], -len(patterns[name])))
    return {"words": words, "patterns": patterns, "written": written, "order": order}
