"""documents.py: result documents made by hand, with every block that a report shows, for tests of reports.

The histogram is one that pitot encoded: 2000 round trips between 27 µs and 4.7 ms.
"""
import copy
import math

HDR = ("HISTFAAAAt94nDVUPY9NURQ9d9199jvvzPXec2cy4+OZETQymSAiCpEpBKVCJ5lK1CJ+gUQnKpEpNMQPUAmtSqFW+AFqRKlgrX2e+3Xu2Wed/bXW"
       "vcunL9ZTyudSO/rV2PH11sWPr9P+z2Y4vIf7sGRrQI8d3kexxuceLuAGPnS4hpOYWo+EbGfBoUcmHhOzGGTx3pNNAcuc0RcxyLEjQeekbenjlMW0"
       "CNPpSAVOZ1pw88GS057ophBXCqq5FaIJjfC8BXc4x0yjCU5PdMTlEj6VHUGJHhOEJB7MkmhZOStmluKMlLSVoSeIko7IJq8E2tS1ppRkcl1RpcnA"
       "p6klvSqIaRuFjPItR6Oi5hkjy+XEVINxG6JSoqKhtPZFLlqeDZIizzAoC7lUTZEM83LlZqsGBk4gWFG7IkX2wBVKNbLXGhSBvekd0+BDXr29sBzL"
       "rYKgrjUkws7J6ESbyUaQyWes55ZQCn5WpKuhnl2VsmpaovvBHt2s0AmrJCWoHsEuKMAU+ml6mYTkUth6zgi0Fl/ReExpWheMrQ42qcW2xWRhL/pZ"
       "oTgKc5BcGkep9Uyt0xKtlbslHUkLRJqECC9pYBWUIBXoJSQbeuU1iMxWMr1UdjQJIKWiyneizJIckw2j4ryU0WZ1GMbZuFiMw+ZycxjPbG/PTo+b"
       "i+Xs2HK5sW2LjY1xcWKoQ8VQx1oXpZQBVcG91MhYh7tEXG3w6inuElkQ6EzYrRbCS/KBO+vA+OAbgUMt7avgwEJYoFWJubhSTCopvmqusosezJFD"
       "MhkSUcMllDn+s5CDVXpc13e/JeZ2sEvYdf48Gplzzi7znuMU9mnbpe2Af5i7eIA3wB28BW7jEfCQRN7EL+B9xvcO3zp86XEFhx1edfgMPCn42tPB"
       "Aa7S/RoDZX2tPY6HTnfiZzPHsw5/O5zn2x7Px/jkeNfhT8/wW3jecZjHD2qLm+fE/c6Kk+VoStM6fujTOIVLeJnxDzfAM3Q=")

TIMING = {"count": 2000, "of": "round trip", "mean_us": 101.24408, "stddev_us": 298.784226375332, "min_us": 26.827,
          "max_us": 4725.899, "p50_us": 64.496, "p75_us": 68.64, "p90_us": 74.72, "p95_us": 80.864, "p99_us": 1719.808,
          "p99_9_us": None, "p99_99_us": None, "within_1_stddev_pct": 97.3, "hdr": HDR}

STAGES = ("app_sent", "kernel_sent", "nic_sent", "nic_received", "kernel_delivered", "app_received")


