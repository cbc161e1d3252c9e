"""`query.rewrites()`: applications of rules with their laws and places, their checks and displays."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from support.plans import X, Y, matching, plan
from support.rule_queries import QUERIES

import streamsparql
from streamsparql.algebra.event import Detect
from streamsparql.algebra.filter import AntiJoin, Filter
from streamsparql.algebra.fixpoint import Phase, Replacement, Rewriting
from streamsparql.algebra.join import Join, LeftJoin
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rewrite import phases, rewrite
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.rules.sketch import equals
from streamsparql.algebra.shape import Projection
from streamsparql.look.explain.boxes.box import Box
from streamsparql.look.jupyter.rewriting_view import SHOWN_APPLICATIONS, compare_plans
from streamsparql.look.rewrites import Rewrites, law, rewrites

RULES = sorted({rule.name for phase in phases() for rule in phase.rules})
P, Q, R = matching("?x p ?y"), matching("?x q ?z"), matching("?z r ?w")
C = equals("?y", "1")
TEXT = """PREFIX : <http://e/> SELECT ?x FROM STREAM :s WINDOW RANGE 10 MS SLIDE 5 MS {
    ?x :p ?y . ?x :q ?z OPTIONAL { ?x :r ?w FILTER(?w > 3) } FILTER(?y = 1 + 1 && BOUND(?w)) }"""


def applied() -> Rewrites:
    return streamsparql.compile(TEXT).rewrites()


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_has_a_law_and_a_side_condition(rule: str) -> None:
    known = law(rule)
    assert known.statement, rule
    assert known.condition, rule
    assert known.source or "SPARQL 1.1" in known.statement, rule
    assert known.summary.endswith(".")
    for part in (known.statement, known.condition, known.source):
        assert ">>>" not in part
        assert "Side condition" not in part


@pytest.mark.parametrize("rule", sorted(QUERIES))
def test_the_applications_are_the_steps_of_the_rewriting(rule: str) -> None:
    for text in QUERIES[rule]:
        query = plan("PREFIX : <http://e/> " + text)
        done = rewrite(query)
        applications = rewrites(query, rewriting=done)
        steps = [(step.rule, step.before, step.after) for step in done.trace]
        assert [(each.rule, each.before, each.after) for each in applications] == steps
        for each in applications:
            whole_before, whole_after = each.whole()
            assert _is_in(each.before, whole_before)
            assert _is_in(each.after, whole_after)
            assert len(each.path) == 0 or each.path[0][0].inputs


def _is_in(part: Plan, whole: Plan) -> bool:
    return any(node == part for node in whole.walk())


def test_place_names_the_operators_from_the_result_down() -> None:
    (step, *_) = [each for each in applied() if each.rule == "push_filters_into_joins"]
    assert step.place.startswith("Projection › Filter › LeftJoin (left)")
    assert [type(above) for above, _ in step.path][-1] is LeftJoin
    (first, *_) = rewrites(Filter(C, Join(P, Q)))
    assert first.place == "the whole plan"


def test_applications_inside_exists_and_below_detect_are_marked() -> None:
    inside = rewrites(AntiJoin(P, Filter(C, Join(P, Q))))
    pushed = next(each for each in inside if each.rule == "push_filters_into_joins")
    assert pushed.inside_exists
    assert pushed.check(trials=20).checked
    text = "SELECT * { { ?x <p> ?y } SEQ { ?x <q> ?z FILTER(1 + 1 = ?z) } }"
    events = streamsparql.compile(text, "epsparql").rewrites(check=True, trials=20)
    folded = next(each for each in events if each.rule == "fold_constants")
    assert folded.below_detect
    assert isinstance(folded.path[1][0], Detect)
    assert folded.checked
    assert not events.wrong


@pytest.mark.parametrize("rule", sorted(QUERIES))
def test_correct_rules_pass_the_check(rule: str) -> None:
    query = plan("PREFIX : <http://e/> " + QUERIES[rule][0])
    checked = rewrites(query, check=True, trials=15)
    assert checked.wrong == ()
    assert checked.checked


def push_filter_right(plan: Plan) -> Plan | None:
    """Law: none; a filter must not be pushed into the right side of a left join."""
    if isinstance(plan, Filter) and isinstance(plan.input, LeftJoin):
        left, right = plan.input.inputs
        return LeftJoin(left, Filter(plan.condition, right))
    return None


def rewritten_wrongly() -> Rewrites:
    query = Projection((X,), Filter(C, LeftJoin(Q, P)))
    rules = (Phase(Rule(push_filter_right, (Filter,))),)
    return rewrites(query, rewriting=rewrite(query, rules), check=True)


def test_wrong_rule_has_a_small_counterexample() -> None:
    checked = rewritten_wrongly()
    assert len(checked.wrong) == 1
    assert not checked.checked
    equivalence = checked.wrong[0].checked
    assert equivalence is not None
    assert equivalence.counterexample is not None
    assert len(equivalence.counterexample.graph) <= 2
    assert "checked: 1 wrong" in str(checked)
    assert "not equivalent" in str(checked[0])


def test_rewrites_are_a_sequence() -> None:
    all_of_them = applied()
    assert len(all_of_them) == len(list(all_of_them)) > 4
    assert all_of_them[0].number == 1
    assert all_of_them[-1] == all_of_them.applications[-1]
    part = all_of_them[2:4]
    assert isinstance(part, Rewrites)
    assert [each.number for each in part] == [3, 4]
    assert {each.rule for each in all_of_them.of("prune columns")} == {"prune_columns"}
    assert sum(all_of_them.counts.values()) == len(all_of_them)
    assert all_of_them.result == streamsparql.compile(TEXT).optimized


def test_query_that_is_not_optimized_has_no_applications() -> None:
    query = streamsparql.compile(TEXT, optimize=False)
    assert len(query.rewrites()) == 0
    assert str(query.rewrites()) == "no rule applies"
    assert "no rule applies" in query.rewrites()._repr_html_()


# -- displays --------------------------------------------------------------------------------------


def boxes(root: Box) -> list[Box]:
    listed = [root]
    for box in listed:
        listed += [child for child in box.children if isinstance(child, Box)]
    return listed


def test_shared_subplan_is_one_box_with_the_same_letter() -> None:
    before, after = compare_plans(Filter(C, Join(P, Q)), Join(Filter(C, P), Q), {})
    for side in (before, after):
        letters = {box.role: box.title for box in boxes(side) if box.role}
        assert letters == {"P": "?x <p> ?y", "Q": "?x <q> ?z"}
    marks = [[(box.kind, box.mark) for box in boxes(side) if box.mark] for side in (before, after)]
    assert marks == [[("Filter", "moved")], [("Filter", "moved")]]


def test_removed_and_new_operators_are_marked() -> None:
    before, after = compare_plans(Join(P, Join(Q, R)), Join(Filter(C, P), Join(Q, R)), {})
    assert [box.mark for box in boxes(before)] == ["", "", ""]
    assert {box.kind: box.mark for box in boxes(after)}["Filter"] == "new"
    text = "SELECT ?x FROM STREAM <s> WINDOW RANGE 9 SLIDE 3 { { ?x <p> ?v } UNION { ?x <q> ?v } }"
    (step,) = (s for s in streamsparql.compile(text).rewrites() if s.rule == "prune_columns")
    sides = compare_plans(step.before, step.after, {})
    marks = [[box.mark for box in boxes(s) if box.kind == "Projection"] for s in sides]
    assert marks == [[""], ["", "new", "new"]]  # a Projection that stays does not match a new one
    before, after = compare_plans(Projection((X, Y), P), P, {})
    assert (before.mark, after.role, after.mark) == ("gone", "P", "")


def test_shared_subplan_shows_its_number_of_operators() -> None:
    before, _ = compare_plans(Filter(C, Join(P, Join(Q, R))), Join(P, Join(Q, R)), {})
    assert before.children[0].title == "… 4 more operators"  # type: ignore[union-attr]


def test_text_has_both_sides_in_columns() -> None:
    shown = str(rewrites(Filter(C, Join(P, Q)))[0])
    lines = shown.splitlines()
    assert lines[0] == "1  push filters into joins: the whole plan"
    (head,) = (line for line in lines if "=>" in line)
    one, other = head.split("=>")
    assert (one.split()[0], other.strip()) == ("Filter", "Join")
    assert max(map(len, lines)) <= 3 + 56 + 4 + 56


class Page(HTMLParser):
    """The tags, classes and ids of a page, and the tags that are not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.classes: list[str] = []
        self.ids: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.append(tag)
        for name, value in attrs:
            self.classes += (value or "").split() if name == "class" else []
            self.ids += [value or ""] if name == "id" else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_notebook_shows_each_application_with_two_pictures() -> None:
    shown = streamsparql.compile(TEXT).rewrites(check=True, trials=5)
    page = Page(shown._repr_html_())
    assert page.open == []
    assert page.tags.count("section") == len(shown)
    assert page.tags.count("svg") == 2 * len(shown)
    assert page.classes.count("law") == len(shown.counts)
    assert page.classes.count("badge") == len(shown)
    assert page.tags.count("style") == 1
    assert "script" not in page.tags
    assert page.ids == []


