// hosts.js: what the hosts did, in the tables of a performance test: CPU, load, memory, network; and what they are.
"use strict";

const roles = {both: "sender and receiver", sender: "sender", receiver: "receiver", client: "client", server: "server"};

const hostName = (h) => [textOf(h.name), say(roles[h.role] || textOf(h.role))].filter((t) => t).join(", ");

function hostCharts(doc, sync) {
  const bytes = (v) => `${number(v)} kB/s`;
  return objectsOf(doc.hosts).flatMap((h) => {
    const rows = objectsOf(h.series).filter((r) => isNumber(r.t_s) && r.t_s > 0);
    return [cpuChart("cpu", `CPU, ${hostName(h)}`, rows, sync),
            lineChart("host-packets", `${say("Packets of all interfaces")}, ${hostName(h)}`, rows, [
              [say("received"), "blue", undefined, (r) => r.rx_packets_per_s], [say("sent"), "red", [7, 4], (r) => r.tx_packets_per_s]],
              (v) => si(v, "pps"), sync),
            lineChart("host-bytes", `${say("Bytes of all interfaces")}, ${hostName(h)}`, rows, [
              [say("received"), "blue", undefined, (r) => r.rx_kB_per_s], [say("sent"), "red", [7, 4], (r) => r.tx_kB_per_s]], bytes, sync)];
  });
}

// A row per host: {h, at(path, unit)}.
function hostRows(doc) {
  return objectsOf(doc.hosts).map((h, i) => ({h, at: (p, unit) => (isNumber(at(h, p)) ? figure(at(h, p), unit, `hosts.${i}.${p}`) : null)}));
}

function cpuTables(hosts) {
  const kinds = ["user", "nice", "system", "iowait", "irq", "softirq", "steal", "idle"];
  const all = tableOf(hosts, [[say("CPU, %"), ({h}) => hostName(h)], [say("CPUs"), (h) => h.at("cpus", "")],
    ...kinds.map((k) => [say(k), (h) => h.at(`cpu.${k}_pct`, "")])]);
  const each = hosts.map(({h}, i) => {
    const busy = Array.isArray(at(h, "cpu.per_cpu")) ? h.cpu.per_cpu : [];
    const ranked = busy.map((v, cpu) => ({v, cpu})).filter(({v}) => isNumber(v)).sort((a, b) => b.v - a.v).slice(0, 16);
    return ranked.length ? [hostName(h), ranked.map(({v, cpu}, n) => [n ? ", " : "", `${cpu}: `, figure(v, "%", `hosts.${i}.cpu.per_cpu.${cpu}`)])] : null;
  }).filter((r) => r);
  return [el("h4", {}, "CPU"), all, table([say("busiest CPUs"), ""], each, {left: [1], label: say("busiest CPUs")})];
}

function memoryTables(hosts) {
  const mib = (h, key) => h.at(`memory.${key}`, "byte");
  return [el("h4", {}, say("load average")),
    tableOf(hosts, [["", ({h}) => hostName(h)], ["1 min", (h) => h.at("load.0", "")], ["5 min", (h) => h.at("load.1", "")],
                    ["15 min", (h) => h.at("load.2", "")], [say("per CPU"), (h) => h.at("load_per_cpu", "")]], {label: say("load average")}),
    el("h4", {}, say("Memory")),
    tableOf(hosts, [["", ({h}) => hostName(h)], ...["total", "used", "free", "shared"].map((k) => [say(k), (h) => mib(h, k)]),
                    [say("buff/cache"), (h) => mib(h, "buff_cache")], [say("available"), (h) => mib(h, "available")]], {label: say("Memory")}),
    hosts.some(({h}) => h.process) && el("h4", {}, say("pitot's processes")),
    tableOf(hosts.filter(({h}) => h.process), [["", ({h}) => hostName(h)], ["VIRT", (h) => h.at("process.virt", "byte")],
      ["RES", (h) => h.at("process.res", "byte")], ["SHR", (h) => h.at("process.shr", "byte")], ["%MEM", (h) => h.at("process.mem_pct", "")],
      [say("CPU, user"), (h) => h.at("process.cpu_user_s", "CPU s")], [say("CPU, system"), (h) => h.at("process.cpu_system_s", "CPU s")]],
      {label: say("pitot's processes")})];
}

