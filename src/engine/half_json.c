/* half_json.c: a half as the control protocol carries it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/fields.h"
#include "engine/half.h"

#include "host/sample_json.h"
#include "stat/hdr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define U64(s, m)  PT_FIELD(struct s, m, PT_FIELD_U64)
#define U32(s, m)  PT_FIELD(struct s, m, PT_FIELD_U32)
#define I64(s, m)  PT_FIELD(struct s, m, PT_FIELD_I64)
#define REAL(s, m) PT_FIELD(struct s, m, PT_FIELD_REAL)
#define BOOL(s, m) PT_FIELD(struct s, m, PT_FIELD_BOOL)
#define TEXT(s, m) PT_FIELD(struct s, m, PT_FIELD_TEXT)

static const struct pt_field counter_fields[] = {
    U64(pt_counters, ops),      U64(pt_counters, ok),         U64(pt_counters, tx_bytes),
    U64(pt_counters, rx_bytes), U64(pt_counters, tx_packets), U64(pt_counters, rx_packets),
    U64(pt_counters, tx_calls), U64(pt_counters, rx_calls),   {0}};

static const struct pt_field seq_fields[] = {U64(pt_seq_books, unique),
                                             U64(pt_seq_books, duplicate),
                                             U64(pt_seq_books, reordered),
                                             U64(pt_seq_books, late),
                                             {0}};

static const struct pt_field tcp_fields[] = {U32(pt_tcp_info, rtt_us),
                                             U32(pt_tcp_info, rttvar_us),
                                             U32(pt_tcp_info, min_rtt_us),
                                             U32(pt_tcp_info, snd_cwnd),
                                             U64(pt_tcp_info, snd_cwnd_bytes),
                                             U32(pt_tcp_info, snd_mss),
                                             U32(pt_tcp_info, pmtu),
                                             U32(pt_tcp_info, total_retrans),
                                             U64(pt_tcp_info, bytes_retrans),
                                             U64(pt_tcp_info, delivery_rate_Bps),
                                             U64(pt_tcp_info, busy_us),
                                             U64(pt_tcp_info, rwnd_limited_us),
                                             U64(pt_tcp_info, sndbuf_limited_us),
                                             U64(pt_tcp_info, bytes_sent),
                                             {0}};

static const struct pt_field flow_fields[] = {U32(pt_half_flow, id),
                                              BOOL(pt_half_flow, sends),
                                              U64(pt_half_flow, drops),
                                              REAL(pt_half_flow, jitter_ns),
                                              I64(pt_half_flow, first_ns),
                                              BOOL(pt_half_flow, tcp_valid),
                                              PT_FIELD(struct pt_half_flow, error, PT_FIELD_INT),
                                              TEXT(pt_half_flow, local),
                                              TEXT(pt_half_flow, remote),
                                              {0}};

static const struct pt_field point_fields[] = {REAL(pt_point, t_s),
                                               REAL(pt_point, span_s),
                                               U64(pt_point, p50_ns),
                                               U64(pt_point, p99_ns),
                                               U64(pt_point, max_ns),
                                               U64(pt_point, samples),
                                               U32(pt_point, connections),
                                               U32(pt_point, rtt_us),
                                               U32(pt_point, cwnd),
                                               U64(pt_point, retransmits),
                                               U64(pt_point, delivery_Bps),
                                               U32(pt_point, limit),
                                               {0}};

static const struct pt_field half_fields[] = {
    U32(pt_half, workers),       U64(pt_half, drops),      REAL(pt_half, window_s),
    REAL(pt_half, transfer_s),   BOOL(pt_half, cut),       REAL(pt_half, cpu_user_s),
    REAL(pt_half, cpu_system_s), REAL(pt_half, gap_s),     REAL(pt_half, gap_at_s),
    U64(pt_half, late),          U64(pt_half, tx_refused), U64(pt_half, allocated),
    REAL(pt_half, start_skew_s), I64(pt_half, offset_ns),  I64(pt_half, offset_error_ns),
    TEXT(pt_half, backend),      TEXT(pt_half, error),     {0}};

static const struct pt_field socket_fields[] = {
    PT_FIELD(struct pt_sock_granted, sndbuf, PT_FIELD_INT),
    PT_FIELD(struct pt_sock_granted, rcvbuf, PT_FIELD_INT),
    PT_FIELD(struct pt_sock_granted, mss, PT_FIELD_INT),
    PT_FIELD(struct pt_sock_granted, tos, PT_FIELD_INT),
    TEXT(pt_sock_granted, cc),
    {0}};

static const char *const hist_names[PT_HISTS] = {"latency", "service",  "connect", "wakeup",
                                                 "forward", "backward", "late"};
static const char *const phase_names[PT_PHASES] = {"warmup", "measure", "tail"};

static json_t *counters_to_json(const struct pt_counters *c)
{
    json_t *o = pt_fields_to_json(counter_fields, c);
    json_t *errors = json_array();
    for (unsigned i = 0; i < PT_OP_ERRORS; i++)
        json_array_append_new(errors, json_integer((json_int_t)c->errors[i]));
    json_object_set_new(o, "errors", errors);
    return o;
}

static int counters_from_json(struct pt_counters *c, const json_t *o)
{
    int rc = pt_fields_from_json(counter_fields, c, o);
    const json_t *errors = json_object_get(o, "errors");
    for (unsigned i = 0; rc == 0 && i < PT_OP_ERRORS && i < json_array_size(errors); i++) {
        json_int_t n = json_integer_value(json_array_get(errors, i));
        if (n < 0)
            return -EPROTO;
        c->errors[i] = (uint64_t)n;
    }
    return rc;
}

json_t *pt_point_to_json(const struct pt_point *p)
{
    json_t *o = pt_fields_to_json(point_fields, p);
    json_object_set_new(o, "c", counters_to_json(&p->c));
    return o;
}

int pt_point_from_json(struct pt_point *p, const json_t *from)
{
    *p = (struct pt_point){0};
    int rc = pt_fields_from_json(point_fields, p, from);
    if (p->limit > PT_HALF_LIMITS)
        p->limit = 0;
    return rc < 0 ? rc : counters_from_json(&p->c, json_object_get(from, "c"));
}

static json_t *flow_to_json(const struct pt_half_flow *f)
{
    json_t *o = pt_fields_to_json(flow_fields, f);
    json_object_set_new(o, "c", pt_fields_to_json(counter_fields, &f->c));
    json_object_set_new(o, "seq", pt_fields_to_json(seq_fields, &f->seq));
    if (f->tcp_valid)
        json_object_set_new(o, "tcp", pt_fields_to_json(tcp_fields, &f->tcp));
    for (size_t i = 0; f->limited_by && i < PT_HALF_LIMITS; i++)
        if (strcmp(pt_half_limits[i], f->limited_by) == 0)
            json_object_set_new(o, "limit", json_integer((json_int_t)i));
    return o;
}

static int flow_from_json(struct pt_half_flow *f, const json_t *o)
{
    int rc = pt_fields_from_json(flow_fields, f, o);
    if (rc == 0)
        rc = pt_fields_from_json(counter_fields, &f->c, json_object_get(o, "c"));
    if (rc == 0)
        rc = pt_fields_from_json(seq_fields, &f->seq, json_object_get(o, "seq"));
    if (rc == 0 && f->tcp_valid)
        rc = pt_fields_from_json(tcp_fields, &f->tcp, json_object_get(o, "tcp"));
    const json_t *limit = json_object_get(o, "limit");
    json_int_t which = json_integer_value(limit);
    if (json_is_integer(limit) && which >= 0 && which < PT_HALF_LIMITS)
        f->limited_by = pt_half_limits[which];
    return rc;
}

static json_t *hists_to_json(const struct pt_half *h)
{
    json_t *o = json_object();
    for (unsigned k = 0; k < PT_HISTS; k++) {
        struct pt_buf text;
        pt_buf_init(&text, 512 * 1024);
        if (h->hist[k] && pt_hdr_encode(h->hist[k], &text) == 0)
            json_object_set_new(o, hist_names[k], json_string(pt_buf_str(&text)));
        pt_buf_fini(&text);
    }
    return o;
}

json_t *pt_half_to_json(const struct pt_half *h)
{
    json_t *o = pt_fields_to_json(half_fields, h);
    json_t *phases = json_object();
    for (unsigned p = 0; p < PT_PHASES; p++)
        json_object_set_new(phases, phase_names[p], counters_to_json(&h->c[p]));
    json_object_set_new(o, "counters", phases);
    json_object_set_new(o, "seq", pt_fields_to_json(seq_fields, &h->seq));
    json_object_set_new(o, "socket", pt_fields_to_json(socket_fields, &h->socket));
    json_object_set_new(o, "hist", hists_to_json(h));
    json_t *flows = json_array(), *series = json_array(), *notes = json_array(),
           *extra = json_array();
    for (uint32_t i = 0; i < h->flow_count; i++)
        json_array_append_new(flows, flow_to_json(&h->flows[i]));
    /* A message has a limit: the peer keeps at most the newest 1,000 points. */
    for (uint32_t i = h->series.n > 1000 ? h->series.n - 1000 : 0; i < h->series.n; i++)
        json_array_append_new(series, pt_point_to_json(&h->series.at[i]));
    for (unsigned i = 0; i < h->note_count; i++)
        json_array_append_new(notes, json_string(h->notes[i]));
    for (size_t i = 0; i < PT_COUNT(h->extra); i++)
        json_array_append_new(extra, json_integer((json_int_t)h->extra[i]));
    json_object_set_new(o, "flows", flows);
    json_object_set_new(o, "series", series);
    json_object_set_new(o, "notes", notes);
    json_object_set_new(o, "extra", extra);
    if (h->wire)
        json_object_set_new(o, "wire", pt_wire_to_json(h->wire));
    if (h->host)
        json_object_set(o, "host", h->host);
    return o;
}

