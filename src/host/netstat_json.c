/* netstat_json.c: see netstat_json.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "host/netstat_json.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* What every JSON reader keeps exact; leaves room to add and multiply without care. */
#define COUNTER_MAX (1LL << 53)

/* Where each key of an object lies in its struct. */
struct field {
    const char *key;
    size_t offset;
};

static const struct field dev_fields[] = {
#define F(name)                                                                                    \
    {                                                                                              \
#name, offsetof(struct pt_netdev, name)                                                    \
    }
    F(rx_bytes),      F(rx_packets),   F(rx_errors),  F(rx_dropped), F(rx_fifo),
    F(rx_compressed), F(tx_bytes),     F(tx_packets), F(tx_errors),  F(tx_dropped),
    F(tx_fifo),       F(tx_compressed)
#undef F
};

static const struct field softnet_fields[] = {
#define F(name)                                                                                    \
    {                                                                                              \
#name, offsetof(struct pt_softnet, name)                                                   \
    }
    F(processed), F(dropped), F(squeezed)
#undef F
};

static int64_t *at(void *base, size_t offset)
{
    return (int64_t *)(void *)((char *)base + offset);
}

/* Sticky: 0, or -1 once memory ran out. */
static int put(json_t *object, const char *key, int64_t v)
{
    return v < 0 || v > COUNTER_MAX ? 0 : json_object_set_new(object, key, json_integer(v));
}

static json_t *fields_json(void *base, const struct field *fields, size_t n)
{
    json_t *o = json_object();
    int rc = o ? 0 : -1;
    for (size_t i = 0; i < n; i++)
        rc |= put(o, fields[i].key, *at(base, fields[i].offset));
    if (rc == 0)
        return o;
    json_decref(o);
    return NULL;
}

json_t *pt_netstat_json(const struct pt_netstat *d)
{
    json_t *root = json_object(), *counters = json_object(), *devs = json_array();
    int rc = root && counters && devs ? 0 : -1;
    for (int i = 0; i < PT_NETSTAT_COUNT; i++)
        rc |= put(counters, pt_netstat_name((enum pt_netstat_counter)i), d->counter[i]);
    for (unsigned i = 0; i < d->devs; i++) {
        struct pt_netdev dev = d->dev[i];
        json_t *o = fields_json(&dev, dev_fields, PT_COUNT(dev_fields));
        rc |= o ? json_object_set_new(o, "name", json_string(dev.name)) : -1;
        rc |= json_array_append_new(devs, o);
    }
    struct pt_softnet all = d->softnet_all;
    rc |= put(root, "elapsed_ns", d->at);
    rc |= json_object_set_new(root, "counters", counters);
    rc |= json_object_set_new(root, "devs", devs);
    rc |= json_object_set_new(root, "softnet",
                              fields_json(&all, softnet_fields, PT_COUNT(softnet_fields)));
    if (rc == 0)
        return root;
    json_decref(root);
    return NULL;
}

/* ---- reading */

/* An absent key leaves -1. */
static int take(const json_t *object, const char *key, int64_t *v, struct pt_err *e)
{
    const json_t *x = json_object_get(object, key);
    *v = -1;
    if (!x)
        return 0;
    if (!json_is_integer(x) || json_integer_value(x) < 0 || json_integer_value(x) > COUNTER_MAX)
        return pt_fail(e, -EPROTO, "network counters: %s is not a number from 0 to 2^53", key);
    *v = json_integer_value(x);
    return 0;
}

static int take_fields(const json_t *o, void *base, const struct field *fields, size_t n,
                       struct pt_err *e)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = take(o, fields[i].key, at(base, fields[i].offset), e);
    return rc;
}

static bool is_dev_name(const char *name)
{
    size_t n = name ? strlen(name) : 0;
    for (size_t i = 0; i < n; i++)
        if (!isgraph((unsigned char)name[i]) || name[i] == '/')
            return false;
    return n > 0 && n < sizeof(((struct pt_netdev *)0)->name);
}

static int take_devs(struct pt_netstat *d, const json_t *devs, struct pt_err *e)
{
    if (!devs)
        return 0;
    if (!json_is_array(devs) || json_array_size(devs) > PT_NETDEV_MAX)
        return pt_fail(e, -EPROTO, "network counters: devs is not an array of at most %d",
                       PT_NETDEV_MAX);
    for (size_t i = 0; i < json_array_size(devs); i++) {
        const json_t *o = json_array_get(devs, i), *text = json_object_get(o, "name");
        const char *name = json_string_value(text);
        if (!is_dev_name(name) || json_string_length(text) != strlen(name) ||
            pt_netstat_dev(d, name))
            return pt_fail(e, -EPROTO,
                           "network counters: devs[%zu] has no name, a strange one, or another's",
                           i);
        struct pt_netdev *dev = &d->dev[d->devs];
        memcpy(dev->name, name, strlen(name) + 1);
        int rc = take_fields(o, dev, dev_fields, PT_COUNT(dev_fields), e);
        if (rc < 0)
            return rc;
        d->devs++;
    }
    return 0;
}

int pt_netstat_from_json(struct pt_netstat *d, const json_t *from, struct pt_err *e)
{
    pt_netstat_clear(d);
    const json_t *counters = json_object_get(from, "counters");
    const json_t *softnet = json_object_get(from, "softnet");
    if (!json_is_object(from) || !json_is_object(counters) || (softnet && !json_is_object(softnet)))
        return pt_fail(e, -EPROTO, "network counters: not the object that was expected");
    int rc = take(from, "elapsed_ns", &d->at, e);
    if (rc == 0 && d->at < 0)
        rc = pt_fail(e, -EPROTO, "network counters: elapsed_ns is missing");
    for (int i = 0; i < PT_NETSTAT_COUNT && rc == 0; i++)
        rc = take(counters, pt_netstat_name((enum pt_netstat_counter)i), &d->counter[i], e);
    if (rc == 0)
        rc = take_devs(d, json_object_get(from, "devs"), e);
    if (rc == 0 && softnet)
        rc = take_fields(softnet, &d->softnet_all, softnet_fields, PT_COUNT(softnet_fields), e);
    if (rc < 0)
        pt_netstat_clear(d);
    return rc;
}
