// run.js: the report of a plan's run: all tests in one table, then one table for each kind of test.
"use strict";

const nameOf = (doc, i) => textOf(at(doc, "test.name")) || textOf(at(doc, "test.workload")) || String(i + 1);
const link = (doc, i) => el("a", {href: `#test-${i + 1}`}, `${i + 1}. ${nameOf(doc, i)}`);
const statusText = (doc) => (doc.status === "ok" ? say("done") : say(textOf(doc.status)));

function beside(run, i) {
  const group = (Array.isArray(run.together) ? run.together : []).find((g) => Array.isArray(g) && g.includes(i));
  return group ? group.filter((k) => k !== i && isNumber(k)).map((k) => k + 1).join(", ") : "";
}

// The tables of the cloud recipe: packets per second, bandwidth, latency with average and p99.
function kindTable(rows, workload, title, columns) {
  const mine = rows.filter(({doc}) => at(doc, "test.workload") === workload).map((r) => ({...r,
    at: (p, unit = unitOf(p)) => (isNumber(at(r.doc, p)) ? figure(at(r.doc, p), unit, `tests.${r.i}.${p}`) : null)}));
  const made = tableOf(mine, [[say("test"), ({doc, i}) => link(doc, i)],
    [say("from"), ({doc}) => textOf(at(doc, "local.host"))], [say("to"), ({doc}) => textOf(at(doc, "test.target")) || textOf(at(doc, "peer.host"))],
    [say("size"), (r) => (at(r.doc, "test.params.size") > 0 ? r.at("test.params.size", "byte") : null)],
    [say("Connections"), (r) => r.at("test.load.connections", "")], ...columns,
    [say("limited by"), ({doc}) => say(textOf(at(doc, "limited_by.0.what")))]], {left: [1, 2, columns.length + 5]});
  return made && el("div", {"data-recipe": workload}, el("h4", {}, title), made);
}

function overview(run, tests) {
  const rows = tests.map((doc, i) => ({doc, i}));
  const all = tableOf(rows, [[say("test"), ({doc, i}) => link(doc, i)], [say("command"), ({doc}) => textOf(at(doc, "test.workload"))],
    [say("Result"), ({doc, i}) => objectsOf(doc.headline).slice(0, 2).map((h, k) =>
      [k ? ", " : "", `${say(textOf(h.name))} `, figure(h.value, textOf(h.unit), `tests.${i}.headline.${k}.value`)])],
    [say("status"), ({doc}) => el("span", {class: doc.status === "ok" ? "held" : "unheld"}, statusText(doc))],
    [say("limited by"), ({doc}) => objectsOf(doc.limited_by).slice(0, 1).map(limitOf).join("")],
    [say("together with"), ({i}) => beside(run, i)]], {left: [1, 2, 3, 4, 5]});
  const failed = tests.filter((t) => t.status !== "ok").length, unheld = tests.flatMap((t) => objectsOf(t.expect)).filter((x) => x.ok === false).length;
  const sentence = [`${tests.length} ${say(tests.length === 1 ? "test" : "tests")}`, failed ? `${failed} ${say("not complete")}` : say("all complete"),
                    unheld ? `${unheld} ${say(unheld === 1 ? "threshold not held" : "thresholds not held")}` : ""].filter((t) => t);
  return el("div", {class: "overview"},
    el("div", {class: failed || unheld ? "verdict bad" : "verdict", "data-section": "verdict"},
      el("p", {class: "sentence"}, sentence.join(language.now === "zh" ? "，" : ", ") + (language.now === "zh" ? "。" : ".")),
      textOf(at(run, "topology.text")) && el("p", {}, run.topology.text)),
    section("overview", say("All tests"), all,
      kindTable(rows, "pps", say("Packets per second"), [[say("sent"), (r) => r.at("rates.tx_packets_per_s")],
        [say("delivered"), (r) => r.at("rates.rx_packets_per_s")], [say("loss"), (r) => r.at("rates.loss_pct")]]),
      kindTable(rows, "bw", say("Bandwidth"), [[say("sent"), (r) => r.at("rates.tx_bits_per_s")],
        [say("received"), (r) => r.at("rates.rx_bits_per_s")], [say("retransmits"), (r) => r.at("totals.retransmits", "")],
        [say("loss"), (r) => r.at("rates.loss_pct")]]),
      kindTable(rows, "lat", say("Latency"), [[say("mean"), (r) => r.at("latency.mean_us")], ["p50", (r) => r.at("latency.p50_us")],
        ["p99", (r) => r.at("latency.p99_us")], [say("max"), (r) => r.at("latency.max_us")], [say("lost"), (r) => r.at("totals.lost_packets", "")]])));
}
