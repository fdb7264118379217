// chart.js: one uPlot in a figure of the page: its colours, its size, and drawing it anew when either changes.
"use strict";

// Of Okabe and Ito, who chose them to differ for every kind of colour vision; lines differ in dashes as well.
const inks = {
  light: {text: "#4a5563", grid: "#e3e6ea", blue: "#0072b2", red: "#d55e00", green: "#009e73", sky: "#56b4e9",
          orange: "#e69f00", purple: "#b0578d", strong: "#1d2630", grey: "#8c96a3"},
  dark: {text: "#a9b4c0", grid: "#2c353f", blue: "#5aaee8", red: "#f08a4b", green: "#35c79a", sky: "#9bd3f5",
         orange: "#f2b84b", purple: "#dd9dc4", strong: "#e8edf2", grey: "#77828e"},
};

const charts = {
  all: [],
  printing: false,
  ink: () => inks[!charts.printing && isDark() ? "dark" : "light"],
  width: (holder) => Math.max(240, Math.floor(holder.clientWidth)),
  draw(chart) {
    if (chart.plot) chart.plot.destroy();
    const {options, values} = chart.make(charts.ink());
    options.width = charts.printing ? 640 : charts.width(chart.holder);
    options.height = Math.round(Math.min(260, Math.max(190, options.width * 0.36)));
    chart.plot = new uPlot(options, values, chart.holder);
  },
  drawAll() {
    charts.all.forEach(charts.draw);
  },
  forget() {
    charts.all.forEach((c) => c.plot && c.plot.destroy());
    charts.all = [];
  },
};

const font = (px) => `${px}px ${getComputedStyle(document.body).fontFamily}`;

// As wide as the longest label needs; most need less than the least, so that charts below each other begin at one place.
function roomFor(u, labels, axis, cycle) {
  if (cycle > 1) return u.axes[axis]._size;
  u.ctx.font = u.axes[axis].font[0];
  const widest = Math.max(0, ...(labels || []).map((l) => u.ctx.measureText(l).width)) / devicePixelRatio;
  return Math.max(78, Math.ceil(widest + u.axes[axis].ticks.size + u.axes[axis].gap + 2));
}

// What all charts share. `x` and `y` say how to write a value; series: {label, ink, dash, width, values, …}.
function plotOptions(ink, {x, y, series, sync, scales = {}, xSplits}) {
  const axis = {stroke: ink.text, font: font(12), grid: {stroke: ink.grid, width: 1}, ticks: {stroke: ink.grid, width: 1, size: 5}};
  const xs = {...axis, size: 30, space: 70, values: (u, splits) => splits.map((v) => (v === null ? "" : x(v)))};
  if (xSplits) Object.assign(xs, {splits: xSplits, filter: (u, splits) => splits});
  return {
    padding: [10, 26, 0, 4],
    scales: {x: {time: false}, ...scales},
    cursor: {sync: sync ? {key: sync, setSeries: false} : undefined, drag: {x: false, y: false}, points: {size: 6}},
    legend: {live: true},
    hooks: {setCursor: [(u) => u.root.classList.toggle("pointed", u.cursor.idx !== null && u.cursor.idx !== undefined)]},
    axes: [xs, {...axis, size: roomFor, space: 34, values: (u, splits) => splits.map((v) => (v === null ? "" : y(v)))}],
    series: [{label: x.label, value: (u, v) => (v === null || v === undefined ? "–" : x(v))}, ...series.map((s) => ({
      label: s.label,
      stroke: s.stroke === undefined ? ink[s.ink] : s.stroke,
      fill: s.fill,
      width: s.width === undefined ? 1.75 : s.width,
      dash: s.dash,
      spanGaps: false,
      paths: s.paths,
      points: s.points || {size: 5, show: (u, i, from, to) => to - from < 40 && !s.noPoints},
      value: (u, v, si, i) => (i === null || i === undefined ? "–" : s.read ? s.read(i) : v === null ? "–" : y(v)),
    }))],
  };
}

// A titled figure; `make(ink)` gives {options, values} when it is time to draw.
function chart(id, title, make, note) {
  const holder = el("div", {class: "plot"});
  const frame = el("figure", {class: "chart", "data-chart": id}, el("figcaption", {}, title), holder,
                   note && el("p", {class: "note"}, note));
  charts.all.push({holder, make, plot: null});
  return frame;
}

// The lines of a logarithmic axis: powers of ten, with 2 and 5 or 3 between them where there is room for their labels.
function logTicks(low, high, pixels, room) {
  const all = (steps) => {
    const ticks = [];
    for (let e = Math.floor(Math.log10(low)); 10 ** e <= high * 1.001; e++) ticks.push(...steps.map((m) => m * 10 ** e));
    return ticks.filter((t) => t >= low * 0.999 && t <= high * 1.001);
  };
  const decades = Math.log10(high / low), gap = (narrowest) => pixels / decades * Math.log10(narrowest);
  return gap(2) >= room ? all([1, 2, 5]) : gap(3) >= room ? all([1, 3]) : all([1]);
}

function logAxis(options, axis, low, high) {
  const room = axis === 0 ? 58 : 30, side = axis === 0 ? "width" : "height";
  Object.assign(options.axes[axis], {splits: (u) => logTicks(low, high, u.bbox[side] / devicePixelRatio, room), filter: (u, splits) => splits});
}

const label = (text, write) => Object.assign((v) => write(v), {label: text});

// ---- light or dark

const theme = {chosen: null, system: matchMedia("(prefers-color-scheme: dark)")};

function isDark() {
  return theme.chosen ? theme.chosen === "dark" : theme.system.matches;
}

function setTheme(choice) {
  theme.chosen = choice;
  if (choice) document.documentElement.dataset.theme = choice;
  else delete document.documentElement.dataset.theme;
  charts.drawAll();
}

theme.system.addEventListener("change", () => charts.drawAll());
addEventListener("beforeprint", () => { charts.printing = true; charts.drawAll(); });
addEventListener("afterprint", () => { charts.printing = false; charts.drawAll(); });

// A page that became wider or narrower: a phone that was turned, a window that was drawn.
new ResizeObserver(() => {
  for (const c of charts.all) {
    if (c.plot && !charts.printing && c.plot.width !== charts.width(c.holder)) charts.draw(c);
  }
}).observe(document.body);
