/* verdict.c: what each end of a run ran with, what went wrong, and how it ended.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/report.h"

#include <stdio.h>
#include <string.h>

#define STALL_S 0.2 /* silence that deserves a word */

/* ---- sockets */

static json_t *socket_json(const struct pt_sock_granted *g)
{
    return json_pack("{s:s?, s:o, s:i, s:i, s:i}", "congestion_control", g->cc[0] ? g->cc : NULL,
                     "mss", g->mss ? json_integer(g->mss) : json_null(), "tos", g->tos,
                     "sndbuf_bytes", g->sndbuf / 2, "rcvbuf_bytes", g->rcvbuf / 2);
}

/* A pacing congestion control spreads what a loopback would carry at once. */
static void warn_of_pacing(const struct pt_report *rep, const char *cc, struct pt_result *r)
{
    if (!rep->shape->both && rep->one_net && strncmp(cc, "bbr", 3) == 0)
        pt_result_warn(r,
                       "congestion control %s paces what it sends and so limits a test inside one "
                       "host; --cc cubic shows what the host can do",
                       cc);
}

static void sockets(const struct pt_report *rep, struct pt_result *r)
{
    const struct pt_half *halves[2] = {rep->local, rep->peer};
    static const char *const paths[2] = {"sockets.local", "sockets.peer"};
    for (int k = 0; k < 2; k++)
        if (halves[k] && halves[k]->socket.rcvbuf)
            pt_result_take(r, paths[k], socket_json(&halves[k]->socket));
    bool reverse = !rep->shape->both && rep->shape->forward == 0;
    const struct pt_half *sender = pt_report_sender(rep, reverse);
    if (sender && sender->socket.cc[0]) {
        pt_result_str(r, "congestion_control", sender->socket.cc);
        warn_of_pacing(rep, sender->socket.cc, r);
    }
}

/* ---- remarks */

/* The gap that a path may have without a fault: some round trips, or what is usual at its rate. */
static double patience(const struct pt_report *rep, const struct pt_half *h)
{
    double most = STALL_S;
    const struct pt_half *halves[2] = {rep->local, rep->peer};
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; halves[k] && i < halves[k]->flow_count; i++) {
            double rtt = (double)halves[k]->flows[i].tcp.min_rtt_us / 1e6;
            if (halves[k]->flows[i].tcp_valid && 5 * rtt > most)
                most = 5 * rtt;
        }
    uint64_t calls = h->c[PT_PHASE_MEASURE].rx_calls;
    double usual = calls > 1 ? (h->window_s - h->gap_s) / (double)calls : 0;
    return 20 * usual > most ? 20 * usual : most;
}

static void stall(const struct pt_report *rep, const struct pt_half *h, struct pt_result *r,
                  const char *who)
{
    if (h->gap_s >= patience(rep, h))
        pt_result_warn(r,
                       "stall: nothing arrived at the %s for %.2f s, from %.2f s on; the averages "
                       "include it",
                       who, h->gap_s, h->gap_at_s > 0 ? h->gap_at_s : 0);
}

static void remarks(const struct pt_report *rep, struct pt_result *r)
{
    const struct pt_half *halves[2] = {rep->local, rep->peer};
    for (int k = 0; k < 2; k++)
        for (unsigned i = 0; halves[k] && i < halves[k]->note_count; i++)
            pt_result_note(r, "%s: %s", k ? "peer" : "local", halves[k]->notes[i]);
    if (rep->place->note[0])
        pt_result_note(r, "%s", rep->place->note);
    pt_result_str(r, "placement.text", rep->place->text);
    pt_result_u64(r, "placement.workers", rep->place->workers);
    pt_result_u64(r, "placement.peer_workers", rep->place->peer_workers);
    if (rep->shape->both || rep->shape->forward < rep->shape->flows)
        stall(rep, rep->local, r, "client");
    if (rep->peer && !rep->shape->both && rep->shape->forward)
        stall(rep, rep->peer, r, "server");
    if (rep->shape->ops_per_flow || rep->shape->bytes || rep->broken || rep->interrupted)
        return;
    if (rep->local->cut)
        pt_result_warn(r, "the test ended after %.2f s of %.2f s", rep->local->window_s,
                       (double)rep->shape->duration / 1e9);
}

