// page.js: elements of the page. Whatever comes from a document goes into text nodes and data attributes only.
"use strict";

// el("td", {class: "n"}, "text", otherElement, [more]): what `length && …` or a missing value leaves is passed over;
// figures are text by the time they come here.
function el(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) e.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (typeof child === "string" || child instanceof Node) e.append(child);
  }
  return e;
}

// A figure with where it stands in the document and its exact value, for whoever wants to check.
function figure(value, unit, path) {
  const exact = isNumber(value) ? String(value) : null;
  return el("span", {class: exact === null ? "n none" : "n", "data-path": path, "data-value": exact, title: exact},
            show(value, unit));
}

const figureAt = (doc, path, unit = unitOf(path)) => figure(at(doc, path), unit, path);

function section(id, title, ...content) {
  const inner = content.flat(Infinity).filter((c) => c);
  return inner.length ? el("section", {"data-section": id}, el("h3", {}, title), ...inner) : null;
}

const textOf = (v) => (typeof v === "string" ? v : "");
const objectsOf = (v) => (Array.isArray(v) ? v.filter((o) => o !== null && typeof o === "object") : []);

// titles: of the columns; rows: arrays of text or elements, the first names the row. A wide table scrolls by itself.
function table(titles, rows, options = {}) {
  if (!rows.length) return null;
  const left = new Set(options.left || []);
  const kind = (i) => (i === 0 || left.has(i) ? "t" : "n");
  return el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": options.label || titles.join(", ")},
    el("table", {class: options.class},
      titles.some((t) => t) &&
        el("thead", {}, el("tr", {}, titles.map((t, i) => el("th", {scope: "col", class: kind(i)}, t)))),
      el("tbody", {}, rows.map((row) => el("tr", {class: row.mark},
        row.map((cell, i) => el(i ? "td" : "th", {scope: i ? null : "row", class: kind(i)}, cell)))))));
}

// A column only where some row has something to say: columns are [title, row => cell text or element or null].
function tableOf(objects, columns, options = {}) {
  const cells = columns.map(([, make]) => objects.map(make));
  const used = columns.map((_, i) => i === 0 || cells[i].some((c) => c !== null && c !== undefined && c !== ""));
  const keep = columns.map((_, i) => i).filter((i) => used[i]);
  const left = (options.left || []).map((i) => keep.indexOf(i)).filter((i) => i > 0);
  const rows = objects.map((o, r) => {
    const row = keep.map((i) => cells[i][r] ?? "–");
    row.mark = options.mark ? options.mark(o) : null;
    return row;
  });
  return table(keep.map((i) => columns[i][0]), rows, {...options, left});
}

// "label  value" pairs in as many columns as fit.
function pairs(rows) {
  const some = rows.filter((r) => r);
  return some.length ? el("dl", {class: "pairs"},
    some.map(([label, value]) => el("div", {}, el("dt", {}, label), el("dd", {}, value)))) : null;
}

const list = (items, kind) => (items.length ? el("ul", {class: kind}, items.map((i) => el("li", {}, i))) : null);
