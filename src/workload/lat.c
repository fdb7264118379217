/* lat.c: round trips: `pitot lat`.
 *
 * One operation is a request and its answer, which is the request again. Requests carry a sequence
 * number, so that over UDP a lost answer is one operation that timed out and a late one is known as
 * late. What is outstanding is kept in a ring per flow: over a stream the oldest is answered first,
 * over UDP any.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "workload/lat.h"

#include "engine/report.h"
#include "engine/shape.h"
#include "proto/dgram.h"

#include <string.h>

enum slot_state { SLOT_FREE, SLOT_OPEN, SLOT_ANSWERED, SLOT_TIMED_OUT };

struct slot {
    uint64_t number;
    pt_ns due, sent;
    enum slot_state state;
};

struct lat_flow {
    uint64_t next, oldest; /* numbers: the next request's, and of the oldest that is open */
    uint64_t highest;      /* answered so far + 1; over a stream the next answer's number */
    uint64_t mask;
    struct slot *ring;
    uint8_t *message; /* one request; at the answering end the request so far */
    size_t got;       /* stream: bytes of the present message */
    /* --one-way: the estimate in use and the fastest round trip it is from; the best of this second
     */
    pt_ns used_ns, best_ns, best_offset;
    pt_ns second_began;
    pt_ns offset;
    bool offset_known;
};

enum { EXTRA_DUPLICATES, EXTRA_REORDERED };

static const struct pt_lat_opts *opts(const struct pt_worker *w)
{
    return w->job->spec.plan->params;
}

static bool is_sockperf(const struct pt_worker *w)
{
    return w->shape->dgram == PT_DGRAM_SOCKPERF;
}

size_t pt_lat_size(const struct pt_plan *p)
{
    const struct pt_lat_opts *o = p->params;
    if (p->common.size)
        return (size_t)p->common.size;
    return o->one_way ? PT_LAT_ONE_WAY : PT_LAT_SIZE;
}

static int shape(const struct pt_plan *p, struct pt_shape *s, struct pt_err *e)
{
    const struct pt_lat_opts *o = p->params;
    const struct pt_common *c = &p->common;
    size_t size = pt_lat_size(p);
    enum pt_chan_kind chan;
    int rc = pt_shape_channel(p, o->udp, &chan, e);
    if (rc < 0)
        return rc;
    bool udp = chan == PT_CHAN_UDP;
    if (o->one_way && size < PT_LAT_ONE_WAY)
        return pt_fail(e, -EINVAL, "--one-way needs messages of %d bytes or more (--size)",
                       PT_LAT_ONE_WAY);
    if (udp && size > 65507)
        return pt_fail(e, -EINVAL, "--size: a datagram holds at most 65507 bytes");
    if (size > (16u << 20))
        return pt_fail(e, -EINVAL, "--size: at most 16 MiB");
    if (o->crr && (udp || o->one_way))
        return pt_fail(e, -EINVAL, "--crr is about TCP connections: leave --udp and --one-way out");
    if (c->inflight > 65536)
        return pt_fail(e, -EINVAL, "--inflight: at most 65536");
    if (o->crr && c->inflight > 1)
        return pt_fail(e, -EINVAL, "--crr has one request per connection: leave --inflight out");
    if (c->rate.bits)
        return pt_fail(e, -EINVAL, "--rate of lat is in round trips per second, e.g. 10k");
    *s = (struct pt_shape){
        .chan = chan,
        .flows = c->connections,
        .forward = c->connections,
        .both = true,
        .spin = o->spin,
        .same_cpu = o->same_cpu,
        .answer_listens = o->crr,
        .recv_size = size > 65536 && !udp ? 262144 : 65536,
        .recv_batch = 1,
        .recv_kind = udp ? PT_RECV_DGRAM : PT_RECV_STREAM,
        .wakeups = !o->spin && !o->crr,
        .burst = 1,
        .inflight = c->inflight,
        .ops_per_s = c->rate.per_s,
        .bits_per_s = c->rate.per_s * 8 * (double)size,
        .ops_per_flow = c->requests,
        .warmup = c->warmup,
        .duration = c->duration,
    };
    pt_shape_peer(p, s);
    return 0;
}

