"""The slider that steps through a trace: a small script, and the data that it needs.

The script selects traces that are not initialised yet by their class, so no element needs an id. At
the selected instant it fades the rows that do not hold, moves a cursor, and lists the output and
state of each operator. Hovering over a row highlights the rows that share an item of its lineage.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamsparql.look.jupyter.canvas import Canvas
from streamsparql.look.jupyter.lanes import FAR, BarGroup

if TYPE_CHECKING:
    from streamsparql.look.traces.trace import Trace, TracedOperator

_MAX_ROWS = 8_000
"""The limit on rows in area charts; beyond it none of them is listed, to bound the page size."""


def slider_script(
    trace: Trace,
    operators: Sequence[TracedOperator],
    areas: Sequence[BarGroup],
    canvas: Canvas,
) -> str:
    """Return the script with its data.

    The script reads rows from their bars; only rows in area charts are part of the data.
    """
    times = {*trace.instants, *(step.instant for step in trace.steps)}
    instants = sorted(t for t in times if 0 <= t <= canvas.end)
    rows = [
        [bar.operator, int(bar.emitted is None), bar.tip, bar.start, min(bar.end, FAR)]
        for group in areas
        for bar in group.bars
    ]
    data = {
        "instants": instants,
        "words": [trace.wording.moment(t) for t in instants],
        "x": [canvas.x(t) for t in instants],
        "operators": {each.number: str(each) for each in operators},
        "rows": rows if len(rows) <= _MAX_ROWS else [],
        "whole": len(rows) <= _MAX_ROWS,
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json">{text}</script><script>{_SCRIPT}</script>'


_SCRIPT = """\
document.querySelectorAll('.streamsparql-trace:not([data-alive])').forEach(root => {
  const source = root.querySelector('script[type="application/json"]');
  if (!source) return;
  root.dataset.alive = '';
  const data = JSON.parse(source.textContent), find = q => root.querySelector(q);
  const slider = find('input'), output = find('output'), panel = find('.state');
  const cursor = find('.cursor'), rows = [...root.querySelectorAll('g.row')];
  if (!data.instants.length) return;
  const all = rows.map(g => [g.dataset.o, +g.dataset.h, g.querySelector('title').textContent,
    +g.dataset.a, +g.dataset.b]).concat(data.rows);
  slider.max = data.instants.length - 1;
  find('.controls').hidden = false;
  const cell = (line, texts) => {
    const td = line.insertCell();
    texts.slice(0, 12).forEach(text => {
      const code = document.createElement('code');
      code.textContent = text;
      td.append(code, document.createElement('br'));
    });
    if (texts.length > 12) td.append('and ' + (texts.length - 12) + ' more');
  };
  const show = k => {
    const t = data.instants[k], table = document.createElement('table');
    slider.value = k;
    output.textContent = data.words[k];
    cursor.style.visibility = 'visible';
    cursor.setAttribute('transform', 'translate(' + data.x[k] + ',0)');
    rows.forEach(g => g.classList.toggle('faded', !(+g.dataset.a <= t && t < +g.dataset.b)));
    const head = table.createTHead().insertRow();
    ['operator', 'holds', 'state'].forEach(text => {
      const th = document.createElement('th');
      th.textContent = text;
      head.append(th);
    });
    const here = all.filter(row => row[3] <= t && t < row[4]), body = table.createTBody();
    Object.entries(data.operators).forEach(([number, name]) => {
      const own = here.filter(row => row[0] == number), line = body.insertRow();
      line.insertCell().textContent = number + ' ' + name;
      cell(line, own.filter(row => !row[1]).map(row => row[2]));
      cell(line, own.filter(row => row[1]).map(row => row[2]));
    });
    panel.replaceChildren(table);
    if (!data.whole) panel.append('Rows in area charts are not listed; see trace.at(' + t + ').');
    panel.hidden = false;
  };
  slider.addEventListener('input', () => show(+slider.value));
  find('button').addEventListener('click', () => {
    rows.forEach(g => g.classList.remove('faded'));
    cursor.style.visibility = 'hidden';
    output.textContent = '';
    panel.hidden = true;
  });
  rows.forEach(g => {
    const items = g.dataset.i.split(' ').filter(Boolean);
    const kin = other => other.dataset.i.split(' ').some(i => items.includes(i));
    g.addEventListener('mouseenter', () => items.length && rows.forEach(
      other => { other.style.opacity = kin(other) ? 1 : .15; }));
    g.addEventListener('mouseleave', () => rows.forEach(other => { other.style.opacity = ''; }));
  });
});
"""
