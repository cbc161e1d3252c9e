// rsp-js as a peer: one query over one history, slide by slide (see rspjs.py, which starts this).
//
// Standard input is JSON: `query`, `stream` (an IRI), `variables`, `graph` and `static` (triples of
// its graph), `slides` (lists of [s, p, o, stamp]), `ends` (when each slide ends), `rows` (whether
// rows are wanted, or only how many), and when to stop: after `budget` seconds, or `enough`
// seconds if there were `least` steps, or as soon as `least` steps will not fit into the budget. Terms are in N-Triples syntax. Standard
// output is JSON: for each window that was reached its wall and processor seconds, how many rows it
// has and, if wanted, the rows.
//
// A step takes in a slide and the element after it, which is what makes rsp-js close the window: it
// knows no other way to say that time has passed. The step ends when all rows are there.
"use strict";

const fs = require("fs");

// rsp-js writes some lines for each element and window. Nobody would measure with that.
console.debug = console.info = console.log = () => {};

const N3 = require("n3");
const { RSPEngine } = require("rsp-js");

const { namedNode, literal, quad } = N3.DataFactory;

function termOf(text) {
  if (text[0] === "<") return namedNode(text.slice(1, -1));
  const quote = text.indexOf('"', 1);
  return literal(text.slice(1, quote), namedNode(text.slice(quote + 4, -1)));
}

function textOf(term) {
  if (term === undefined) return null;
  return term.termType === "NamedNode" ? `<${term.value}>` : `"${term.value}"`;
}

// rsp-js reckons windows from `t0` and moves it on with every row that it emits, so windows are lost.
// Here it stays where it was.
function mend(window) {
  const t0 = window.t0;
  Object.defineProperty(window, "t0", { get: () => t0, set: () => {} });
}

// An open query; `settled` waits until what was pushed has been evaluated. rsp-js does not say when
// the rows of a window are complete, so the streams that its evaluation gives are watched.
function opened({ query, stream, graph, static: facts }) {
  const engine = new RSPEngine(query);
  engine.logger.setLoggableClasses([]);
  engine.windows.forEach(mend);
  const target = graph && namedNode(graph);
  for (const [s, p, o] of facts) engine.addStaticData(quad(termOf(s), termOf(p), termOf(o), target));

  let running = [];
  const execute = engine.r2r.execute.bind(engine.r2r);
  engine.r2r.execute = (content) => {
    const bindings = execute(content);
    running.push(
      bindings.then((found) => new Promise((done, fail) => found.on("end", done).on("error", fail))),
    );
    return bindings;
  };
  let rows = [];
  engine.register().on("RStream", (row) => rows.push(row.bindings));
  const source = engine.getStream(stream);
  return {
    push: ([s, p, o, stamp]) => source.add(quad(termOf(s), termOf(p), termOf(o)), stamp),
    settled: async () => {
      await Promise.all(running);
      const found = rows;
      running = [];
      rows = [];
      return found;
    },
  };
}

function isOver({ budget, enough, least }, steps, spent) {
  if (steps >= least) return spent > Math.min(enough, budget);
  const hopeless = steps > 2 && (spent / steps) * least > budget;
  return hopeless || spent > budget;
}

async function main() {
  const asked = JSON.parse(fs.readFileSync(0, "utf8"));
  const { slides, ends, variables } = asked;
  const open = opened(asked);
  const out = { wall: [], cpu: [], counts: [], rows: [] };
  const began = process.hrtime.bigint();
  for (const [k, slide] of slides.entries()) {
    const last = slide[slide.length - 1];
    const next = slides[k + 1]?.[0] ?? [...last.slice(0, 3), ends[k] + 1];
    const cpu = process.cpuUsage();
    const wall = process.hrtime.bigint();
    for (const item of k ? slide.slice(1) : slide) open.push(item);
    open.push(next);
    const rows = await open.settled();
    out.counts.push(rows.length);
    const now = process.hrtime.bigint();
    out.wall.push(Number(now - wall) / 1e9);
    const { user, system } = process.cpuUsage(cpu);
    out.cpu.push((user + system) / 1e6);
    if (asked.rows) out.rows.push(rows.map((row) => variables.map((v) => textOf(row.get(v)))));
    if (isOver(asked, k + 1, Number(now - began) / 1e9)) break;
  }
  process.stdout.write(JSON.stringify(out));
}

main();