static int check(const struct pt_plan *p, struct pt_err *e)
{
    const struct pt_lat_opts *o = p->params;
    const struct pt_common *c = &p->common;
    size_t size = pt_lat_size(p);
    if (!c->peer[0])
        return 0;
    if (o->crr || o->one_way || o->same_cpu || o->load.given)
        return pt_fail(e, -EINVAL,
                       "--crr, --one-way, --same-cpu and --load need `pitot serve` at the other "
                       "end; a server of %s only answers",
                       c->peer);
    if (size < PT_SOCKPERF_HEADER || size > PT_SOCKPERF_MAX)
        return pt_fail(e, -EINVAL, "--size: a message of %s has %d to %d bytes", c->peer,
                       PT_SOCKPERF_HEADER, PT_SOCKPERF_MAX);
    return 0;
}

/* Requests that can be outstanding on one flow: all that fall due within the time limit. */
static uint64_t ring_size(const struct pt_worker *w)
{
    const struct pt_common *c = &w->job->spec.plan->common;
    double most = c->inflight;
    if (w->paced)
        most = w->shape->ops_per_s * ((double)c->timeout / 1e9 + 1) / w->shape->flows + 16;
    uint64_t n = 2;
    while ((double)n < most && n < (1u << 20))
        n += n;
    return n;
}

/* A closed loop over UDP waits for each lost answer: ten seconds a loss would be most of a test. */
static int choose(struct pt_plan *plan, const struct pt_addr_list *to, json_t *chosen,
                  struct pt_err *e)
{
    const struct pt_lat_opts *o = plan->params;
    enum pt_chan_kind chan = PT_CHAN_TCP;
    int rc = pt_shape_channel(plan, o->udp, &chan, e);
    (void)to;
    if (rc < 0 || chan != PT_CHAN_UDP || plan->common.rate.per_s > 0 ||
        pt_plan_given(plan, "timeout"))
        return rc;
    plan->common.timeout = PT_S;
    pt_choice_add(chosen, "timeout", "1 s", "a lost answer stops its connection for so long");
    return 0;
}

static int worker_init(struct pt_worker *w, struct pt_err *e)
{
    return opts(w)->crr ? pt_lat_crr_worker_init(w, e) : 0;
}

static void worker_fini(struct pt_worker *w)
{
    if (opts(w)->crr)
        pt_lat_crr_fini(w);
}

static int flow_init(struct pt_flow *f, struct pt_err *e)
{
    struct lat_flow *l = f->own;
    if (opts(f->w)->crr)
        return pt_lat_crr_flow_init(f, e);
    size_t size = pt_lat_size(f->w->job->spec.plan);
    l->message = pt_worker_alloc(f->w, size + 64);
    uint64_t n = f->w->job->spec.side == PT_ASK ? ring_size(f->w) : 2;
    l->mask = n - 1;
    l->ring = pt_worker_alloc(f->w, n * sizeof(*l->ring));
    if (!l->message || !l->ring)
        return pt_fail(e, -ENOMEM, "no memory for the open requests of a connection");
    memset(l->message, 0x5a, size);
    if (is_sockperf(f->w))
        pt_sockperf_write(l->message,
                          &(struct pt_sockperf){.flags = PT_SOCKPERF_CLIENT | PT_SOCKPERF_PONG,
                                                .length = (uint32_t)size});
    return 0;
}

/* ---- asking */

static void write_number(uint8_t *at, size_t size, uint64_t number)
{
    uint8_t eight[8];
    pt_put64(eight, number);
    memcpy(at, eight, size < sizeof(eight) ? size : sizeof(eight));
}

/* UINT64_MAX: it answers nothing. */
static uint64_t read_sockperf(const uint8_t *at, size_t size)
{
    struct pt_sockperf m;
    pt_sockperf_read(&m, at);
    return m.flags & PT_SOCKPERF_CLIENT || m.length != size ? UINT64_MAX : m.sequence - 1;
}

