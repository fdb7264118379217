/* yaml.h: a YAML text as a tree whose nodes know where they stand: what plan files are read
 * through.
 *
 * A plain subset, for files that nobody vouches for: one document of maps, lists and scalars.
 * Anchors and aliases are refused, and so is everything above the limits below, as the text is read
 * and before memory grows. Scalars are text; what they mean is for the reader of the tree to say.
 * The one tag is `!default` (PT_YAML_DEFAULT): a value that is written down though nobody set it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_MODEL_YAML_H
#define PT_MODEL_YAML_H

#include "base/err.h"

#define PT_YAML_BYTES    ((size_t)256 << 10) /* of the text */
#define PT_YAML_DEPTH    10                  /* maps and lists within each other */
#define PT_YAML_NODES    20000
#define PT_YAML_CHILDREN 512  /* of one map or list */
#define PT_YAML_SCALAR   1000 /* bytes of one scalar */
#define PT_YAML_DEFAULT  "!default"

enum pt_yaml_kind { PT_YAML_TEXT, PT_YAML_LIST, PT_YAML_MAP };

struct pt_yaml {
    enum pt_yaml_kind kind;
    char *text;            /* TEXT: UTF-8 without control characters; else NULL */
    bool plain;            /* TEXT without quotes */
    bool fallback;         /* tagged !default */
    uint32_t line, column; /* from 1, in characters */
    uint32_t n;            /* children */
    struct pt_yaml *first; /* child; NULL: none */
    struct pt_yaml *next;  /* within the same list or map */
    char *key;             /* in a map: unique there; else NULL */
    uint32_t key_line, key_column;
};

/* Reads the whole of a text. On a failure `e` begins with "LINE:COLUMN: ". -EINVAL: not what this
 * reader takes; -ENOMEM. An empty text is refused. */
int pt_yaml_parse(const char *bytes, size_t n, struct pt_yaml **out, struct pt_err *e) PT_MUST_USE;
void pt_yaml_free(struct pt_yaml *y);

/* "KEY: " with nothing behind it, ~ or null. */
bool pt_yaml_is_nothing(const struct pt_yaml *y);

/* Writes text such that it reads back as the same text: plain where it can be, else in quotes. */
struct pt_buf;
void pt_yaml_print_text(struct pt_buf *out, const char *text);

#endif
