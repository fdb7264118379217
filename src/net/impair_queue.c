/* impair_queue.c: see impair_queue.h. A binary heap by (due instant, order of entry); what is held
 * back by a number of packets waits beside it, since its instant is not known yet.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/impair_queue.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SLOT_SIZE_MAX (1u << 22)

struct pt_impair_waiting {
    pt_ns due, offered;
    struct pt_impair_flow *flow;
    uint64_t number; /* within its flow */
    uint32_t len;
    socklen_t from_len;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } from;
    bool copy;
};

struct pt_impair_leave {
    pt_ns due;
    uint64_t order;
    uint32_t slot;
};

int pt_impair_queue_init(struct pt_impair_queue *q, const struct pt_impair_spec *spec,
                         struct pt_impair_record *record, uint64_t salt, bool stream,
                         uint32_t slots, uint32_t slot_size, struct pt_err *e)
{
    *q = (struct pt_impair_queue){.slots = slots, .slot_size = slot_size};
    if (slots == 0 || slots > PT_IMPAIR_SLOTS_MAX || slot_size == 0 || slot_size > SLOT_SIZE_MAX)
        return pt_fail(e, -EINVAL, "an impaired path of %u slots of %u bytes is out of range",
                       slots, slot_size);
    if (stream)
        pt_impair_init_stream(&q->path, spec, record, salt);
    else
        pt_impair_init(&q->path, spec, record, salt);
    q->free_slots = calloc(slots, sizeof(*q->free_slots));
    q->packets = calloc(slots, sizeof(*q->packets));
    q->heap = calloc(slots, sizeof(*q->heap));
    /* Large, and mostly never touched: straight from the kernel, which gives a page when one is. */
    void *bytes = mmap(NULL, (size_t)slots * slot_size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    q->bytes = bytes == MAP_FAILED ? NULL : bytes;
    if (!q->free_slots || !q->packets || !q->heap || !q->bytes) {
        pt_impair_queue_fini(q);
        return pt_fail(e, -ENOMEM, "no memory for an impaired path of %u packets of %u bytes",
                       slots, slot_size);
    }
    for (uint32_t i = 0; i < slots; i++)
        q->free_slots[i] = slots - 1 - i;
    q->free_count = slots;
    return 0;
}

void pt_impair_queue_fini(struct pt_impair_queue *q)
{
    free(q->free_slots);
    free(q->packets);
    free(q->heap);
    if (q->bytes)
        munmap(q->bytes, (size_t)q->slots * q->slot_size);
    *q = (struct pt_impair_queue){0};
}

static bool sooner(const struct pt_impair_leave *a, const struct pt_impair_leave *b)
{
    return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static void sift_up(struct pt_impair_leave *heap, uint32_t at)
{
    struct pt_impair_leave moving = heap[at];
    while (at > 0 && sooner(&moving, &heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = moving;
}

static void sift_down(struct pt_impair_leave *heap, uint32_t len, uint32_t at)
{
    struct pt_impair_leave moving = heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < len && sooner(&heap[child + 1], &heap[child]))
            child++;
        if (child >= len || !sooner(&heap[child], &moving))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

static void push(struct pt_impair_queue *q, uint32_t slot, pt_ns due)
{
    q->packets[slot].due = due;
    q->heap[q->heap_len] = (struct pt_impair_leave){due, q->order++, slot};
    sift_up(q->heap, q->heap_len++);
}

static uint32_t pop(struct pt_impair_queue *q)
{
    uint32_t slot = q->heap[0].slot;
    q->heap[0] = q->heap[--q->heap_len];
    if (q->heap_len)
        sift_down(q->heap, q->heap_len, 0);
    return slot;
}

static void release_held(struct pt_impair_queue *q, pt_ns due)
{
    for (uint32_t i = 0; i < q->held_count; i++)
        push(q, q->held[i], due);
    q->held_count = 0;
}

static uint32_t store(struct pt_impair_queue *q, const struct pt_impair_waiting *packet,
                      const void *bytes)
{
    uint32_t slot = q->free_slots[--q->free_count];
    q->packets[slot] = *packet;
    if (packet->len && bytes)
        memcpy(q->bytes + (size_t)slot * q->slot_size, bytes, packet->len);
    return slot;
}

/* Takes back what pt_impair_packet counted: the packet found no slot. */
static void count_no_slot(struct pt_impair_record *record, const struct pt_verdict *v, size_t len)
{
    record->passed--;
    record->passed_bytes -= len;
    record->queue_dropped++;
    record->duplicated -= v->copies - 1;
}

int pt_impair_offer(struct pt_impair_queue *q, pt_ns now, struct pt_impair_flow *flow,
                    const struct sockaddr *from, socklen_t from_len, const void *bytes, size_t len)
{
    struct pt_impair_waiting packet = {.offered = now,
                                       .flow = flow ? flow : &q->whole,
                                       .len = (uint32_t)len,
                                       .from_len = from_len};
    if (len > q->slot_size || from_len > sizeof(packet.from))
        return -EMSGSIZE;
    if (q->path.stream && q->free_count == 0)
        return -ENOBUFS;
    if (from_len)
        memcpy(&packet.from, from, from_len);
    packet.number = ++packet.flow->offered;
    struct pt_verdict v;
    pt_impair_packet(&q->path, now, len, &v);
    if (v.copies > q->free_count) {
        count_no_slot(q->path.record, &v, len);
        v.copies = 0;
    }
    for (unsigned i = 0; i < v.copies; i++) {
        packet.copy = i > 0;
        packet.due = v.at;
        uint32_t slot = store(q, &packet, bytes);
        if (v.hold && q->held_count < PT_COUNT(q->held))
            q->held[q->held_count++] = slot;
        else
            push(q, slot, v.at);
    }
    if (v.release)
        release_held(q, v.at);
    return (int)v.copies;
}

bool pt_impair_reads(const struct pt_impair_queue *q, pt_ns now, size_t len)
{
    size_t chunks = (len + q->slot_size - 1) / q->slot_size;
    return q->free_count >= chunks && pt_impair_room(&q->path, now) <= now;
}

static pt_ns held_due(const struct pt_impair_queue *q)
{
    return q->held_count ? q->packets[q->held[0]].due : PT_NS_MAX;
}

pt_ns pt_impair_next(const struct pt_impair_queue *q)
{
    pt_ns held = held_due(q);
    return q->heap_len && q->heap[0].due < held ? q->heap[0].due : held;
}

bool pt_impair_take(struct pt_impair_queue *q, pt_ns now, struct pt_departure *d)
{
    if (held_due(q) <= now)
        release_held(q, held_due(q));
    if (q->heap_len == 0 || q->heap[0].due > now)
        return false;
    uint32_t slot = pop(q);
    struct pt_impair_waiting *packet = &q->packets[slot];
    struct pt_impair_record *record = q->path.record;
    *d = (struct pt_departure){.due = packet->due,
                               .offered = packet->offered,
                               .flow = packet->flow,
                               .bytes = q->bytes + (size_t)slot * q->slot_size,
                               .len = packet->len,
                               .from = &packet->from.any,
                               .from_len = packet->from_len,
                               .copy = packet->copy,
                               .slot = slot};
    record->departed++;
    record->departed_bytes += packet->len;
    pt_hist_record(&record->delay, (uint64_t)(packet->due - packet->offered));
    pt_hist_record(&record->lateness, (uint64_t)(now - packet->due));
    if (packet->number > packet->flow->high)
        packet->flow->high = packet->number;
    else if (!packet->copy)
        record->reordered++;
    return true;
}

void pt_impair_done(struct pt_impair_queue *q, const struct pt_departure *d)
{
    q->free_slots[q->free_count++] = d->slot;
}

void pt_impair_forget(struct pt_impair_queue *q, const struct pt_impair_flow *flow)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < q->heap_len; i++) {
        if (q->packets[q->heap[i].slot].flow == flow) {
            q->free_slots[q->free_count++] = q->heap[i].slot;
            q->path.record->forgotten++;
        } else {
            q->heap[kept++] = q->heap[i];
        }
    }
    q->heap_len = kept;
    for (uint32_t i = kept / 2; i-- > 0;)
        sift_down(q->heap, kept, i);
    uint32_t held = 0;
    for (uint32_t i = 0; i < q->held_count; i++) {
        if (q->packets[q->held[i]].flow == flow) {
            q->free_slots[q->free_count++] = q->held[i];
            q->path.record->forgotten++;
        } else {
            q->held[held++] = q->held[i];
        }
    }
    q->held_count = held;
}