/* The request that a message with this number answers: the newest whose low bytes agree. */
static uint64_t read_number(const struct lat_flow *l, const uint8_t *at, size_t size)
{
    uint8_t eight[8] = {0};
    unsigned n = size < sizeof(eight) ? (unsigned)size : (unsigned)sizeof(eight);
    memcpy(eight, at, n);
    uint64_t low = pt_get64(eight);
    if (n == sizeof(eight))
        return low;
    uint64_t range = (uint64_t)1 << (8 * n), newest = l->next - 1;
    uint64_t number = (newest & ~(range - 1)) | low;
    return number > newest && number >= range ? number - range : number;
}

static uint64_t number_of(const struct pt_flow *f, const uint8_t *at, size_t size)
{
    return PT_UNLIKELY(is_sockperf(f->w)) ? read_sockperf(at, size) : read_number(f->own, at, size);
}

static int on_due(struct pt_flow *f, pt_ns due, unsigned n)
{
    (void)n;
    struct lat_flow *l = f->own;
    struct pt_worker *w = f->w;
    if (opts(w)->crr)
        return pt_lat_crr_due(f, due);
    size_t size = pt_lat_size(w->job->spec.plan);
    pt_ns sent = pt_loop_now(w->loop);
    if (l->next - l->oldest > l->mask) {
        pt_flow_started(f, due, sent);
        pt_flow_error(f, PT_OP_BACKLOG, due, sent, sent);
        return 1;
    }
    if (PT_UNLIKELY(is_sockperf(w)))
        pt_sockperf_number(l->message, l->next + 1);
    else
        write_number(l->message, size, l->next);
    if (opts(w)->one_way)
        pt_put64(l->message + 8, (uint64_t)sent);
    int rc = pt_flow_send(f, l->message, size);
    if (pt_flow_passing(f, rc)) {
        pt_flow_refused(f, due, sent);
        return 1;
    }
    if (rc < 0)
        return rc;
    l->ring[l->next & l->mask] =
        (struct slot){.number = l->next, .due = due, .sent = sent, .state = SLOT_OPEN};
    l->next++;
    pt_flow_started(f, due, sent);
    return 1;
}

static void advance_oldest(struct lat_flow *l)
{
    while (l->oldest < l->next && l->ring[l->oldest & l->mask].state != SLOT_OPEN)
        l->oldest++;
}

static void use_offset(struct pt_flow *f, pt_ns network, pt_ns offset)
{
    struct lat_flow *l = f->own;
    l->used_ns = network;
    l->offset = offset;
    l->offset_known = true;
    f->w->st->offset_ns = offset;
    f->w->st->offset_error_ns = network / 2 + 1;
}

/* Cristian's estimate: of the round trips of a second the fastest has the least room for error,
 * which is half of what the network took of it. */
static void learn_offset(struct pt_flow *f, const uint8_t *m, pt_ns now)
{
    struct lat_flow *l = f->own;
    pt_ns t1 = (pt_ns)pt_get64(m + 8), t2 = (pt_ns)pt_get64(m + 16), t3 = (pt_ns)pt_get64(m + 24);
    pt_ns network = (now - t1) - (t3 - t2);
    if (network < 0 || t3 < t2)
        return;
    pt_ns offset = ((t2 - t1) + (t3 - now)) / 2;
    if (now - l->second_began > PT_S) { /* clocks drift: what this second found replaces what was */
        if (l->best_ns < 4 * l->used_ns)
            use_offset(f, l->best_ns, l->best_offset);
        l->second_began = now;
        l->best_ns = PT_NS_MAX / 4;
    }
    if (network < l->best_ns) {
        l->best_ns = network;
        l->best_offset = offset;
    }
    if (!l->offset_known || network < l->used_ns)
        use_offset(f, network, offset);
    if (f->w->phase != PT_PHASE_MEASURE)
        return;
    pt_ns forward = t2 - t1 - l->offset, backward = now - t3 + l->offset;
    pt_hist_record(&f->w->st->hist[PT_HIST_FORWARD], (uint64_t)(forward > 0 ? forward : 0));
    pt_hist_record(&f->w->st->hist[PT_HIST_BACKWARD], (uint64_t)(backward > 0 ? backward : 0));
}

