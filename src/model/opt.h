/* opt.h: one table of typed options gives the defaults, the command line, --help, the man page,
 * plan keys, and the JSON object that travels to the peer and into the result document.
 *
 * A table is a constant array of rows that ends with a row without a name. Values live in a plain
 * struct of the owner; a row says where. Strings live in fixed arrays inside that struct, so it can
 * be copied and forked and owns nothing. The parsers trust the table (test/unit/test_opt.c checks
 * it with pt_opts_valid) and nothing else.
 *
 *     static const struct pt_opt lat_opts[] = {
 *         {PT_OPT_FIELD(struct lat_opts, udp, PT_OPT_BOOL), .name = "udp", .letter = 'u',
 *          .help = "UDP instead of TCP", .flags = PT_OPT_PEER},
 *         {PT_OPT_FIELD(struct lat_opts, gap, PT_OPT_TIME), .name = "gap", .metavar = "T",
 *          .fallback = "0", .help = "pause between round trips", .max = 3600 * (uint64_t)PT_S},
 *         {0}};
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_MODEL_OPT_H
#define PT_MODEL_OPT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/units.h"

#include <jansson.h>

enum pt_opt_type {               /* field                        JSON */
                   PT_OPT_BOOL,  /* bool                         true, false */
                   PT_OPT_U32,   /* uint32_t                     integer */
                   PT_OPT_COUNT, /* uint64_t                     integer */
                   PT_OPT_SIZE,  /* uint64_t, bytes              integer */
                   PT_OPT_TIME,  /* pt_ns                        seconds, key ends in _s */
                   PT_OPT_RATE, /* struct pt_rate               {"per_s": n, "bits": b}, null when 0
                                 */
                   PT_OPT_PERCENT, /* double, 0.1 is 0.1 %         number */
                   PT_OPT_ENUM,    /* int, index into names        string */
                   PT_OPT_STRING,  /* char[n]                      string, null when empty */
                   PT_OPT_LIST,    /* struct pt_strs               array of strings */
                   PT_OPT_CUSTOM,  /* as its kind says             string, null when empty */
};

enum pt_opt_flags {
    PT_OPT_PEER = 1u << 0,   /* sent to the peer with the control protocol */
    PT_OPT_COMMAS = 1u << 1, /* LIST: a value is split at commas */
    PT_OPT_HIDDEN = 1u << 2, /* works, but is not in --help, man page or JSON */
    PT_OPT_LOCAL = 1u << 3,  /* about this terminal or its files: not in JSON */
};

#define PT_STRS_MAX 64
#define PT_STRS_LEN 128

/* A short list of short strings. */
struct pt_strs {
    uint32_t n;
    char at[PT_STRS_MAX][PT_STRS_LEN];
};

/* A type with a syntax of its own. `parse` gets the field and a NUL-terminated text; `print` writes
 * what parses back to the same value, "" for the zeroed field. */
struct pt_opt_kind {
    int (*parse)(const char *text, void *field, struct pt_err *e);
    void (*print)(const void *field, struct pt_buf *out);
};

struct pt_opt {
    size_t offset, size; /* of the field: PT_OPT_FIELD fills these and `type` */
    enum pt_opt_type type;
    const char *name;         /* long name without dashes */
    char letter;              /* 0: none */
    unsigned flags;           /* enum pt_opt_flags */
    const char *metavar;      /* "N", "T", …; NULL for BOOL; an ENUM shows its names */
    const char *fallback;     /* the default as text; NULL: the zero value */
    const char *help;         /* a phrase without a full stop; the default is added by itself */
    const char *group;        /* heading in --help; NULL: that of the row before */
    const char *const *names; /* ENUM: ends with NULL */
    const struct pt_opt_kind *kind; /* CUSTOM */
    uint64_t min, max; /* numbers, sizes, times (ns), rates (per s); max 0: that of the type */
};

#define PT_OPT_FIELD(strct, field, of_type)                                                        \
    .offset = offsetof(strct, field), .size = sizeof(((strct *)0)->field), .type = (of_type)