// As sar -n DEV and -n EDEV name them.
function networkTables(hosts) {
  const every = hosts.flatMap((h, i) => objectsOf(h.h.net).map((n, k) => ({h: h.h, n,
    at: (key) => (isNumber(n[key]) ? figure(n[key], "", `hosts.${i}.net.${k}.${key}`) : null)})));
  const counts = (n) => Object.entries(n).some(([key, v]) => key !== "speed_mbit" && v > 0);
  const all = every.filter(({n}) => counts(n)), idle = every.length - all.length;
  const counters = (kind, title) => {
    const names = [...new Set(hosts.flatMap(({h}) => Object.keys(h[kind] || {}).filter((k) => h[kind][k] > 0)))];
    return names.length ? tableOf(hosts, [[title, ({h}) => hostName(h)], ...names.map((k) => [k, (h) => h.at(`${kind}.${k}`, "")])]) : null;
  };
  const made = [counters("tcp", "TCP"), counters("udp", "UDP"), counters("softnet", "softnet")].filter((t) => t);
  return [all.length && el("h4", {}, say("Network")),
    tableOf(all, [[say("interface"), ({n}) => textOf(n.if)], [say("host"), ({h}) => (hosts.length > 1 ? hostName(h) : null)],
      ["rxpck/s", (n) => n.at("rx_packets_per_s")], ["txpck/s", (n) => n.at("tx_packets_per_s")], ["rxkB/s", (n) => n.at("rx_kB_per_s")],
      ["txkB/s", (n) => n.at("tx_kB_per_s")], ["rxcmp/s", (n) => n.at("rx_cmp_per_s")], ["txcmp/s", (n) => n.at("tx_cmp_per_s")],
      ["%ifutil", (n) => n.at("if_util_pct")], ["rxdrop", (n) => n.at("rx_dropped")], ["txdrop", (n) => n.at("tx_dropped")],
      ["rxerr", (n) => n.at("rx_errors")], ["txerr", (n) => n.at("tx_errors")]], {left: [1], label: say("Network")}),
    idle > 0 && el("p", {class: "note"}, `${idle} ${say("without a packet")}`),
    made.length && el("h4", {}, say("Counters that rose")), ...made];
}

function hostTables(doc) {
  const hosts = hostRows(doc);
  return hosts.length ? section("hosts", say("Hosts"), cpuTables(hosts), memoryTables(hosts), networkTables(hosts)) : null;
}

// ---- what was asked for, and of what

const isValue = (v) => v !== null && v !== undefined && v !== "" && typeof v !== "object";
// What is off or left to pitot says nothing: the command line above has all that was asked for.
const isSet = (v) => isValue(v) && v !== false && v !== 0;
const plainly = (v) => (v === true ? say("yes") : v === false ? say("no") : Array.isArray(v) ? v.map(plainly).join(" ") : String(v));
const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

function plan(doc) {
  const argv = Array.isArray(doc.argv) ? doc.argv.map(textOf) : [];
  const rate = (v) => (v && typeof v === "object" && isNumber(v.per_s) ? show(v.per_s, v.bits ? "bit/s" : "operation/s") : null);
  const params = Object.entries(at(doc, "test.params") || {}).map(([key, v]) => [key, rate(v) || (isSet(v) ? plainly(v) : Array.isArray(v) && v.length ? plainly(v) : null)])
    .filter(([, v]) => v !== null).map(([key, v]) => [el("code", {}, key), v]);
  const chosen = table([say("Chosen"), "", ""], objectsOf(doc.chosen).map((c) => [textOf(c.what),
    isNumber(c.value) ? show(c.value, textOf(c.unit)) : isValue(c.value) ? plainly(c.value) : "–", textOf(c.why)]), {left: [1, 2], class: "long", label: say("Chosen")});
  const more = [[say("placement"), textOf(at(doc, "placement.text"))], [say("event loop"), [textOf(at(doc, "generator.engine")), textOf(at(doc, "generator.engine_reason"))].filter((t) => t).join(": ")]]
    .filter(([, v]) => v);
  const notes = Array.isArray(doc.notes) ? doc.notes.map(textOf) : [];
  return section("plan", say("Plan"), argv.length && el("pre", {}, argv.map(quoted).join(" ")), pairs(params),
    chosen, table(["", ""], more, {left: [1], class: "long", label: say("placement")}), notes.length && [el("h4", {}, say("Notes")), list(notes)]);
}

