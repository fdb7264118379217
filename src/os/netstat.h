/* netstat.h: what the kernel counted in this network namespace, and differences of it.
 *
 * From /proc/net/{dev,snmp,snmp6,netstat,softnet_stat}. A counter that this kernel does not have is
 * -1, in differences too; so is a difference of a counter that went backwards (an interface was
 * made anew). The parsers are pure: text in, counters out; lines they do not understand are
 * skipped.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_NETSTAT_H
#define PT_OS_NETSTAT_H

#include "base/err.h"
#include "base/types.h"
#include "os/cpu.h"

/* X(enum name, table, counter), as the kernel spells them (RFC 1213, RFC 4293, RFC 4113, snmp
 * counter documentation in Documentation/networking/snmp_counter.rst). */
#define PT_NETSTAT_OF_IP(X, t, table)                                                              \
    X(t##_IN_RECEIVES, table, "InReceives")                                                        \
    X(t##_IN_DELIVERS, table, "InDelivers")                                                        \
    X(t##_IN_DISCARDS, table, "InDiscards")                                                        \
    X(t##_OUT_REQUESTS, table, "OutRequests")                                                      \
    X(t##_OUT_DISCARDS, table, "OutDiscards")                                                      \
    X(t##_OUT_NO_ROUTES, table, "OutNoRoutes")                                                     \
    X(t##_REASM_REQDS, table, "ReasmReqds")                                                        \
    X(t##_REASM_OKS, table, "ReasmOKs")                                                            \
    X(t##_REASM_FAILS, table, "ReasmFails")                                                        \
    X(t##_FRAG_OKS, table, "FragOKs")                                                              \
    X(t##_FRAG_FAILS, table, "FragFails")                                                          \
    X(t##_FRAG_CREATES, table, "FragCreates")

#define PT_NETSTAT_OF_UDP(X, t, table)                                                             \
    X(t##_IN_DATAGRAMS, table, "InDatagrams")                                                      \
    X(t##_NO_PORTS, table, "NoPorts")                                                              \
    X(t##_IN_ERRORS, table, "InErrors")                                                            \
    X(t##_OUT_DATAGRAMS, table, "OutDatagrams")                                                    \
    X(t##_RCVBUF_ERRORS, table, "RcvbufErrors")                                                    \
    X(t##_SNDBUF_ERRORS, table, "SndbufErrors")                                                    \
    X(t##_IN_CSUM_ERRORS, table, "InCsumErrors")                                                   \
    X(t##_MEM_ERRORS, table, "MemErrors")

#define PT_NETSTAT_OF_TCP(X)                                                                       \
    X(TCP_ACTIVE_OPENS, "Tcp", "ActiveOpens")                                                      \
    X(TCP_PASSIVE_OPENS, "Tcp", "PassiveOpens")                                                    \
    X(TCP_ATTEMPT_FAILS, "Tcp", "AttemptFails")                                                    \
    X(TCP_ESTAB_RESETS, "Tcp", "EstabResets")                                                      \
    X(TCP_IN_SEGS, "Tcp", "InSegs")                                                                \
    X(TCP_OUT_SEGS, "Tcp", "OutSegs")                                                              \
    X(TCP_RETRANS_SEGS, "Tcp", "RetransSegs")                                                      \
    X(TCP_IN_ERRS, "Tcp", "InErrs")                                                                \
    X(TCP_OUT_RSTS, "Tcp", "OutRsts")                                                              \
    X(TCP_LISTEN_OVERFLOWS, "TcpExt", "ListenOverflows")                                           \
    X(TCP_LISTEN_DROPS, "TcpExt", "ListenDrops")                                                   \
    X(TCP_TIMEOUTS, "TcpExt", "TCPTimeouts")                                                       \
    X(TCP_LOST_RETRANSMIT, "TcpExt", "TCPLostRetransmit")                                          \
    X(TCP_FAST_RETRANS, "TcpExt", "TCPFastRetrans")                                                \
    X(TCP_SYN_RETRANS, "TcpExt", "TCPSynRetrans")                                                  \
    X(TCP_SPURIOUS_RTOS, "TcpExt", "TCPSpuriousRTOs")                                              \
    X(TCP_DSACK_RECV, "TcpExt", "TCPDSACKRecv")                                                    \
    X(TCP_BACKLOG_DROP, "TcpExt", "TCPBacklogDrop")                                                \
    X(TCP_RCVQ_DROP, "TcpExt", "TCPRcvQDrop")                                                      \
    X(TCP_OFO_DROP, "TcpExt", "TCPOFODrop")                                                        \
    X(TCP_REQQ_FULL_DROP, "TcpExt", "TCPReqQFullDrop")                                             \
    X(TCP_PRUNE_CALLED, "TcpExt", "PruneCalled")                                                   \
    X(TCP_MEMORY_PRESSURES, "TcpExt", "TCPMemoryPressures")                                        \
    X(TCP_ABORT_ON_MEMORY, "TcpExt", "TCPAbortOnMemory")

#define PT_NETSTAT_COUNTERS(X)                                                                     \
    PT_NETSTAT_OF_IP(X, IP4, "Ip")                                                                 \
    PT_NETSTAT_OF_IP(X, IP6, "Ip6")                                                                \
    PT_NETSTAT_OF_UDP(X, UDP4, "Udp")                                                              \
    PT_NETSTAT_OF_UDP(X, UDP6, "Udp6")                                                             \
    PT_NETSTAT_OF_TCP(X)

enum pt_netstat_counter {
#define X(name, table, counter) PT_NETSTAT_##name,
    PT_NETSTAT_COUNTERS(X)
#undef X
        PT_NETSTAT_COUNT
};

#define PT_NETDEV_MAX 64

struct pt_netdev {
    char name[16];
    int64_t rx_bytes, rx_packets, rx_errors, rx_dropped, rx_fifo, rx_compressed;
    int64_t tx_bytes, tx_packets, tx_errors, tx_dropped, tx_fifo, tx_compressed;
};

/* Of one CPU, for all network namespaces together. 32-bit counters in the kernel. */
struct pt_softnet {
    int64_t processed; /* packets taken from the queues */
    int64_t dropped;   /* the CPU's backlog was full (net.core.netdev_max_backlog) */
    int64_t squeezed;  /* a round ended with work left (net.core.netdev_budget) */
};

struct pt_netstat {
    pt_ns at; /* CLOCK_MONOTONIC of the snapshot; of a difference: its length */
    int64_t counter[PT_NETSTAT_COUNT];
    unsigned devs;
    unsigned devs_left_out; /* beyond PT_NETDEV_MAX */
    struct pt_netdev dev[PT_NETDEV_MAX];
    unsigned cpus;                         /* highest CPU seen + 1; 0: no softnet_stat */
    struct pt_softnet softnet[PT_CPU_MAX]; /* -1: no such CPU */
    struct pt_softnet softnet_all;         /* sums; -1: unknown */
};

/* About 35 kB: keep it off small stacks. Reads what there is; fails only when /proc/net/dev or
 * /proc/net/snmp cannot be read. */
int pt_netstat_read(struct pt_netstat *s, struct pt_err *e) PT_MUST_USE;

/* after - before, never negative but for the -1 of "unknown". Interfaces that both know. */
void pt_netstat_sub(struct pt_netstat *out, const struct pt_netstat *after,
                    const struct pt_netstat *before);

/* NULL: no such interface. */
const struct pt_netdev *pt_netstat_dev(const struct pt_netstat *s, const char *name);
/* "Udp.RcvbufErrors". */
const char *pt_netstat_name(enum pt_netstat_counter c);
/* The counter of such a name, or -1. */
int pt_netstat_find(const char *name);
/* The sum of an IPv4 and an IPv6 counter; an unknown one counts nothing; -1 when both are. */
int64_t pt_netstat_sum(const struct pt_netstat *s, enum pt_netstat_counter v4,
                       enum pt_netstat_counter v6);

/* ---- the parsers, for tests and captures; NUL-terminated text */

void pt_netstat_clear(struct pt_netstat *s); /* everything unknown */
void pt_netstat_parse_dev(struct pt_netstat *s, const char *text);
/* /proc/net/snmp and /proc/net/netstat: pairs of lines, names and values. */
void pt_netstat_parse_tables(struct pt_netstat *s, const char *text);
void pt_netstat_parse_snmp6(struct pt_netstat *s, const char *text);
void pt_netstat_parse_softnet(struct pt_netstat *s, const char *text);

#endif
