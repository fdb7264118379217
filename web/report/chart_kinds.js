// chart_kinds.js: the charts of a test: percentiles, histogram, lines over time, shares of the CPU.
"use strict";

const seconds = () => label(say("time"), (v) => `${Number(v.toFixed(2))} s`);
const microseconds = (v) => show(v, "us");
const range = (values) => {
  const known = values.filter((v) => isNumber(v) && v > 0);
  return {low: Math.min(...known), high: Math.max(...known), n: known.length};
};

// Logarithmic where the values span more than a factor of twenty, with room to the next line of the grid.
function latencyScale(values) {
  const {low, high, n} = range(values);
  if (n && high / low > 20) {
    const from = 10 ** Math.floor(Math.log10(low)), to = 10 ** Math.ceil(Math.log10(high));
    return {distr: 3, log: 10, range: [from, to === from ? from * 10 : to]};
  }
  return {range: (u, min, max) => [0, max > 0 ? max * 1.08 : 1]};
}

const fromZero = {range: (u, min, max) => [0, max > 0 ? max * 1.08 : 1]};

// ---- how the latencies are spread

const blocks = [
  ["latency", "round trip", "blue", undefined], ["service_time", "from sending", "red", [7, 4]],
  ["connect_time", "connect time", "green", [2, 3]], ["first_byte_time", "first byte", "purple", [10, 3, 2, 3]],
  ["wakeup_time", "wake-up", "orange", [2, 3]], ["one_way.forward", "forward", "sky", [7, 4]],
  ["one_way.backward", "backward", "purple", [10, 3, 2, 3]], ["load.idle", "without load", "grey", [4, 3]],
];

// In a closed loop an operation is sent when it is due: the two are the same.
function blocksOf(doc) {
  const closed = !at(doc, "test.load.arrivals");
  return blocks.filter(([path]) => at(doc, `${path}.count`) > 0 && !(closed && path === "service_time"));
}

function percentileChart(doc, curves) {
  const shown = blocksOf(doc).filter(([path]) => curves[path] && curves[path].percentiles.length > 1);
  if (!shown.length) return null;
  // The axis is the share of operations left beyond, turned round: each further nine takes the same room.
  const xOf = (q) => 1 / (1 - q), xs = [...new Set(shown.flatMap(([p]) => curves[p].percentiles.map(([q]) => xOf(q))))];
  xs.sort((a, b) => a - b);
  const lines = shown.map(([path]) => new Map(curves[path].percentiles.map(([q, us]) => [xOf(q), us])));
  const values = lines.map((m) => xs.map((x) => (m.has(x) ? m.get(x) : null)));
  const write = (x) => `${Number((100 - 100 / x).toFixed(Math.max(0, Math.ceil(Math.log10(x) - 1.999))))} %`;
  const splits = [1, 2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];
  return chart("percentiles", say("Percentiles"), (ink) => {
    const scale = latencyScale(values.flat()), last = xs[xs.length - 1];
    const options = plotOptions(ink, {
      x: label(say("quantile"), write), y: microseconds,
      // 0 % goes where it would stand in the way of 50 %.
      xSplits: (u) => splits.filter((s) => s <= last * 1.001 && (s > 1 || u.bbox.width / devicePixelRatio * Math.log10(2) > 45 * Math.log10(last))),
      scales: {x: {time: false, distr: 3, log: 10, range: [1, Math.max(last, 2)]}, y: scale},
      series: shown.map(([, name, colour, dash]) => ({label: say(name), ink: colour, dash, noPoints: true})),
    });
    if (scale.distr === 3) logAxis(options, 1, ...scale.range);
    options.series.slice(1).forEach((s) => { s.spanGaps = true; });
    return {options, values: [xs, ...values]};
  }, say("As deep as the samples allow: at least ten lie beyond each point."));
}

// One bar per bin, as wide as the bin; what is not empty is never too low to be seen.
function barPaths(bins) {
  return (u) => {
    const path = new Path2D(), base = u.valToPos(0, "y", true);
    for (const [from, below, count] of bins) {
      const left = u.valToPos(Math.max(from, bins[0].lowest), "x", true), right = u.valToPos(below, "x", true);
      const top = Math.min(u.valToPos(count, "y", true), base - 2 * devicePixelRatio);
      path.rect(left, top, Math.max(1, right - left - Math.min(2, (right - left) * 0.15)), base - top);
    }
    return {stroke: null, fill: path};
  };
}