/* Another default or help for one row of a table, for one command. */
struct pt_opt_default {
    const char *name; /* NULL ends the list */
    const char *text; /* NULL: the default of the table */
    const char *help; /* NULL: the help of the table */
};

/* A table joined to the struct that holds its values. */
struct pt_opts {
    const struct pt_opt *table;
    void *values;
    const struct pt_opt_default *defaults; /* instead of those in the table; NULL: none */
    const char *const *without;            /* rows that this command does not have; NULL: none */
    uint64_t given;                        /* bit i: row i was set by a person; max 64 rows */
};

/* Where an option is. */
struct pt_opt_at {
    struct pt_opts *opts;
    const struct pt_opt *opt; /* NULL: not found */
    uint32_t row;
};

/* Positional arguments, in order; they point into argv. */
#define PT_ARGS_MAX 8
struct pt_args {
    uint32_t n;
    const char *at[PT_ARGS_MAX];
};

/* Sets every value of one set to its default and clears `given`. Fails only for a bad table. */
int pt_opts_init(struct pt_opts *o, struct pt_err *e) PT_MUST_USE;

/* Reads a command line over several sets at once: `--name=value`, `--name value`, `-n5`, `-n 5`,
 * bundled booleans `-u4`, `--no-NAME` of a boolean, `--` ends options. `argv` begins with the first
 * argument. Of an option given twice the last wins; a LIST grows. Unknown names are refused with
 * the nearest that exists; abbreviations are not accepted. 0, or -EINVAL with the sentence. */
int pt_opts_parse(struct pt_opts *sets, size_t n, int argc, const char *const *argv,
                  struct pt_args *args, struct pt_err *e) PT_MUST_USE;

/* Sets one option by its long name from text, as the command line does; a boolean takes true,
 * false, yes, no, on, off. -ENOENT for an unknown name, -EINVAL for a value that does not fit. */
int pt_opt_set(struct pt_opts *sets, size_t n, const char *name, const char *text,
               struct pt_err *e) PT_MUST_USE;

struct pt_opt_at pt_opt_find(struct pt_opts *sets, size_t n, const char *name);
/* Whether a person set it (rather than the default). */
bool pt_opt_given(const struct pt_opts *sets, size_t n, const char *name);
/* Prints the current value as the text that sets it. */
void pt_opt_print(const struct pt_opt *opt, const void *values, struct pt_buf *out);
/* Whether `name` is among the rows that this set leaves out. */
bool pt_opt_is_without(const struct pt_opts *o, const char *name);
/* The default of a row in this set, as text; NULL when it is the zero value. */
const char *pt_opt_fallback(const struct pt_opts *o, const struct pt_opt *opt);
/* The help of a row in this set. */
const char *pt_opt_help(const struct pt_opts *o, const struct pt_opt *opt);

/* Adds every value to `into`; only those with all of `flags` (0: all but HIDDEN and LOCAL). Keys
 * are long names with `_` for `-`; times have `_s` appended. 0 or -ENOMEM. */
int pt_opts_to_json(const struct pt_opts *o, unsigned flags, json_t *into) PT_MUST_USE;

/* Reads what pt_opts_to_json wrote, from a peer that is not trusted: exact types, limits of the
 * table, no unknown keys, no control characters. A missing key keeps its value. When one set does
 * not have a key another may: pass them all. On an error values may have changed in part. */
int pt_opts_from_json(struct pt_opts *sets, size_t n, unsigned flags, const json_t *from,
                      struct pt_err *e) PT_MUST_USE;

/* Whether a table is sound: fields of the right size, defaults that parse, names unique and not
 * clashing between the sets, help present. For tests. */
int pt_opts_valid(const struct pt_opts *sets, size_t n, struct pt_err *e) PT_MUST_USE;

/* The nearest of `names` (NULL-terminated) to `word`, or NULL when none is near. */
const char *pt_nearest(const char *word, const char *const *names);

#endif