const identityRows = [["host", "host"], ["pitot", "pitot"], ["kernel", "kernel"], ["machine", "architecture"], ["cpu_model", "CPU model"], ["cpus", "CPUs"],
                      ["virtualised", "virtual machine"], ["address", "address"], ["netns", "network namespace"], ["boot_id", "boot id"]];

function environmentRows(doc, ends) {
  const row = (title, values) => (values.some((v) => v !== null) ? [title, ...values.map((v) => v ?? "–")] : null);
  const value = (v) => (isValue(v) ? plainly(v) : null);
  const rows = identityRows.map(([key, title]) => row(say(title), ends.map((e) => value(at(doc, `${e}.${key}`)))));
  const known = [["platform", "virtualisation"], ["congestion_control", "congestion control"], ["default_qdisc", "default qdisc"],
                 ["clock_source", "clock source"], ["governor", "CPU governor"], ["smt", "SMT"]];
  rows.push(...known.map(([key, title]) => row(say(title), ends.map((e) => value(at(doc, `environment.${e}.${key}`))))));
  const names = [...new Set(ends.flatMap((e) => Object.keys(at(doc, `environment.${e}.sysctl`) || {})))];
  // The names of these hold dots.
  rows.push(...names.map((name) => row(el("code", {}, name), ends.map((e) => value((at(doc, `environment.${e}.sysctl`) || {})[name])))));
  return rows.filter((r) => r);
}

function interfaceTables(doc, ends, titles) {
  return ends.map((e, i) => {
    const made = tableOf(objectsOf(at(doc, `environment.${e}.interfaces`)), [
      [say("interface"), (n) => textOf(n.if)], [say("driver"), (n) => textOf(n.driver) || textOf(n.kind)], ["MTU", (n) => show(n.mtu)],
      [say("speed"), (n) => (isNumber(n.speed_mbit) ? si(n.speed_mbit * 1e6, "bit/s") : null)], ["qdisc", (n) => textOf(n.qdisc)],
      [say("queues rx, tx"), (n) => (isNumber(n.rx_queues) ? `${n.rx_queues}, ${n.tx_queues ?? "–"}` : null)],
      [say("offloads on"), (n) => (Array.isArray(n.offloads) ? n.offloads.map(textOf).join(" ") || "–" : null)],
      [say("IRQ on CPUs"), (n) => objectsOf(n.irqs).map((q) => `${q.irq}: ${textOf(q.cpus)}`).join("; ")], [say("RPS mask"), (n) => (/[^0,]/.test(textOf(n.rps_mask)) ? n.rps_mask : null)]],
      {left: [1, 4, 6, 7, 8], class: "long", label: say("interface")});
    return made && [el("h4", {}, `${say("Interfaces")}${ends.length > 1 ? `, ${titles[i]}` : ""}`), made];
  });
}

function environment(doc) {
  const there = ["local", "peer"].filter((e) => doc[e] && typeof doc[e] === "object");
  const one = there.length === 2 && doc.local.boot_id && doc.local.boot_id === doc.peer.boot_id && doc.local.netns === doc.peer.netns;
  const ends = one ? ["local"] : there, titles = one ? [say("both ends")] : ends.map((e) => say(e === "local" ? "this end" : "the other end"));
  const rows = environmentRows(doc, ends);
  return rows.length ? section("environment", say("Environment"),
    table(["", ...titles], rows, {left: [1, 2], class: "long", label: say("Environment")}), interfaceTables(doc, ends, titles)) : null;
}