def _host(name, role, busy):
    cpu = {"user_pct": 3.5, "nice_pct": 0.25, "system_pct": busy, "iowait_pct": 0.5, "irq_pct": 0.25, "softirq_pct": 20.5,
           "steal_pct": 1.5, "idle_pct": 73.5 - busy}
    return {"name": name, "role": role, "cpus": 4, "kernel": "6.1.0", "interval_s": 10.0, "cpu": {**cpu, "per_cpu": [98.5, 12.25, 4.0, None]},
            "load": [1.25, 0.75, 0.5], "load_per_cpu": 0.3125,
            "memory": {"total": 16 << 30, "used": 3 << 30, "free": 9 << 30, "shared": 5 << 20, "buff_cache": 4 << 30, "available": 13 << 30},
            "process": {"virt": 40 << 20, "res": 14 << 20, "shr": 12 << 20, "mem_pct": 0.0854, "cpu_user_s": 1.25, "cpu_system_s": 9.5},
            "net": [{"if": "eth0", "speed_mbit": 10000, "rx_packets_per_s": 210000.5, "tx_packets_per_s": 120.25, "rx_kB_per_s": 12000.75,
                     "tx_kB_per_s": 8.5, "rx_cmp_per_s": 0.0, "tx_cmp_per_s": 0.0, "if_util_pct": 0.98, "rx_dropped": 17, "tx_dropped": 0,
                     "rx_errors": 0, "tx_errors": 0},
                    {"if": "idle0", "speed_mbit": None, "rx_packets_per_s": 0.0, "tx_packets_per_s": 0.0, "rx_kB_per_s": 0.0, "tx_kB_per_s": 0.0,
                     "rx_cmp_per_s": 0.0, "tx_cmp_per_s": 0.0, "if_util_pct": None, "rx_dropped": 0, "tx_dropped": 0, "rx_errors": 0, "tx_errors": 0}],
            "tcp": {"retransmits": 42, "listen_overflows": 0}, "udp": {"rcvbuf_errors": 1300}, "softnet": {"processed": 99000, "dropped": 3, "squeezed": 8},
            "sampling": {"samples": 11, "cpu_pct": 0.12},
            "series": [{"t_s": float(t), "span_s": 1.0, "user_pct": 3.75, "system_pct": round(busy + math.sin(t), 3), "iowait_pct": 0.5, "irq_pct": 0.25,
                        "softirq_pct": 20.5, "steal_pct": 1.5, "idle_pct": round(73.5 - busy - math.sin(t), 3), "busiest_cpu": 0, "busiest_cpu_pct": 98.5,
                        "rx_packets_per_s": round(210000 + 5000 * math.sin(t), 3), "tx_packets_per_s": 120.0, "rx_kB_per_s": 12000.0, "tx_kB_per_s": 8.5,
                        "retransmits_per_s": 4.0} for t in range(1, 11)]}


def _environment(cpus):
    return {"platform": "QEMU Standard PC", "congestion_control": "cubic", "default_qdisc": "fq_codel", "clock_source": "tsc",
            "governor": "performance", "smt": True, "sysctl": {"net.core.rmem_max": "212992", "net.ipv4.tcp_rmem": "4096 131072 6291456"},
            "interfaces": [{"if": "eth0", "kind": "", "driver": "virtio_net", "mtu": 1500, "speed_mbit": None, "qdisc": "mq", "rx_queues": 4,
                            "tx_queues": 4, "offloads": ["rx", "tx", "sg", "tso", "gso", "gro"], "xdp": False,
                            "irqs": [{"irq": 40 + i, "cpus": c} for i, c in enumerate(cpus)], "rps_mask": "f"}]}


