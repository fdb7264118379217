// report.js: puts the page together, and again when the reader wants another language.
"use strict";

const stored = {document: data("document"), curves: data("curves")};
const isRun = stored.document.schema === "pitot.run/1";
const when = (text) => textOf(text).replace("T", " ").replace(/\.\d+Z$/, "Z").replace("Z", " UTC");

// "TCP, 64 connections, open loop (100,000/s), measured 10.0 s, after a warm-up of 1.00 s"
function loadLine(doc) {
  const params = at(doc, "test.params") || {}, workload = at(doc, "test.workload"), target = textOf(at(doc, "test.target"));
  const n = at(doc, "test.load.connections"), unit = textOf(at(doc, "test.load.rate_unit")), rate = at(doc, "test.load.rate");
  return [params.udp === true || workload === "pps" ? "UDP" : target.startsWith("unix:") ? say("unix socket") : "TCP",
    params.reverse === true ? say("the other end sends") : params.bidir === true ? say("both ends send") : "",
    isNumber(n) ? `${number(n)} ${say(n === 1 ? "connection" : "connections")}` : "",
    say(unit ? "open loop" : "closed loop") + (unit && isNumber(rate) ? ` (${show(rate, unit)})` : ""),
    isNumber(doc.duration_s) ? `${say("measured")} ${show(doc.duration_s, "s")}` : "",
    doc.warmup_s > 0 ? `${say("after a warm-up of")} ${show(doc.warmup_s, "s")}` : ""].filter((t) => t).join(", ");
}

function titleOf(doc) {
  const target = textOf(at(doc, "test.target")), host = textOf(at(doc, "peer.host"));
  return ["pitot", textOf(at(doc, "test.workload")), target ? target + (host && host !== target ? ` (${host})` : "") : say("this machine, loopback")].join(" ");
}

function test(doc, curves, i) {
  const heading = isRun ? el("h2", {}, `${i + 1}. ${nameOf(doc, i)}`) : null;
  return el("article", {class: "test", id: `test-${i + 1}`, "data-test": String(i)}, heading,
    el("p", {class: "about"}, isRun ? `${titleOf(doc)}. ` : "", loadLine(doc)),
    verdict(doc), warnings(doc), headline(doc), latency(doc, curves), overTime(doc, `time-${i}`), path(doc), flows(doc), steps(doc),
    search(doc), repeated(doc), hostTables(doc), plan(doc), environment(doc));
}

function tools() {
  const nextTheme = () => setTheme(isDark() ? "light" : "dark");
  const nextLanguage = () => { language.now = language.now === "zh" ? "en" : "zh"; build(); };
  return el("div", {class: "tools"},
    el("button", {type: "button", onclick: nextLanguage, lang: language.now === "zh" ? "en" : "zh"}, language.now === "zh" ? "English" : "中文"),
    el("button", {type: "button", onclick: nextTheme, title: say("light or dark")}, "◐", el("span", {class: "quiet"}, "")));
}

function build() {
  const doc = stored.document, tests = isRun ? objectsOf(doc.tests) : [doc];
  const title = isRun ? textOf(doc.name) || "pitot run" : titleOf(doc);
  charts.forget();
  document.documentElement.lang = language.now;
  document.title = `${title} · pitot`;
  const page = [
    el("header", {}, el("div", {class: "top"}, el("h1", {}, title), tools()), el("p", {class: "about"}, when(doc.started))),
    isRun && overview(doc, tests),
    ...tests.map((t, i) => test(t, stored.curves[i] || {}, i)),
    isRun && textOf(doc.plan) && el("article", {class: "test"}, section("plan-text", say("The whole plan"), el("pre", {}, doc.plan))),
    el("footer", {}, `pitot ${textOf(doc.version) || textOf(at(tests[0] || {}, "version"))}`, textOf(doc.id) && ` · ${doc.id}`,
       ` · ${say("Every figure is defined in docs/METHOD.md; point at one for its exact value.")}`)];
  document.querySelectorAll("body > header, body > article, body > .overview, body > footer").forEach((e) => e.remove());
  document.body.prepend(...page.filter((p) => p));
  charts.drawAll();
  document.documentElement.dataset.ready = "yes";
}

build();
