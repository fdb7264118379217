// figure.js: a figure of the document as text with its unit, rounded as the text report does (src/base/units.c).
"use strict";

const isNumber = (v) => typeof v === "number" && Number.isFinite(v);

// The value at a path of keys and indices, "flows.0.cwnd"; undefined where there is none.
function at(object, path) {
  for (const key of path.split(".")) {
    if (object === null || typeof object !== "object" || !Object.hasOwn(object, key)) return undefined;
    object = object[key];
  }
  return object;
}

function fixed(v, decimals) {
  const unit = 10 ** decimals, scaled = Math.round(Math.abs(v) * unit);
  if (scaled > Number.MAX_SAFE_INTEGER) return String(v);
  const whole = Math.floor(scaled / unit), rest = String(scaled % unit).padStart(decimals, "0");
  return (v < 0 && scaled ? "-" : "") + whole + (decimals ? "." + rest : "");
}

// Three significant digits; whole numbers below 1000 may stay whole.
function three(v, keepWhole) {
  const m = Math.abs(v), whole = keepWhole && m < 1000 && Number.isInteger(m);
  return fixed(v, whole ? 0 : m < 0.9995 ? 3 : m < 9.995 ? 2 : m < 99.95 ? 1 : 0);
}

function scaled(v, step, prefixes, unit, space) {
  let i = 0;
  while (Math.abs(v) >= step - 0.5 && i + 1 < prefixes.length) {
    v /= step;
    i++;
  }
  return three(v, i === 0) + (prefixes[i] || unit || space ? " " : "") + prefixes[i] + unit;
}

const si = (v, unit) => scaled(v, 1000, ["", "k", "M", "G", "T", "P"], unit, false);
const size = (v) => scaled(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], "", true);
const pad2 = (n) => String(n).padStart(2, "0");

function time(s) {
  const m = Math.abs(s), sign = s < 0 ? "-" : "";
  if (m >= 3599.5) {
    const minutes = Math.round(m / 60);
    return `${sign}${Math.floor(minutes / 60)} h ${pad2(minutes % 60)} min`;
  }
  if (m >= 59.95) {
    const whole = Math.round(m);
    return `${sign}${Math.floor(whole / 60)} min ${pad2(whole % 60)} s`;
  }
  if (m === 0) return "0 s";
  const units = [["ns", 1e9], ["µs", 1e6], ["ms", 1e3], ["s", 1]];
  let i = 0;
  while (i + 1 < units.length && m * units[i][1] >= 999.5) i++;
  return `${three(s * units[i][1], i === 0)} ${units[i][0]}`;
}

function number(v) {
  if (Math.abs(v) < 999.5) return three(v, true);
  return fixed(v, 0).replace(/\B(?=(\d{3})+$)/g, ",");
}

function percent(v) {
  return v > 0 && v < 0.0005 ? "< 0.001 %" : `${three(v, true)} %`;
}

// Units are those of `headline`, and "CPU s" for seconds that are not scaled; another is appended.
function show(v, unit = "") {
  if (!isNumber(v)) return "–";
  switch (unit) {
    case "bit/s": return si(v, unit);
    case "packet/s": return si(v, "pps");
    case "us": return time(v / 1e6);
    case "s": return time(v);
    case "%": return percent(v);
    case "byte": return size(v);
    case "operation/s": return `${number(v)}/s`;
    case "CPU s": return `${number(v)} s`;
    case "": return number(v);
    default: return `${number(v)} ${unit}`;
  }
}

// The unit that the end of a key tells.
function unitOf(path) {
  const ends = [["bits_per_s", "bit/s"], ["packets_per_s", "packet/s"], ["_per_s", "operation/s"], ["_us", "us"],
                ["_s", "s"], ["_pct", "%"], ["_bytes", "byte"]];
  const found = ends.find(([end]) => path.endsWith(end));
  return found ? found[1] : "";
}
