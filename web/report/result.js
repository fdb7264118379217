// result.js: the sections of one test, in the order a reader asks: what came out and why, then how.
"use strict";

// ---- the verdict

const limitOf = (l) => say(textOf(l.what)) + (textOf(l.where) ? (language.now === "zh" ? `（${l.where}）` : ` (${l.where})`) : "");

function headlineText(doc) {
  const first = objectsOf(doc.headline)[0];
  return first && isNumber(first.value) ? `${say(textOf(first.name))} ${show(first.value, textOf(first.unit))}` : "";
}

function verdictSentence(doc) {
  const first = objectsOf(doc.limited_by)[0], zh = language.now === "zh";
  const what = headlineText(doc), stop = zh ? "。" : ".", comma = zh ? "，" : ", ";
  if (doc.status === "failed") return say("The test failed") + stop;
  const lead = (doc.status === "partial" ? say("partial") + (zh ? "：" : ": ") : "") + (what ? what + comma : "");
  if (first) return `${lead}${say("limited by")}${zh ? "：" : " "}${limitOf(first)}${stop}`;
  return lead + say("and nothing stood out as the limit") + stop;
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function verdict(doc) {
  const invalid = at(doc, "generator.valid") === false;
  const limits = objectsOf(doc.limited_by).map((l) => el("li", {},
    el("strong", {}, limitOf(l)), textOf(l.evidence) && `: ${l.evidence}.`,
    textOf(l.advice) && el("div", {class: "advice"}, `${say("try")}: ${l.advice}`)));
  return el("div", {class: invalid || (doc.status && doc.status !== "ok") ? "verdict bad" : "verdict", "data-section": "verdict"},
    el("p", {class: "sentence"}, capital(verdictSentence(doc))),
    invalid && el("p", {class: "unheld"}, say("The generator was the limit: the figures show this machine, not the target.")),
    limits.length && el("ul", {class: "limits"}, limits));
}

function warnings(doc) {
  const all = Array.isArray(doc.warnings) ? doc.warnings.map(textOf) : [];
  return all.length ? el("div", {class: doc.status === "ok" ? "said" : "said bad", "data-section": "warnings"},
                         el("strong", {}, say("Warnings")), list(all)) : null;
}

function expectations(doc) {
  return table([say("Expected"), say("measured"), ""], objectsOf(doc.expect).map((x, i) => [
    el("code", {}, textOf(x.text)), figure(x.value, unitOf(textOf(x.path)), `expect.${i}.value`),
    el("span", {class: x.ok ? "held" : "unheld"}, say(x.ok ? "held" : "not held"))]));
}

// ---- the headline, and what it rests on

// Those of the table in src/model/figures.c, and what the text report says in its title or in other places.
const figures = [...data("figures"), {name: "samples", path: "latency.count", unit: "", workloads: "lat"},
  {name: "half the round trip, p50", path: "half_rtt_p50_us", unit: "us", workloads: "lat"},
  {name: "clock offset", path: "one_way.offset_us", unit: "us", workloads: "lat"}, {name: "measured for", path: "duration_s", unit: "s"}];

const belongs = (f, doc) => !f.workloads || !textOf(at(doc, "test.workload")) || f.workloads.split(" ").includes(at(doc, "test.workload"));
const figureOf = (doc, path) => figures.find((f) => f.path === path && belongs(f, doc)) || {name: path, unit: unitOf(path)};

function headline(doc) {
  const all = objectsOf(doc.headline), paths = new Set(all.map((h) => h.path));
  const told = objectsOf(doc.directions).length;
  const cards = all.map((h, i) => el("div", {class: "card"},
    figure(h.value, textOf(h.unit), `headline.${i}.value`), el("span", {class: "name"}, say(textOf(h.name)))));
  const more = figures.filter((f) => {
    const v = at(doc, f.path);
    return isNumber(v) && !paths.has(f.path) && belongs(f, doc) && !f.tabled && !(f.hide_zero && v === 0) && !(told && f.path.startsWith("rates."));
  }).map((f) => [say(f.name), figureAt(doc, f.path, f.unit)]);
  const errors = Object.entries(at(doc, "totals.errors") || {}).filter(([, n]) => n > 0)
    .map(([kind, n]) => [`${say("errors")}: ${kind}`, figure(n, "", `totals.errors.${kind}`)]);
  return section("headline", say("Result"), cards.length && el("div", {class: "cards"}, cards),
                 pairs([...more, ...errors]), directions(doc), expectations(doc));
}

function directions(doc) {
  const all = objectsOf(doc.directions).map((d, i) => ({d, at: (path, unit) => isNumber(at(d, path)) ? figure(at(d, path), unit, `directions.${i}.${path}`) : null}));
  return tableOf(all, [
    [say("Directions"), ({d}) => say(textOf(d.name))],
    [say("received"), (d) => d.at("rates.rx_bits_per_s", "bit/s")], [say("sent"), (d) => d.at("rates.tx_bits_per_s", "bit/s")],
    [say("delivered"), (d) => d.at("rates.rx_packets_per_s", "packet/s")], [say("loss"), (d) => d.at("rates.loss_pct", "%")],
    [say("lost"), (d) => d.at("totals.lost_packets", "")]]);
}

// ---- latency

const timings = [["mean", "mean_us"], ["min", "min_us"], ["p50", "p50_us"], ["p75", "p75_us"], ["p90", "p90_us"], ["p95", "p95_us"],
                 ["p99", "p99_us"], ["p99.9", "p99_9_us"], ["p99.99", "p99_99_us"], ["max", "max_us"], ["stddev", "stddev_us"]];

function latency(doc, curves) {
  const shown = blocksOf(doc);
  if (!shown.length) return null;
  const rows = shown.map(([path, name]) => [say(name), ...timings.map(([, key]) => figureAt(doc, `${path}.${key}`, "us"))]);
  return section("latency", say("Latency"), table(["", ...timings.map(([name]) => say(name))], rows, {label: say("Latency")}),
                 percentileChart(doc, curves), histogramChart(doc, curves));
}

// ---- over time

const perSecond = (row, key, factor = 1) => (isNumber(row[key]) && row.span_s > 0 ? row[key] * factor / row.span_s : null);

function overTime(doc, sync) {
  const rows = objectsOf(doc.series).filter((r) => isNumber(r.t_s)), lat = at(doc, "test.workload") === "lat";
  const bits = (v) => si(v, "bit/s"), packets = (v) => si(v, "pps");
  const parts = [
    !lat && lineChart("rate", say("Rate"), rows, [
      [say("received"), "blue", undefined, (r) => perSecond(r, "rx_bytes", 8)],
      [say("sent"), "red", [7, 4], (r) => perSecond(r, "tx_bytes", 8)]], bits, sync),
    lat && lineChart("rate", say("Rate"), rows, [[say("round trips"), "blue", undefined, (r) => perSecond(r, "ok")]],
                     (v) => `${number(v)}/s`, sync),
    lineChart("packets", say("Packets"), rows, [
      [say("delivered"), "blue", undefined, (r) => perSecond(r, "rx_packets")],
      [say("sent"), "red", [7, 4], (r) => perSecond(r, "tx_packets")],
      [say("lost"), "purple", [2, 3], (r) => perSecond(r, "lost_packets")]], packets, sync),
    lineChart("latency-time", say("Latency"), rows, [
      ["p50", "blue", undefined, (r) => r.p50_us], ["p99", "red", [7, 4], (r) => r.p99_us],
      [say("max"), "purple", [2, 3], (r) => r.max_us]], microseconds, sync, latencyScale),
    lineChart("rtt", say("TCP round trip"), rows, [[say("TCP round trip"), "green", undefined, (r) => (lat ? null : r.rtt_us)]],
              microseconds, sync),
    ...hostCharts(doc, sync), intervals(doc, rows)];
  return section("series", say("Over time"), parts);
}

// Every interval as figures, for whoever wants the numbers behind the lines.
function intervals(doc, rows) {
  const keys = ["operations", "ok", "errors", "tx_bytes", "rx_bytes", "tx_packets", "rx_packets", "lost_packets",
                "retransmits", "p50_us", "p99_us", "max_us", "rtt_us", "cwnd", "connections"];
  const indexed = rows.slice(0, 600).map((row) => ({row, i: doc.series.indexOf(row)}));
  const made = tableOf(indexed, [["t_s", ({row, i}) => figure(row.t_s, "s", `series.${i}.t_s`)],
    ...keys.map((key) => [key, ({row, i}) => (isNumber(row[key]) ? figure(row[key], unitOf(key), `series.${i}.${key}`) : null)])],
    {label: say("Figures of each interval")});
  return made && el("details", {}, el("summary", {}, say("Figures of each interval")), made,
                    rows.length > 600 && el("p", {class: "note"}, `${rows.length - 600} ${say("more")}`));
}

// ---- where packets went

const stages = {app_sent: "sent by the application", kernel_sent: "accepted by the kernel", nic_sent: "sent by the interface",
                nic_received: "received by the interface", kernel_delivered: "delivered to the socket", app_received: "read by the application"};

function path(doc) {
  const all = objectsOf(doc.path), most = Math.max(1, ...all.map((s) => s.packets || 0));
  const share = (n) => `${isNumber(n) ? 100 * Math.min(1, n / most) : 0}%`;
  const rows = all.map((s, i) => el("li", {},
    el("span", {}, say(stages[s.stage] || textOf(s.stage))),
    el("span", {class: "track", "aria-hidden": "true"}, el("span", {class: "through", style: `--through:${share(s.packets)}`}),
      el("span", {class: "lost", style: `--lost:${share(s.lost_here)}`})),
    figure(s.packets, "", `path.${i}.packets`),
    el("span", {class: s.lost_here > 0 ? "n unheld" : "n"}, figure(s.lost_here, "", `path.${i}.lost_here`)),
    textOf(s.evidence) && s.lost_here > 0 && el("span", {class: "why"}, s.evidence)));
  return rows.length ? section("path", say("Path, over the whole run"), el("ol", {class: "path"},
    el("li", {class: "head"}, el("span"), el("span"), el("span", {class: "n"}, say("packets")), el("span", {class: "n"}, say("lost here"))),
    rows)) : null;
}

// ---- flows

const FLOWS_SHOWN = 20;

function flows(doc) {
  const all = objectsOf(doc.flows).map((f, i) => ({f, at: (key, unit = unitOf(key)) => (isNumber(f[key]) ? figure(f[key], unit, `flows.${i}.${key}`) : null)}));
  if (!all.length) return null;
  const sorted = [...all].sort((a, b) => (b.f.bits_per_s || 0) - (a.f.bits_per_s || 0));
  const both = at(doc, "test.params.bidir") === true;
  const made = tableOf(sorted.slice(0, FLOWS_SHOWN), [
    [say("flow"), ({f}) => String(f.id ?? "–")], [say("direction"), ({f}) => (both ? say(textOf(f.direction)) : null)],
    [say("from"), ({f}) => textOf(f.local)], [say("to"), ({f}) => textOf(f.remote)],
    [say("rate"), (f) => f.at("bits_per_s")], [say("packets"), (f) => f.at("packets_per_s")], [say("lost"), (f) => f.at("lost_packets", "")],
    [say("jitter"), (f) => f.at("jitter_us")], [say("retransmits"), (f) => f.at("retransmits", "")], ["cwnd", (f) => f.at("cwnd", "")],
    ["srtt", (f) => f.at("srtt_us")], ["min rtt", (f) => f.at("min_rtt_us")],
    [say("limited by"), ({f}) => say(textOf(f.limited_by))], [say("errors"), ({f}) => textOf(f.error)]], {left: [1, 2, 3, 12, 13]});
  const rest = Math.max(0, all.length - FLOWS_SHOWN) + (isNumber(doc.flows_not_shown) ? doc.flows_not_shown : 0);
  const fair = doc.fairness || {}, unit = isNumber(fair.min_packets_per_s) ? "packets_per_s" : "bits_per_s";
  return section("flows", say("Flows"), made,
    rest > 0 && el("p", {class: "note", "data-rest": String(rest)}, `${number(rest)} ${say("more flows, which are in the totals")}`),
    isNumber(fair.jain) && pairs([[say("fairness (Jain)"), figureAt(doc, "fairness.jain")],
      [say("slowest flow"), figureAt(doc, `fairness.min_${unit}`)], [say("fastest flow"), figureAt(doc, `fairness.max_${unit}`)]]));
}

// ---- boost, search, repeated runs

function runsTable(doc, base, first, rateUnit) {
  const all = objectsOf(at(doc, base)).map((s, i) => ({s, at: (key, unit = unitOf(key)) => (isNumber(s[key]) ? figure(s[key], unit, `${base}.${i}.${key}`) : null)}));
  const arrives = all.some(({s}) => isNumber(s.rx_packets_per_s) || isNumber(s.rx_bits_per_s));
  return tableOf(all, [
    [say(first), ({s}) => say(textOf(s[first]))], [say("Connections"), (s) => s.at("connections", "")], [say("rate"), (s) => s.at("rate", rateUnit)],
    [say("sent"), (s) => s.at("tx_packets_per_s") || s.at("tx_bits_per_s")],
    [say("delivered"), (s) => s.at("rx_packets_per_s") || s.at("rx_bits_per_s")],
    [say("per second"), (s) => (arrives ? null : s.at("operations_per_s"))], [say("mean"), (s) => s.at("mean_us")],
    ["p99", (s) => s.at("p99_us")], [say("loss"), (s) => s.at("loss_pct")],
    [say("verdict"), ({s}) => (first === "verdict" ? null : say(textOf(s.verdict)))]], {left: [9]});
}

function steps(doc) {
  const made = runsTable(doc, "steps", "verdict", textOf(at(doc, "test.load.rate_unit")));
  return made && section("steps", say("Steps"), made);
}

function search(doc) {
  if (!doc.search || typeof doc.search !== "object") return null;
  const bits = doc.search.found_bits_per_s !== undefined, key = bits ? "found_bits_per_s" : "found_packets_per_s";
  return section("search", say("Trials"), pairs([[say("highest rate within the limit"), figureAt(doc, `search.${key}`)],
    [say("limit"), textOf(doc.search.limit)]]), runsTable(doc, "search.trials", "trial", bits ? "bit/s" : "packet/s"));
}

function repeated(doc) {
  const metrics = at(doc, "repeat.metrics");
  if (!metrics || typeof metrics !== "object") return null;
  const named = new Map(objectsOf(doc.headline).map((h) => [h.path, h]));
  const rows = Object.entries(metrics).map(([key, m]) => {
    const h = named.get(key) || figureOf(doc, key), cell = (v, unit, which) => figure(v, unit, `repeat.metrics.${key}.${which}`);
    return [say(textOf(h.name)), cell(m.median, h.unit, "median"), cell(m.min, h.unit, "min"), cell(m.max, h.unit, "max"), cell(m.spread_pct, "%", "spread_pct"),
            el("span", {}, (Array.isArray(m.values) ? m.values : []).map((v, i) => [i ? ", " : "", cell(v, h.unit, `values.${i}`)]))];
  });
  return section("repeat", say("Repeated"),
    el("p", {}, `${say("runs")}: ${show(at(doc, "repeat.n"))}, ${say(at(doc, "repeat.agree") === true ? "they agree" : "they do not agree")}`),
    table(["", say("median"), say("min"), say("max"), say("spread"), say("each run")], rows, {left: [5], label: say("Repeated")}));
}