static void answered(struct pt_flow *f, uint64_t number, const uint8_t *m, pt_ns now)
{
    struct lat_flow *l = f->own;
    struct slot *s = &l->ring[number & l->mask];
    if (number >= l->next || s->number != number || s->state != SLOT_OPEN) {
        if (number < l->next && s->number == number && s->state == SLOT_ANSWERED)
            f->w->st->extra[EXTRA_DUPLICATES]++;
        else if (number < l->next)
            f->w->st->late++;
        if (number == l->highest && number < l->next)
            l->highest++;
        return;
    }
    if (number < l->highest)
        f->w->st->extra[EXTRA_REORDERED]++;
    else
        l->highest = number + 1;
    s->state = SLOT_ANSWERED;
    pt_ns due = s->due, sent = s->sent;
    advance_oldest(l);
    if (opts(f->w)->one_way)
        learn_offset(f, m, now);
    pt_flow_done(f, due, sent, now);
    if (!f->w->paced)
        pt_flow_next(f);
}

static void ask_stream(struct pt_flow *f, const uint8_t *bytes, size_t n, size_t size, pt_ns now)
{
    struct lat_flow *l = f->own;
    uint8_t head[PT_LAT_ONE_WAY];
    size_t keep = size < sizeof(head) ? size : sizeof(head);
    uint8_t *seen = l->message + size; /* 64 bytes behind the request: the head of an answer */
    while (n && !f->dead) {
        size_t take = size - l->got < n ? size - l->got : n;
        if (l->got < keep)
            memcpy(seen + l->got, bytes, take < keep - l->got ? take : keep - l->got);
        l->got += take;
        bytes += take;
        n -= take;
        if (l->got < size)
            return;
        l->got = 0;
        memcpy(head, seen, keep);
        /* In order, those that came too late among them. */
        if (l->highest == l->next || number_of(f, head, size) != l->highest) {
            pt_flow_end(f, -EPROTO);
            return;
        }
        answered(f, l->highest, head, now);
    }
}

static void ask_data(struct pt_flow *f, uint8_t *bytes, size_t n, pt_ns now)
{
    size_t size = pt_lat_size(f->w->job->spec.plan);
    if (f->w->shape->chan != PT_CHAN_UDP)
        ask_stream(f, bytes, n, size, now);
    else if (n == size && n)
        answered(f, number_of(f, bytes, size), bytes, now);
    else
        f->w->st->late++;
}

/* ---- answering */

static void answer_message(struct pt_flow *f, uint8_t *m, size_t size, pt_ns now)
{
    if (opts(f->w)->one_way) {
        pt_put64(m + 16, (uint64_t)pt_worker_clock(f->w, now));
        pt_put64(m + 24, (uint64_t)pt_worker_clock(f->w, pt_loop_touch(f->w->loop)));
    }
    int rc = pt_flow_send(f, m, size);
    if (rc < 0 && f->w->shape->chan != PT_CHAN_UDP)
        pt_flow_end(f, rc);
}

static void answer_data(struct pt_flow *f, uint8_t *bytes, size_t n, pt_ns now)
{
    struct lat_flow *l = f->own;
    size_t size = pt_lat_size(f->w->job->spec.plan);
    if (f->w->shape->chan == PT_CHAN_UDP) {
        if (n == size && n)
            answer_message(f, bytes, n, now);
        return;
    }
    while (n && !f->dead) {
        if (!l->got && n >= size) { /* the common case: a whole request, no copy */
            answer_message(f, bytes, size, now);
            bytes += size;
            n -= size;
            continue;
        }
        size_t take = size - l->got < n ? size - l->got : n;
        memcpy(l->message + l->got, bytes, take);
        l->got += take;
        bytes += take;
        n -= take;
        if (l->got == size) {
            l->got = 0;
            answer_message(f, l->message, size, now);
        }
    }
}

