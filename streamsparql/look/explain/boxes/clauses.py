"""The text of a node of the syntax tree, from the texts of its parts, without nested clauses.

It is the text as it was parsed, not as it was typed: brackets show precedence, and blank nodes
without a label are named by their position in the text, `_:@12`.
"""

from __future__ import annotations

from typing import Any

from streamsparql.algebra.terms import IRI, RDF, Literal
from streamsparql.look.explain.boxes.phrases import MAX_VALUES_ROWS
from streamsparql.translator import syntax as s
from streamsparql.translator.sparql_text import Writer

Fields = dict[str, Any]
"""The fields of a node by name, with the text of each node in them."""

_UNITS = {1: "ms", 1000: "s", 60_000: "min", 3_600_000: "h", 86_400_000: "d", 604_800_000: "w"}
_WRITER = Writer()
_TYPE = s.Iri(RDF + "type")


def clause_text(node: s.SyntaxNode, f: Fields) -> str:
    """Return the text of a node.

    >>> clause_text(s.BindClause(s.Var("x"), s.Var("y")), {"expression": "?x", "variable": "?y"})
    '?y := ?x'
    """
    match node:
        case s.Var() | s.Iri() | s.Lit() | s.Blank():
            return _term(node, f)
        case s.OperatorCall() | s.FunctionCall() | s.AggregateCall() | s.PathOperation():
            return _operation(node, f)
        case s.WindowClause() | s.DurationLiteral():
            return _window(node, f)
        case s.SelectItem() | s.BareAggregate() | s.SelectClause() | s.SelectForm() | s.SubSelect():
            return _selection(node, f)
        case s.Modifiers() | s.AggregationPattern() | s.GroupKey() | s.OrderKey():
            return _modifiers(node, f)
        case s.QueryUnit() | s.Declaration() | s.RegisterClause() | s.FromClause():
            return _head(node, f)
    return _pattern(node, f)


def _term(node: s.Var | s.Iri | s.Lit | s.Blank, f: Fields) -> str:
    match node:
        case s.Var(name):
            return f"?{name}"
        case s.Iri(value, prefix):
            return str(IRI(value)) if prefix is None else f"{prefix}:{value}"
        case s.Lit(lexical, s.Iri(datatype, None)):
            return _WRITER.literal(Literal(lexical, IRI(datatype)))
        case s.Lit(lexical, None, language):
            return str(Literal(lexical, language=language))
        case s.Lit(lexical):
            return f"{Literal(lexical)}^^{f['datatype']}"
        case s.Blank(label):
            return f"_:{'@' + label[1:] if label[0] in '[(' else label}"


def _operation(
    node: s.OperatorCall | s.FunctionCall | s.AggregateCall | s.PathOperation, f: Fields
) -> str:
    match node:
        case s.FunctionCall():
            return f"{f['function']}({'DISTINCT ' * node.distinct}{', '.join(f['args'])})"
        case s.AggregateCall():
            end = "" if node.separator is None else f"; SEPARATOR={Literal(node.separator)}"
            return f"{node.name}({'DISTINCT ' * node.distinct}{f['argument'] or '*'}{end})"
    first, *others = f["args"] or ("",)
    match node:
        case s.OperatorCall("!" | "u-" | "u+" as op):
            return f"({op[-1]}{first})"
        case s.OperatorCall("IN" | "NOT IN" as op):
            return f"({first} {op} ({', '.join(others)}))"
        case s.OperatorCall(op) if op[0].isalpha():
            return f"{op}({', '.join(f['args'])})"
        case s.OperatorCall(op):
            return f"({f' {op} '.join(f['args'])})"
        case s.PathOperation("/" | "|" as op):
            return f"({op.join(f['args'])})"
        case s.PathOperation("^"):
            return f"^{first}"
        case s.PathOperation("!"):
            return f"!({'|'.join(f['args'])})"
    return f"{first}{node.op}"


def _window(node: s.WindowClause | s.DurationLiteral, f: Fields) -> str:
    match node:
        case s.DurationLiteral(milliseconds, None):
            return str(milliseconds)
        case s.DurationLiteral(milliseconds, unit):
            whole = unit is not None and milliseconds % unit == 0
            unit = unit if unit and whole else 1
            return f"{milliseconds // unit} {_UNITS[unit]}"
        case s.WindowSlide():
            return f"WINDOW RANGE {f['width']} SLIDE{_wrapped(' ', f['slide'])}"
        case s.WindowFixed():
            return f"WINDOW RANGE {f['width']} FIXED"
        case s.WindowElems(count):
            return f"WINDOW ELEMS {count}"
        case s.WindowRange():
            return (
                f"[RANGE {f['width']}{_wrapped(' STEP ', f['step'])}{' TUMBLING' * node.tumbling}]"
            )
        case s.WindowRows(count, step):
            return f"[RANGE TRIPLES {count}{_wrapped(' STEP ', step)}]"
        case s.WindowNow():
            return "[NOW]"
        case s.WindowAll():
            return "[ALL]"
        case s.WindowInThePast():
            return "[NOW - ..]"
    raise AssertionError(node)