def result(workload="lat", seconds=10):
    """A document that has everything: no single test would give all of it."""
    packets = [1000000, 1000000, 999000, 999000, 899000, 899000]
    idle = {**TIMING, "p50_us": 31.5, "hdr": None}
    heads = {"bw": [("received", "rates.rx_bits_per_s", "bit/s")], "pps": [("delivered", "rates.rx_packets_per_s", "packet/s"),
             ("loss", "rates.loss_pct", "%")], "lat": [("RTT p50", "latency.p50_us", "us"), ("RTT p99", "latency.p99_us", "us")]}
    doc = {
        "schema": "pitot.result/1", "version": "0.1.0", "id": f"20260131T235959Z-0000000{len(workload)}", "started": "2026-01-31T23:59:59.125Z",
        "status": "ok", "exit": 3, "argv": ["pitot", workload, "10.0.0.2", "--expect", "p99<1ms"],
        "test": {"workload": workload, "name": workload, "target": "10.0.0.2:7411",
                 "params": {"udp": workload == "pps", "size": 14, "connections": 64, "duration_s": 10.0, "rate": {"per_s": 100000.0, "bits": False},
                            "cc": None, "bind": ["10.0.0.1"]},
                 "load": {"mode": "open", "arrivals": "uniform", "connections": 64, "workers": 4, "rate": 100000.0, "rate_unit": "operation/s",
                          "inflight": None}},
        "local": {"host": "sender-1", "pitot": "0.1.0", "boot_id": "a", "kernel": "6.1.0", "machine": "x86_64", "cpu_model": "AMD EPYC", "cpus": 4,
                  "virtualised": True, "netns": "net:[1]", "pid": 11},
        "peer": {"host": "target", "pitot": "0.1.0", "boot_id": "b", "kernel": "6.1.0", "machine": "x86_64", "cpu_model": "AMD EPYC", "cpus": 4,
                 "virtualised": True, "netns": "net:[1]", "pid": 12, "address": "10.0.0.2:7411"},
        "environment": {"local": _environment(["0", "1", "2", "3"]), "peer": _environment(["0", "0", "0", "0"])},
        "duration_s": float(seconds), "warmup_s": 1.0,
        "totals": {"operations": 2003, "ok": 2000, "in_flight_at_end": 0, "errors": {"timeout": 3, "reset": 0}, "tx_bytes": 14000000,
                   "rx_bytes": 12586000, "tx_packets": 1000000, "rx_packets": 899000, "lost_packets": 101000, "reordered_packets": 7,
                   "duplicate_packets": 0, "retransmits": 12},
        "rates": {"operations_per_s": 99999.5, "tx_bits_per_s": 11200000.0, "rx_bits_per_s": 10068800.0, "tx_packets_per_s": 100000.0,
                  "rx_packets_per_s": 89900.0, "loss_pct": 10.1},
        "latency": dict(TIMING), "service_time": dict(TIMING), "half_rtt_p50_us": 32.248,
        "load": {"spec": "tcp", "udp": False, "reverse": False, "connections": 1, "totals": {"operations": 1, "ok": 1, "in_flight_at_end": 0, "errors": {}},
                 "rates": {"rx_bits_per_s": 9.1e9}, "status": "ok", "idle": idle},
        "series": [{"t_s": float(t), "span_s": 1.0, "operations": 200, "ok": 200, "errors": 0, "tx_bytes": 1400000, "rx_bytes": 1258600 + 9000 * (t % 4),
                    "tx_packets": 100000, "rx_packets": 89900 + 700 * (t % 4), "lost_packets": 10100, "p50_us": 64.5 + t, "p99_us": 1719.8 + 90 * (t % 3),
                    "max_us": 4725.9, "rtt_us": 81.0, "cwnd": 10, "connections": 64, "retransmits": 1, "limited_by": None}
                   for t in range(1, seconds + 1)],
        "path": [{"stage": s, "packets": p, "bytes": p * 14, "lost_here": before - p, "evidence": f"{s}: a counter rose by {before - p}"}
                 for s, p, before in zip(STAGES, packets, [1000000] + packets)],
        "flows": [{"id": i, "direction": "forward", "local": f"10.0.0.1:{40000 + i}", "remote": "10.0.0.2:7411", "bits_per_s": 157325.0 + 1000 * i,
                   "packets_per_s": 1404.5 + i, "lost_packets": 1500 + i, "jitter_us": 3.25, "retransmits": None, "cwnd": None, "srtt_us": None,
                   "min_rtt_us": None, "limited_by": "application", "start_us": 1.5, "error": None} for i in range(30)],
        "flows_not_shown": 34, "fairness": {"jain": 0.998, "min_bits_per_s": 157325.0, "max_bits_per_s": 186325.0, "start_skew_us": 870.0},
        "directions": [{"name": "forward", "totals": {"lost_packets": 4}, "rates": {"rx_bits_per_s": 6e6, "loss_pct": 1.5}}],
        "steps": [{"connections": 16 * n, "rate": None, "operations_per_s": 1000.5 * n, "mean_us": 70.25 * n, "p99_us": 99.75 * n, "verdict": v}
                  for n, v in ((1, "pays"), (2, "pays"), (3, "flat"))],
        "search": {"limit": "loss<=0.1%", "found_packets_per_s": 640000.0, "confirmed": True, "generator_limited": False,
                   "trials": [{"trial": "flood", "rate": None, "tx_packets_per_s": 900000.0, "rx_packets_per_s": 650000.0, "loss_pct": 27.8, "ok": False,
                               "verdict": "loss"},
                              {"trial": "confirm", "rate": 640000.0, "tx_packets_per_s": 640000.0, "rx_packets_per_s": 639990.0, "loss_pct": 0.0016,
                               "ok": True, "verdict": "ok"}]},
        "repeat": {"n": 3, "agree": False, "metrics": {"latency.p50_us": {"values": [64.496, 60.5, 71.25], "median": 64.496, "min": 60.5, "max": 71.25,
                                                                          "spread_pct": 16.7}}},
        "cost": {"cpu_s": 1.5, "cpu_s_per_GB": 0.151, "cpu_s_per_million_packets": 4.2, "cpu_s_per_million_operations": 31.5},
        "generator": {"valid": True, "engine": "epoll", "engine_reason": "few connections", "cpu_pct": 71.5, "own_drops": 0, "allocated_bytes": 0,
                      "pacer_late_p99_us": 3.5},
        "placement": {"text": "each pair on one CPU", "workers": 4, "peer_workers": 4},
        "chosen": [{"what": "block size", "value": 262144, "unit": "byte", "why": "fastest of five"}],
        "hosts": [_host("sender-1", "sender", 41.5), _host("target", "receiver", 12.5)],
        "limited_by": [{"what": "receive buffer", "where": "target", "evidence": "UdpRcvbufErrors rose by 1300", "advice": "--rcvbuf 4MiB"},
                       {"what": "receiver CPU", "where": "CPU 0 of target", "evidence": "that CPU was 98 % busy", "advice": "spread the interrupts"}],
        "expect": [{"text": "p99<1ms", "path": "latency.p99_us", "value": 1719.808, "ok": False}, {"text": "loss<=20%", "path": "rates.loss_pct",
                                                                                                  "value": 10.1, "ok": True}],
        "warnings": ["a warning to be read"], "notes": ["a note"],
    }
    doc["headline"] = [{"name": n, "path": p, "unit": u, "value": at(doc, p)} for n, p, u in heads[workload]]
    return doc


