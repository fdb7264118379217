// run.js: the report of a plan's run: all tests in one table, then one table for each kind of test.
"use strict";

const nameOf = (doc, i) => textOf(at(doc, "test.name")) || textOf(at(doc, "test.workload")) || String(i + 1);
const link = (doc, i) => el("a", {href: `#test-${i + 1}`}, `${i + 1}. ${nameOf(doc, i)}`);
const statusText = (doc) => (doc.status === "ok" ? say("done") : say(textOf(doc.status)));

function beside(run, i) {
  const group = (Array.isArray(run.together) ? run.together : []).find((g) => Array.isArray(g) && g.includes(i));
  return group ? group.filter((k) => k !== i && isNumber(k)).map((k) => k + 1).join(", ") : "";
}

const fromOf = (doc) => textOf(at(doc, "test.from")) || textOf(at(doc, "local.host"));
const toOf = (doc) => textOf(at(doc, "test.to")) || textOf(at(doc, "test.target")) || textOf(at(doc, "peer.host"));

// The tests of one workload, and behind the last test of a sum the sum: {doc, i, base: where its figures stand}.
function rowsOf(run, tests, workload) {
  const sums = objectsOf(run.sums), rows = [];
  tests.forEach((doc, i) => {
    if (at(doc, "test.workload") !== workload) return;
    rows.push({doc, i, base: `tests.${i}`});
    sums.forEach((sum, k) => {
      if (Array.isArray(sum.tests) && sum.tests.at(-1) === i) rows.push({doc: sum, sum: true, base: `sums.${k}`});
    });
  });
  return rows.map((r) => ({...r, at: (p, unit = unitOf(p)) => (isNumber(at(r.doc, p)) ? figure(at(r.doc, p), unit, `${r.base}.${p}`) : null)}));
}

// The tables of the cloud recipe: packets per second, bandwidth, latency with average and p99.
function kindTable(run, tests, workload, title, columns) {
  const made = tableOf(rowsOf(run, tests, workload), [
    [say("test"), (r) => (r.sum ? el("strong", {}, `${textOf(r.doc.name)}, ${say("in all")}`) : link(r.doc, r.i))],
    [say("from"), (r) => (r.sum ? "" : fromOf(r.doc))], [say("to"), (r) => (r.sum ? "" : toOf(r.doc))],
    [say("size"), (r) => (at(r.doc, "test.params.size") > 0 ? r.at("test.params.size", "byte") : null)],
    [say("Connections"), (r) => r.at("test.load.connections", "")], ...columns,
    [say("limited by"), ({doc}) => say(textOf(at(doc, "limited_by.0.what")))]], {left: [1, 2, columns.length + 5]});
  return made && el("div", {"data-recipe": workload}, el("h4", {}, title), made);
}

// "packets: 3 tests began within 0.12 ms"
function instants(run) {
  const skews = Array.isArray(run.start_skew_us) ? run.start_skew_us : [];
  return (Array.isArray(run.together) ? run.together : []).map((group, i) => (Array.isArray(group) && isNumber(skews[i]) ?
    el("p", {class: "about"}, group.map((k) => nameOf(at(run, `tests.${k}`) || {}, k)).filter((n, k, all) => all.indexOf(n) === k).join(", "),
       ": ", say("began at one instant, within"), " ", figure(skews[i], "us", `start_skew_us.${i}`)) : null));
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
    warnings(run),
    section("overview", say("All tests"), all, instants(run),
      kindTable(run, tests, "pps", say("Packets per second"), [[say("sent"), (r) => r.at("rates.tx_packets_per_s")],
        [say("delivered"), (r) => r.at("rates.rx_packets_per_s")], [say("loss"), (r) => r.at("rates.loss_pct")]]),
      kindTable(run, tests, "bw", say("Bandwidth"), [[say("sent"), (r) => r.at("rates.tx_bits_per_s")],
        [say("received"), (r) => r.at("rates.rx_bits_per_s")], [say("retransmits"), (r) => r.at("totals.retransmits", "")],
        [say("loss"), (r) => r.at("rates.loss_pct")]]),
      kindTable(run, tests, "lat", say("Latency"), [[say("mean"), (r) => r.at("latency.mean_us")], ["p50", (r) => r.at("latency.p50_us")],
        ["p99", (r) => r.at("latency.p99_us")], [say("max"), (r) => r.at("latency.max_us")], [say("lost"), (r) => r.at("totals.lost_packets", "")]])));
}