def _selection(node: s.SyntaxNode, f: Fields) -> str:
    match node:
        case s.SelectItem(_, None):
            return str(f["variable"])
        case s.SelectItem():
            return f"({f['expression']} AS {f['variable']})"
        case s.BareAggregate():
            return f"{f['aggregate']}{_wrapped(' ', f['variable'])}"
        case s.SelectClause():
            return f"{_wrapped('', node.modifier, ' ')}{' '.join(f['items']) or '*'}"
    return str(f["select"])


def _modifiers(node: s.SyntaxNode, f: Fields) -> str:
    match node:
        case s.GroupKey(s.Var(), None):
            return str(f["expression"])
        case s.GroupKey():
            return f"({f['expression']}{_wrapped(' AS ', f['variable'])})"
        case s.OrderKey():
            return f"{'DESC' if node.descending else 'ASC'}({f['expression']})"
        case s.AggregationPattern():
            keys = ", ".join(f["keys"])
            return f"AGGREGATE {{({f['variable']}, {f['function']}, {{{keys}}})}}"
        case s.Modifiers():
            parts = [
                *f["aggregates"],
                _wrapped("GROUP BY ", " ".join(f["group"])),
                _wrapped("HAVING ", " ".join(f["having"])),
                _wrapped("ORDER BY ", " ".join(f["order"])),
                _wrapped("LIMIT ", node.limit),
                _wrapped("OFFSET ", node.offset),
            ]
            return " ".join(part for part in parts if part)
    raise AssertionError(node)


def _head(node: s.SyntaxNode, f: Fields) -> str:
    match node:
        case s.QueryUnit(declarations):
            count = len(declarations)
            prefixes = f"{count} declaration{'s' * (count > 1)}" if count else ""
            return ", ".join(part for part in (prefixes, node.operator) if part)
        case s.Declaration(None):
            return f"BASE {f['iri']}"
        case s.Declaration(prefix):
            return f"PREFIX {prefix}: {f['iri']}"
        case s.RegisterClause():
            return (
                f"{node.kind}{_wrapped(' ', f['name'])}{_wrapped(' COMPUTED EVERY ', f['every'])}"
            )
        case s.FromClause():
            kind = {"graph": "", "bracket": "", "stream": "STREAM ", "window": "WINDOW "}[node.kind]
            name = f"{f['window_name']} ON {f['name']}" if node.kind == "window" else f["name"]
            alias = _wrapped(" AS ", f["window_name"]) if node.kind != "window" else ""
            return f"FROM {'NAMED ' * node.named}{kind}{name}{_wrapped(' ', f['window'])}{alias}"
    raise AssertionError(node)


def _pattern(node: s.SyntaxNode, f: Fields) -> str:
    match node:
        case s.TriplePath(_, predicate):
            property_ = "a" if predicate == _TYPE else f["predicate"]
            return f"{f['subject']} {property_} {f['object']}"
        case s.GroupPattern():
            return f["window"] or ""
        case s.EventPattern(op):
            return op
        case s.GraphPattern() | s.ServicePattern() | s.WindowPattern():
            return str(f["name"])
        case s.StreamPattern():
            return f"{f['name']}{_wrapped(' ', f['window'])}"
        case s.FilterClause():
            return str(f["condition"])
        case s.BindClause():
            return f"{f['variable']} := {f['expression']}"
        case s.DescribeForm():
            return " ".join(f["targets"]) or "*"
        case s.InlineData():
            rows = [f"({' '.join(term or 'UNDEF' for term in row)})" for row in f["rows"]]
            more = f" and {len(rows) - MAX_VALUES_ROWS} more" if len(rows) > MAX_VALUES_ROWS else ""
            return (
                f"{' '.join(f['variables'])}: {' '.join(rows[:MAX_VALUES_ROWS]) or 'no rows'}{more}"
            )
        case s.TriplesBlock() | s.UnionPattern() | s.OptionalPattern() | s.MinusPattern():
            return ""
        case s.ConstructForm() | s.AskForm():
            return ""
    raise AssertionError(node)


def _wrapped(before: str, text: object, after: str = "") -> str:
    """Return the text with a prefix and a suffix, or an empty string for missing text."""
    return "" if text is None or text == "" else f"{before}{text}{after}"
