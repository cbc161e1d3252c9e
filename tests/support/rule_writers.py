"""Writers of random CONSTRUCT rules about events, which feed each other and themselves."""

from __future__ import annotations

from support.events import SOURCES, EventWriter


class RuleWriter(EventWriter):
    """A writer of rules over predicates of items and derived ones, so that rules feed rules."""

    def leaf(self) -> str:
        """Return a triple pattern over items, or derived triples."""
        ends = self.pick("?x {} ?y", "?x {} ?y", "?y {} ?z", "?x {} ?z", "?x {} :a", "?v {} ?w")
        text = f"{ends.format(self.pick(':p', ':q', ':r', ':r', ':s', ':t'))} . "
        return f"GRAPH :g {{ {text}}} " if self.chance(10) else text

    def rule(self) -> str:
        """Return a rule."""
        link = self.pick(":r", ":r", ":s", ":t")
        template = f"?x {link} {self.pick('?y', '?y', '?z', ':a')}"
        if self.chance(15):
            template += f" . ?x :s {self.pick('?w', '?x')}"
        where = self.pick(self.where(1), self.where(2), f"{{ {self.leaf()}}}", *[self.chain()] * 3)
        return f"CONSTRUCT {{ {template} }} {SOURCES}{where}"

    def chain(self) -> str:
        """Return a sequence of two patterns over one stream, which many events match."""
        one, other = (self.pick(":p", ":r", ":r", ":s") for _ in range(2))
        above = self.pick("", f"FILTER({self.duration('<', '<=')}) ")
        if self.chance(30):
            optional = f"{{ ?x {one} ?y }} {self.pick('OPTIONALSEQ', 'OPTIONALSEQ', 'OPTIONAL')}"
            return f"{{ {optional} {{ ?x {other} ?z }} {self.pick('FILTER(!BOUND(?y)) ', above)}}}"
        return f"{{ {{ ?x {one} ?y }} {self.pick('SEQ', 'SEQ', '', 'EQUALS')} {{ ?y {other} ?z }} {above}}}"


class RecursiveWriter(RuleWriter):
    """A writer of rules that feed themselves, and can be evaluated row by row."""

    def rule(self) -> str:
        """Return a rule about what precedes, or is simultaneous, or has nothing in between."""
        link = self.pick(":r", ":r", ":s")
        template = f"?x {link} {self.pick('?z', '?z', '?y')}"
        one, other = (
            f"{{ ?x {self.pick(':p', ':r', ':s')} ?y }}",
            f"{{ ?y {self.pick(link, ':p')} ?z }}",
        )
        bound = self.pick("", "", f"FILTER({self.duration('<', '<=')})")
        pair = f"{{ {one} {self.pick('SEQ', 'SEQ', 'SEQ', '', 'EQUALS')} {other} {bound} }}"
        if self.chance(20):
            never = f"{{ ?x {self.pick(link, ':q')} ?v }} OPTIONALSEQ {one} FILTER(!BOUND(?v))"
            template = f"?x {link} ?y"
            pair = f"{{ {never} {bound} }}"
        elif self.chance(40):
            key = self.pick("?y", "?v")
            last, absent = f"{{ ?y {self.pick(':p', ':q')} ?z }}", f"{{ {key} :p ?w }}"
            optional = f"{{ {one} SEQ {absent} SEQ {last} }}"
            pair = (
                f"{{ {{ {one} SEQ {last} }} EQUALSOPTIONAL {optional} FILTER(!BOUND(?w)) {bound} }}"
            )
        return f"CONSTRUCT {{ {template} }} {SOURCES}{pair}"