/* ---- the end */

static void broken_flows(const struct pt_report *rep, struct pt_result *r)
{
    const struct pt_half *h = rep->local;
    uint64_t n = 0;
    int why = 0;
    for (uint32_t i = 0; i < h->flow_count; i++)
        if (h->flows[i].error) {
            n++;
            why = h->flows[i].error;
        }
    if (n && rep->shape->answer_listens) { /* each operation has one of its own */
        pt_result_warn(r, "connections could not be made (%s): see errors", pt_strerror(why));
    } else if (n) {
        pt_result_warn(r, "%llu of %u connections broke (%s)", (unsigned long long)n,
                       rep->shape->flows, pt_strerror(why));
        pt_result_status(r, PT_RESULT_PARTIAL);
    }
}

/* What a network does to a test that is whole, a link that was down among it; and the few
 * operations at the very end that a busy machine had not begun yet. */
static uint64_t explained(const struct pt_report *rep, const struct pt_counters *c)
{
    bool datagrams = rep->shape->chan == PT_CHAN_UDP;
    uint64_t owed = c->errors[PT_OP_BACKLOG];
    return c->errors[PT_OP_TIMEOUT] + (datagrams ? c->errors[PT_OP_SEND] : 0) +
           (owed * 100 <= c->ops ? owed : 0);
}

/* Failures deserve a word, and those that no network loss explains make the result partial. */
static void failed_operations(const struct pt_report *rep, struct pt_result *r)
{
    const struct pt_counters *c = &rep->local->c[PT_PHASE_MEASURE];
    uint64_t failed = pt_counters_errors(c), open = c->ops - c->ok - failed;
    if (failed) {
        char kinds[160] = "";
        size_t at = 0;
        for (unsigned i = 0; i < PT_OP_ERRORS && at < sizeof(kinds); i++)
            if (c->errors[i])
                at += (size_t)snprintf(kinds + at, sizeof(kinds) - at, "%s%s %llu", at ? ", " : "",
                                       pt_op_error_names[i], (unsigned long long)c->errors[i]);
        pt_result_warn(r, "%llu of %llu operations failed: %s", (unsigned long long)failed,
                       (unsigned long long)c->ops, kinds);
        if (failed > explained(rep, c))
            pt_result_status(r, PT_RESULT_PARTIAL);
    }
    if (rep->shape->both && c->ops > c->ok + failed && open * 100 > c->ops)
        pt_result_warn(r,
                       "%llu of %llu operations had no answer when the test ended: the percentiles "
                       "are those of the others",
                       (unsigned long long)open, (unsigned long long)c->ops);
}

static void outcome(const struct pt_report *rep, struct pt_result *r)
{
    const struct pt_half *h = rep->local;
    const struct pt_counters *c = &h->c[PT_PHASE_MEASURE];
    if (rep->broken) {
        pt_result_warn(r, "partial: %s", rep->broken);
        pt_result_status(r, PT_RESULT_PARTIAL);
    }
    bool before = rep->interrupted && h->window_s <= 0;
    if (before)
        pt_result_warn(r, "interrupted in the warm-up: nothing was measured");
    else if (rep->interrupted)
        pt_result_warn(r, "interrupted after %.2f s: these are the figures until then",
                       h->window_s);
    if (rep->interrupted)
        pt_result_status(r, before ? PT_RESULT_FAILED : PT_RESULT_PARTIAL);
    broken_flows(rep, r);
    failed_operations(rep, r);
    uint64_t moved = c->ok + c->tx_bytes + c->rx_bytes;
    if (rep->peer && !rep->shape->both)
        moved += rep->peer->c[PT_PHASE_MEASURE].rx_bytes;
    if (before)
        return;
    if (!moved || (rep->shape->both && c->ops && !c->ok)) {
        pt_result_warn(r, "no operation succeeded");
        pt_result_status(r, PT_RESULT_FAILED);
    }
}

void pt_report_verdict(const struct pt_report *rep, struct pt_result *r)
{
    sockets(rep, r);
    remarks(rep, r);
    outcome(rep, r);
}