def at(doc, path):
    """The value at a path of keys and indices; keys that hold dots are tried as well."""
    if path == "":
        return doc
    if isinstance(doc, list):
        head, _, rest = path.partition(".")
        return at(doc[int(head)], rest)
    for end in [i for i, c in enumerate(path) if c == "."] + [len(path)]:
        if isinstance(doc, dict) and path[:end] in doc:
            return at(doc[path[:end]], path[end + 1:])
    raise KeyError(path)


def run():
    """The run of a plan as the cloud recipe has it: packets per second, bandwidth, latency, the last two at once."""
    tests = [result("pps"), result("bw"), result("lat")]
    for i, doc in enumerate(tests):
        doc["id"] = f"20260131T23595{i}Z-0000000{i}"
        doc["test"]["name"] = ("packets", "bandwidth", "latency")[i]
        doc["test"].update({"from": "sender-1", "to": "target"})
    tests.insert(1, copy.deepcopy(tests[0]))
    tests[1]["id"], tests[1]["test"]["from"] = "20260131T235958Z-00000008", "sender-2"
    tests[2]["limited_by"], tests[2]["status"], tests[2]["exit"] = [], "partial", 1
    totals = {key: 2 * tests[0]["totals"][key] for key in ("operations", "ok", "tx_bytes", "rx_bytes", "tx_packets", "rx_packets", "lost_packets")}
    rates = {key: 2 * tests[0]["rates"][key] for key in ("operations_per_s", "tx_bits_per_s", "rx_bits_per_s", "tx_packets_per_s", "rx_packets_per_s")}
    return {"schema": "pitot.run/1", "version": "0.1.0", "id": "20260131T235950Z-00000007", "name": "ecs-network", "started": "2026-01-31T23:59:50.000Z",
            "status": "partial", "exit": 1, "argv": ["pitot", "run", "ecs-network.yaml"],
            "topology": {"kind": "namespaces", "text": "4 namespaces joined by a hub",
                         "hosts": [{"name": name, "v4": f"10.0.0.{i}", "v6": None} for i, name in enumerate(("target", "sender-1", "sender-2"), 2)]},
            "plan": "name: ecs-network\ntests:\n  - pps: {from: senders, to: target, size: 14}\n", "tests": tests,
            "together": [[0, 1], [2, 3]], "start_skew_us": [870.5, None], "warnings": ["the run was not complete"],
            "sums": [{"name": "packets", "tests": [0, 1], "rates": {**rates, "loss_pct": 10.1}, "totals": totals}]}


def hostile(doc, text):
    """A copy with `text` in every string that may be anything."""
    doc = copy.deepcopy(doc)
    fixed = {"schema", "status", "workload", "stage", "path", "hdr", "rate_unit", "mode", "started", "unit", "verdict", "trial", "id"}

    def walk(node):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(value, str) and key not in fixed:
                node[key] = text
            elif isinstance(value, (dict, list)):
                walk(value)
    walk(doc)
    doc["test"]["params"][text] = text
    doc["totals"]["errors"][text] = 5
    doc["hosts"][0]["tcp"][text] = 7
    doc["environment"]["local"]["sysctl"][text] = text
    return doc
