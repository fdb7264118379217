/* yaml.c: see yaml.h. libyaml's events, made into a tree.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/yaml.h"

#include "base/buf.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the present one */
    bool event_open;
    unsigned depth, nodes;
    const char *bytes;
    size_t n;
    struct pt_err *e;
};

static int build(struct reader *r, struct pt_yaml **out);

/* ---- where, and why */

static int refuse(struct reader *r, size_t line, size_t column, const char *fmt, ...)
    PT_PRINTF(4, 5);
static int refuse(struct reader *r, size_t line, size_t column, const char *fmt, ...)
{
    char why[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    return pt_fail(r->e, -EINVAL, "%zu:%zu: %s", line, column, why);
}

#define REFUSE(r, ...)                                                                             \
    refuse(r, (r)->event.start_mark.line + 1, (r)->event.start_mark.column + 1, __VA_ARGS__)

/* What cannot be decoded has an offset in bytes only. */
static int refuse_bytes(struct reader *r)
{
    size_t line = 1, column = 1, end = r->parser.problem_offset;
    for (size_t i = 0; i < end && i < r->n; i++) {
        bool newline = r->bytes[i] == '\n';
        line += newline;
        column = newline ? 1 : column + ((r->bytes[i] & 0xc0) != 0x80);
    }
    return refuse(r, line, column, "%s: a plan is UTF-8 text", r->parser.problem);
}

/* The first byte of a character that libyaml counted; 0 behind the end. */
static unsigned char byte_of(const struct reader *r, size_t character)
{
    for (size_t i = 0; i < r->n; i++) {
        bool begins = ((unsigned char)r->bytes[i] & 0xc0) != 0x80;
        if (begins && character-- == 0)
            return (unsigned char)r->bytes[i];
    }
    return 0;
}

static int broken(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR)
        return pt_fail(r->e, -ENOMEM, "no memory for the plan");
    if (p->error == YAML_READER_ERROR)
        return refuse_bytes(r);
    bool tab = p->error == YAML_SCANNER_ERROR && byte_of(r, p->problem_mark.index) == '\t';
    if (tab)
        return refuse(r, p->problem_mark.line + 1, p->problem_mark.column + 1,
                      "a tab, where YAML takes spaces only");
    return refuse(r, p->problem_mark.line + 1, p->problem_mark.column + 1, "%s%s%s",
                  p->problem ? p->problem : "no YAML", p->context ? ", " : "",
                  p->context ? p->context : "");
}

static void drop(struct reader *r)
{
    if (r->event_open)
        yaml_event_delete(&r->event);
    r->event_open = false;
}

static int next(struct reader *r)
{
    drop(r);
    if (!yaml_parser_parse(&r->parser, &r->event))
        return broken(r);
    r->event_open = true;
    return 0;
}

/* ---- nodes */

/* Control characters could fool a terminal, a log or a C string; the separators of lines and
 * paragraphs, and a byte order mark, would not come back as they were. */
static bool is_clean(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < 0x20 || s[i] == 0x7f)
            return false;
        if (s[i] == 0xc2 && i + 1 < n && s[i + 1] < 0xa0)
            return false;
        if (s[i] == 0xe2 && i + 2 < n && s[i + 1] == 0x80 && (s[i + 2] & 0xfe) == 0xa8)
            return false;
        if (s[i] == 0xef && i + 2 < n && s[i + 1] == 0xbb && s[i + 2] == 0xbf)
            return false;
    }
    return true;
}

static int take_text(struct reader *r, char **out)
{
    const char *text = (const char *)r->event.data.scalar.value;
    size_t n = r->event.data.scalar.length;
    if (n > PT_YAML_SCALAR)
        return REFUSE(r, "a value of %zu bytes; at most %d are taken", n, PT_YAML_SCALAR);
    if (!is_clean(text, n))
        return REFUSE(r, "a value must be one line of text without control characters");
    *out = strndup(text, n);
    return *out ? 0 : pt_fail(r->e, -ENOMEM, "no memory for the plan");
}