function histogramChart(doc, curves) {
  const [path, name, colour] = blocksOf(doc)[0] || [];
  const bins = path && curves[path] ? curves[path].bins : [];
  if (!bins.length) return null;
  const low = Math.max(bins[0][0], 0.001), high = bins[bins.length - 1][1];
  bins[0].lowest = low;
  const xs = bins.map(([from, below]) => Math.sqrt(Math.max(from, low) * below));
  const span = (i) => `${microseconds(bins[i][0])} … ${microseconds(bins[i][1])}`;
  const fine = high / low < 3;
  return chart("histogram", `${say("Histogram")}, ${say(name)}`, (ink) => {
    const options = plotOptions(ink, {
      x: label(say("from … to"), microseconds), y: number,
      scales: {x: {time: false, distr: fine ? 1 : 3, log: 10, range: [low, high]}, y: fromZero},
      series: [{label: say("samples"), ink: colour, width: 0, fill: ink[colour], paths: barPaths(bins), noPoints: true,
                read: (i) => number(bins[i][2])}],
    });
    if (!fine) logAxis(options, 0, low, high);
    options.series[0].value = (u, v, si, i) => (i === null || i === undefined ? "–" : span(i));
    return {options, values: [xs, bins.map((b) => b[2])]};
  });
}

// ---- over time

// A row is about the interval that ends at its t_s: lines are steps, and begin where the first interval does.
const stairs = uPlot.paths.stepped({align: -1});
const startOf = (rows) => Math.max(0, rows[0].t_s - (isNumber(rows[0].span_s) ? rows[0].span_s : 0));
const timesOf = (rows) => [startOf(rows), ...rows.map((r) => r.t_s)];
const ofInterval = (values) => [values[0], ...values];

// lines: [label, colour, dash, row => value]; left out where no row has a value.
function lineChart(id, title, rows, lines, write, sync, scaleOf) {
  const values = lines.map(([, , , read]) => rows.map((r) => { const v = read(r); return isNumber(v) ? v : null; }));
  const used = lines.map((_, i) => i).filter((i) => values[i].some((v) => v !== null));
  if (!rows.length || !used.length) return null;
  const xs = timesOf(rows);
  return chart(id, title, (ink) => {
    const shown = used.map((i) => ofInterval(values[i]));
    const scale = scaleOf ? scaleOf(shown.flat()) : fromZero;
    const logged = scale.distr === 3;
    const drawn = logged ? shown.map((v) => v.map((n) => (n > 0 ? n : null))) : shown;
    const options = plotOptions(ink, {
      x: seconds(), y: write, sync, scales: {x: {time: false, range: [0, Math.max(...xs)]}, y: scale},
      series: used.map((i) => ({label: lines[i][0], ink: lines[i][1], dash: lines[i][2], paths: stairs, noPoints: true})),
    });
    if (logged) logAxis(options, 1, ...scale.range);
    return {options, values: [xs, ...drawn]};
  });
}

const cpuKinds = [["user_pct", "user", "blue"], ["system_pct", "system", "sky"], ["softirq_pct", "softirq", "orange"],
                  ["irq_pct", "irq", "purple"], ["iowait_pct", "iowait", "grey"], ["steal_pct", "steal", "red"]];

// Areas on top of each other: the sum of all kinds is drawn first and the rest over it.
function cpuChart(id, title, rows, sync) {
  // User and system are always told, an idle host's as well; of the rest what there was.
  const kinds = cpuKinds.filter(([key], i) => rows.some((r) => (i < 2 ? isNumber(r[key]) : r[key] > 0)));
  if (!rows.length || !kinds.length) return null;
  const xs = timesOf(rows), sums = [];
  for (const [key] of kinds) {
    const below = sums.length ? sums[sums.length - 1] : rows.map(() => 0);
    sums.push(rows.map((r, i) => below[i] + (isNumber(r[key]) ? r[key] : 0)));
  }
  const order = kinds.map((_, i) => i).reverse(), percentOf = (v) => show(v, "%"), rowAt = (x) => rows[Math.max(0, x - 1)];
  return chart(id, title, (ink) => {
    const areas = order.map((i) => ({label: say(kinds[i][1]), stroke: ink[kinds[i][2]], width: 1, fill: ink[kinds[i][2]],
                                     paths: stairs, noPoints: true, read: (x) => percentOf(rowAt(x)[kinds[i][0]])}));
    const busiest = {label: say("busiest CPU"), ink: "strong", dash: [4, 3], width: 1.25, paths: stairs, noPoints: true,
                     read: (x) => `${percentOf(rowAt(x).busiest_cpu_pct)} (${rowAt(x).busiest_cpu ?? "–"})`};
    const options = plotOptions(ink, {
      x: seconds(), y: (v) => `${v} %`, sync,
      scales: {x: {time: false, range: [0, Math.max(...xs)]}, y: {range: [0, 100]}},
      series: [...areas, busiest],
    });
    const line = rows.map((r) => (isNumber(r.busiest_cpu_pct) ? r.busiest_cpu_pct : null));
    return {options, values: [xs, ...order.map((i) => ofInterval(sums[i])), ofInterval(line)]};
  });
}