def test_counterexample_is_shown_with_its_application() -> None:
    page = Page(rewritten_wrongly()._repr_html_())
    assert page.classes.count("bad") == 1
    assert "differs" in page.classes


def test_terms_are_escaped_in_html() -> None:
    query = streamsparql.compile('SELECT * { ?x <p&q> ?y FILTER(?y = "<b>&" && 1 + 1 = 2) }')
    page = Page(query.rewrites()._repr_html_())
    assert page.open == []
    assert page.tags.count("section") == len(query.rewrites())


@pytest.mark.parametrize("size", [3, 30, 300])
def test_long_chains_and_many_applications_are_shown(size: int) -> None:
    group = " ".join(f"?x <p{k}> ?y{k} FILTER(?y{k} > {k})" for k in range(size))
    shown = streamsparql.compile(f"SELECT ?x {{ {group} }}").rewrites()
    page = Page(shown._repr_html_())
    assert page.tags.count("section") == min(len(shown), SHOWN_APPLICATIONS)
    assert page.open == []


def test_notebook_shows_how_many_applications_are_left_out() -> None:
    steps = tuple(Replacement("drop_reduced", P, Q) for _ in range(SHOWN_APPLICATIONS + 5))
    shown = rewrites(P, rewriting=Rewriting(Q, steps))
    html = shown._repr_html_()
    assert f"5 more: show them with [{SHOWN_APPLICATIONS}:]" in html
    assert html.count("<section>") == SHOWN_APPLICATIONS