static int check_tag(struct reader *r, const yaml_char_t *anchor, const yaml_char_t *tag,
                     struct pt_yaml *y)
{
    char quoted[80];
    if (anchor)
        return REFUSE(r, "anchors and aliases are not accepted in a plan: write the value again");
    y->fallback = tag && !strcmp((const char *)tag, PT_YAML_DEFAULT);
    if (tag && !y->fallback)
        return REFUSE(r, "the tag %s is not accepted in a plan; the only one is %s",
                      pt_log_quote(quoted, sizeof(quoted), tag, strlen((const char *)tag)),
                      PT_YAML_DEFAULT);
    return 0;
}

static void append(struct pt_yaml *to, struct pt_yaml **last, struct pt_yaml *child)
{
    if (*last)
        (*last)->next = child;
    else
        to->first = child;
    *last = child;
    to->n++;
}

static int build_list(struct reader *r, struct pt_yaml *y)
{
    struct pt_yaml *last = NULL;
    for (;;) {
        struct pt_yaml *child = NULL;
        int rc = next(r);
        if (rc < 0 || r->event.type == YAML_SEQUENCE_END_EVENT)
            return rc;
        if (y->n == PT_YAML_CHILDREN)
            return REFUSE(r, "more than %d entries in one list", PT_YAML_CHILDREN);
        rc = build(r, &child);
        if (child)
            append(y, &last, child);
        if (rc < 0)
            return rc;
    }
}

static int take_key(struct reader *r, const struct pt_yaml *map, struct pt_yaml *child)
{
    char quoted[80];
    child->key_line = (uint32_t)r->event.start_mark.line + 1;
    child->key_column = (uint32_t)r->event.start_mark.column + 1;
    if (r->event.type != YAML_SCALAR_EVENT)
        return REFUSE(r, "expected a key: a word and a colon");
    if (check_tag(r, r->event.data.scalar.anchor, NULL, child) < 0)
        return -EINVAL;
    if (r->event.data.scalar.tag)
        return REFUSE(r, "a key has no tag");
    int rc = take_text(r, &child->key);
    for (const struct pt_yaml *c = map->first; rc == 0 && c; c = c->next)
        if (!strcmp(c->key, child->key))
            return REFUSE(r, "the key '%s' is there already, in line %u: keep one of the two",
                          pt_log_quote(quoted, sizeof(quoted), c->key, strlen(c->key)),
                          c->key_line);
    return rc;
}

static int build_map(struct reader *r, struct pt_yaml *y)
{
    struct pt_yaml *last = NULL;
    for (;;) {
        struct pt_yaml key = {0}, *child = NULL;
        int rc = next(r);
        if (rc < 0 || r->event.type == YAML_MAPPING_END_EVENT)
            return rc;
        if (y->n == PT_YAML_CHILDREN)
            return REFUSE(r, "more than %d keys in one map", PT_YAML_CHILDREN);
        rc = take_key(r, y, &key);
        if (rc == 0)
            rc = next(r);
        if (rc == 0)
            rc = build(r, &child);
        if (!child) {
            free(key.key);
            return rc;
        }
        child->key = key.key;
        child->key_line = key.key_line;
        child->key_column = key.key_column;
        append(y, &last, child);
        if (rc < 0)
            return rc;
    }
}