static int arrays_from_json(struct pt_half *h, const json_t *from)
{
    const json_t *flows = json_object_get(from, "flows"), *series = json_object_get(from, "series");
    const json_t *notes = json_object_get(from, "notes"), *extra = json_object_get(from, "extra");
    size_t n = json_array_size(flows), points = json_array_size(series);
    if (n > PT_HALF_FLOWS || points > PT_SERIES_MAX)
        return -EPROTO;
    h->flows = calloc(n ? n : 1, sizeof(*h->flows));
    h->series.at = calloc(points ? points : 1, sizeof(*h->series.at));
    if (!h->flows || !h->series.at)
        return -ENOMEM;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = flow_from_json(&h->flows[h->flow_count++], json_array_get(flows, i));
    for (size_t i = 0; rc == 0 && i < points; i++)
        rc = pt_point_from_json(&h->series.at[h->series.n++], json_array_get(series, i));
    for (size_t i = 0; i < json_array_size(notes) && i < PT_HALF_NOTES; i++) {
        const char *note = json_string_value(json_array_get(notes, i));
        if (note)
            snprintf(h->notes[h->note_count++], sizeof(h->notes[0]), "%s", note);
    }
    for (size_t i = 0; i < PT_COUNT(h->extra); i++) {
        json_int_t v = json_integer_value(json_array_get(extra, i));
        h->extra[i] = v > 0 ? (uint64_t)v : 0;
    }
    return rc;
}