static void on_data(struct pt_flow *f, uint8_t *bytes, size_t n, const struct pt_recv_meta *meta,
                    pt_ns now)
{
    (void)meta;
    if (f->w->job->spec.side == PT_ASK)
        ask_data(f, bytes, n, now);
    else
        answer_data(f, bytes, n, now);
}

/* ---- what does not come */

static void give_up(struct pt_flow *f, enum pt_op_error error, enum slot_state state, pt_ns before,
                    pt_ns now)
{
    struct lat_flow *l = f->own;
    while (l->oldest < l->next) {
        struct slot *s = &l->ring[l->oldest & l->mask];
        if (s->state == SLOT_OPEN) {
            if (s->due >= before)
                return;
            s->state = state;
            pt_flow_error(f, error, s->due, s->sent, now);
        }
        l->oldest++;
    }
}

static void on_tick(struct pt_flow *f, pt_ns now)
{
    struct pt_worker *w = f->w;
    if (w->job->spec.side != PT_ASK)
        return;
    if (opts(w)->crr) {
        pt_lat_crr_tick(f, now);
        return;
    }
    struct lat_flow *l = f->own;
    if (l->oldest == l->next)
        return;
    give_up(f, PT_OP_TIMEOUT, SLOT_TIMED_OUT, now - w->job->spec.plan->common.timeout, now);
    if (!w->paced)
        pt_flow_next(f);
}

static void on_end(struct pt_flow *f, int code, pt_ns now)
{
    if (f->w->job->spec.side != PT_ASK || opts(f->w)->crr)
        return;
    give_up(f,
            code == 0         ? PT_OP_CLOSED
            : code == -EPROTO ? PT_OP_PROTOCOL
                              : PT_OP_RESET,
            SLOT_TIMED_OUT, PT_NS_MAX, now);
}

static void report(const struct pt_report *rep, struct pt_result *r)
{
    const struct pt_half *h = rep->local;
    const struct pt_lat_opts *o = rep->plan->params;
    if (h->hist[PT_HIST_LATENCY]) {
        pt_result_str(r, "latency.of", "round trip");
        pt_result_headline(r, "RTT p50", "latency.p50_us", "us");
        pt_result_headline(r, "RTT p99", "latency.p99_us", "us");
    }
    pt_result_headline(r, "round trips", "rates.operations_per_s", "operation/s");
    if (rep->shape->chan == PT_CHAN_UDP) {
        pt_result_u64(r, "totals.lost_packets", h->c[PT_PHASE_MEASURE].errors[PT_OP_TIMEOUT]);
        pt_result_u64(r, "totals.duplicate_packets", h->extra[EXTRA_DUPLICATES]);
        pt_result_u64(r, "totals.reordered_packets", h->extra[EXTRA_REORDERED]);
        pt_result_u64(r, "totals.late_packets", h->late);
    }
    if (h->hist[PT_HIST_LATENCY]) {
        double p50 = (double)pt_hist_quantile(h->hist[PT_HIST_LATENCY], 0.5) / 2e3;
        pt_result_real(r, "half_rtt_p50_us", p50);
    }
    if (h->hist[PT_HIST_WAKEUP])
        pt_result_hist(r, "wakeup_time", h->hist[PT_HIST_WAKEUP]);
    if (h->hist[PT_HIST_CONNECT])
        pt_result_hist(r, "connect_time", h->hist[PT_HIST_CONNECT]);
    if (o->one_way && h->hist[PT_HIST_FORWARD]) {
        pt_result_hist(r, "one_way.forward", h->hist[PT_HIST_FORWARD]);
        pt_result_hist(r, "one_way.backward", h->hist[PT_HIST_BACKWARD]);
        pt_result_real(r, "one_way.offset_us", (double)h->offset_ns / 1e3);
        pt_result_real(r, "one_way.offset_error_us", (double)h->offset_error_ns / 1e3);
    }
}