/* From the present event; with a failure `out` may hold what there is, to be freed. */
static int build(struct reader *r, struct pt_yaml **out)
{
    if (++r->nodes > PT_YAML_NODES)
        return REFUSE(r, "more than %d values", PT_YAML_NODES);
    struct pt_yaml *y = calloc(1, sizeof(*y));
    if (!y)
        return pt_fail(r->e, -ENOMEM, "no memory for the plan");
    *out = y;
    y->line = (uint32_t)r->event.start_mark.line + 1;
    y->column = (uint32_t)r->event.start_mark.column + 1;
    int rc;
    switch (r->event.type) {
    case YAML_SCALAR_EVENT:
        y->kind = PT_YAML_TEXT;
        y->plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        rc = check_tag(r, r->event.data.scalar.anchor, r->event.data.scalar.tag, y);
        return rc < 0 ? rc : take_text(r, &y->text);
    case YAML_SEQUENCE_START_EVENT:
        y->kind = PT_YAML_LIST;
        rc = check_tag(r, r->event.data.sequence_start.anchor, r->event.data.sequence_start.tag, y);
        break;
    case YAML_MAPPING_START_EVENT:
        y->kind = PT_YAML_MAP;
        rc = check_tag(r, r->event.data.mapping_start.anchor, r->event.data.mapping_start.tag, y);
        break;
    default:
        return REFUSE(r, "anchors and aliases are not accepted in a plan: write the value again");
    }
    if (rc < 0)
        return rc;
    if (++r->depth > PT_YAML_DEPTH)
        return REFUSE(r, "more than %d lists and maps within each other", PT_YAML_DEPTH);
    rc = y->kind == PT_YAML_LIST ? build_list(r, y) : build_map(r, y);
    r->depth--;
    return rc;
}

static int build_document(struct reader *r, struct pt_yaml **out)
{
    int rc = next(r); /* the stream's start */
    if (rc == 0)
        rc = next(r);
    if (rc == 0 && r->event.type == YAML_STREAM_END_EVENT)
        return refuse(r, 1, 1, "the file is empty; expected a plan with `tests:`");
    if (rc == 0)
        rc = next(r);
    if (rc == 0)
        rc = build(r, out);
    if (rc == 0)
        rc = next(r); /* the document's end */
    if (rc == 0)
        rc = next(r);
    if (rc == 0 && r->event.type != YAML_STREAM_END_EVENT)
        return REFUSE(r, "a second document begins here; a plan is one");
    return rc;
}

int pt_yaml_parse(const char *bytes, size_t n, struct pt_yaml **out, struct pt_err *e)
{
    struct reader r = {.bytes = bytes, .n = n, .e = e};
    *out = NULL;
    if (n > PT_YAML_BYTES)
        return pt_fail(e, -EINVAL, "1:1: %zu bytes; a plan has at most %zu", n, PT_YAML_BYTES);
    if (!yaml_parser_initialize(&r.parser))
        return pt_fail(e, -ENOMEM, "no memory for the plan");
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)bytes, n);
    int rc = build_document(&r, out);
    drop(&r);
    yaml_parser_delete(&r.parser);
    if (rc < 0) {
        pt_yaml_free(*out);
        *out = NULL;
    }
    return rc;
}

void pt_yaml_free(struct pt_yaml *y)
{
    while (y) {
        struct pt_yaml *after = y->next;
        pt_yaml_free(y->first);
        free(y->text);
        free(y->key);
        free(y);
        y = after;
    }
}

static bool is_nothing(const char *text)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; i < PT_COUNT(words); i++)
        if (!strcmp(text, words[i]))
            return true;
    return false;
}

bool pt_yaml_is_nothing(const struct pt_yaml *y)
{
    return y->kind == PT_YAML_TEXT && y->plain && is_nothing(y->text);
}

/* ---- out */

/* Letters and digits, and marks that mean nothing to YAML within a word. */
static bool is_plain(const char *text)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static const char inner[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "._/+-%<>=@";
    return !is_nothing(text) && strspn(text, word) > 0 && strspn(text, inner) == strlen(text);
}

void pt_yaml_print_text(struct pt_buf *out, const char *text)
{
    if (is_plain(text)) {
        pt_buf_adds(out, text);
        return;
    }
    pt_buf_adds(out, "\"");
    for (; *text; text++)
        pt_buf_addf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    pt_buf_adds(out, "\"");
}