static int hists_from_json(struct pt_half *h, const json_t *o, struct pt_err *e)
{
    for (unsigned k = 0; k < PT_HISTS; k++) {
        const char *text = json_string_value(json_object_get(o, hist_names[k]));
        if (!text)
            continue;
        h->hist[k] = calloc(1, sizeof(struct pt_hist));
        if (!h->hist[k])
            return -ENOMEM;
        int rc = pt_hdr_decode(text, strlen(text), h->hist[k], e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int pt_half_from_json(struct pt_half *h, const json_t *from, struct pt_err *e)
{
    *h = (struct pt_half){0};
    int rc = pt_fields_from_json(half_fields, h, from);
    const json_t *phases = json_object_get(from, "counters");
    for (unsigned p = 0; rc == 0 && p < PT_PHASES; p++)
        rc = counters_from_json(&h->c[p], json_object_get(phases, phase_names[p]));
    if (rc == 0)
        rc = pt_fields_from_json(seq_fields, &h->seq, json_object_get(from, "seq"));
    if (rc == 0 && json_object_get(from, "socket"))
        rc = pt_fields_from_json(socket_fields, &h->socket, json_object_get(from, "socket"));
    if (rc == 0)
        rc = arrays_from_json(h, from);
    if (rc == 0)
        rc = hists_from_json(h, json_object_get(from, "hist"), e);
    h->wire = pt_wire_from_json(json_object_get(from, "wire"));
    h->host = pt_host_clean(json_object_get(from, "host"));
    if (rc < 0) {
        pt_half_fini(h);
        return pt_fail(e, rc, "the peer's report cannot be read: a figure has the wrong type");
    }
    return 0;
}