static const struct pt_load *load(const struct pt_plan *p)
{
    return &((const struct pt_lat_opts *)p->params)->load;
}

static const struct pt_opt lat_opts[] = {
    {PT_OPT_FIELD(struct pt_lat_opts, udp, PT_OPT_BOOL), .name = "udp", .letter = 'u',
     .help = "UDP instead of TCP; a lost answer is counted and the run goes on",
     .group = "Round trips", .flags = PT_OPT_PEER},
    {PT_OPT_FIELD(struct pt_lat_opts, spin, PT_OPT_BOOL), .name = "spin",
     .help = "both ends poll instead of sleeping, on a CPU each: no wake-ups",
     .flags = PT_OPT_PEER},
    {PT_OPT_FIELD(struct pt_lat_opts, same_cpu, PT_OPT_BOOL), .name = "same-cpu",
     .help = "both ends on one CPU of this machine", .flags = PT_OPT_PEER},
    {PT_OPT_FIELD(struct pt_lat_opts, crr, PT_OPT_BOOL), .name = "crr",
     .help = "connect, request, response, close: a TCP connection per round trip",
     .flags = PT_OPT_PEER},
    {PT_OPT_FIELD(struct pt_lat_opts, one_way, PT_OPT_BOOL), .name = "one-way",
     .help = "also each direction by itself; the offset of the two clocks is estimated, with "
             "its error",
     .flags = PT_OPT_PEER},
    {PT_OPT_FIELD(struct pt_lat_opts, load, PT_OPT_CUSTOM), .name = "load", .metavar = "SPEC",
     .kind = &pt_load_kind,
     .help = "a bulk transfer beside it: tcp, udp, tcp:4 (connections), tcp@1gbit, tcp:reverse"},
    {0}};

static const struct pt_opt_default lat_defaults[] = {
    {"requests", .help = "round trips per connection, instead of a duration"},
    {"rate", .help = "open loop: round trips per second in all, due whether answers come or not "
                     "(default: closed loop, a request follows an answer)"},
    {"inflight", .help = "closed loop: requests outstanding per connection"},
    {"size", .help = "bytes of a request and of its answer (default 14, with --one-way 32)"},
    {"timeout", .help = "a request without an answer for so long is an error; it still enters the "
                        "histogram; a closed loop over UDP waits 1s unless told otherwise"},
    {"peer", .help = "HOST is the stock server of another tool: sockperf"},
    {0}};

const struct pt_workload pt_lat = {
    .form =
        {.manual = {.command = "lat",
                    .summary = "round trips and connection times",
                    .usage = "[HOST] [options]",
                    .about =
                        "Measures round trips: closed loop (a request follows an answer) or, with "
                        "--rate, open loop: requests are due on a schedule that does not wait, "
                        "and latency counts from the instant a request was due, so a stall is "
                        "felt by all that fall into it (no coordinated omission).\n\n"
                        "Without HOST pitot measures this machine: it starts its own `serve` on "
                        "the loopback. RTT is the whole round trip; sockperf prints half of it.",
                    .examples = "pitot lat 10.0.0.2\tTCP round trips\n"
                                "pitot lat -u --spin\tUDP over the loopback, both ends polling\n"
                                "pitot lat -r 1000 --timeout 1s 10.0.0.2\topen loop\n"
                                "pitot lat --load tcp 10.0.0.2\tunder a bulk transfer"},
         .opts = lat_opts,
         .params_size = sizeof(struct pt_lat_opts),
         .peers = (const char *const[]){"sockperf", NULL},
         .defaults = lat_defaults,
         .check = check},
    .worker_size = 65536,
    .flow_size = 512,
    .yield = "operations_per_s",
    .load = load,
    .shape = shape,
    .choose = choose,
    .worker_init = worker_init,
    .worker_fini = worker_fini,
    .flow_init = flow_init,
    .on_due = on_due,
    .on_data = on_data,
    .on_tick = on_tick,
    .on_end = on_end,
    .report = report,
};
