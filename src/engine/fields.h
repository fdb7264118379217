/* fields.h: plain structs to JSON objects and back, by a table of their fields.
 *
 * For messages between two ends of a test. The reader trusts nobody: exact types, finite numbers,
 * no negative counts; what is missing stays zero, what is unknown is passed over (a newer peer).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_FIELDS_H
#define PT_ENGINE_FIELDS_H

#include "base/types.h"

#include <jansson.h>

enum pt_field_type {
    PT_FIELD_U64,
    PT_FIELD_U32,
    PT_FIELD_I64,
    PT_FIELD_REAL,
    PT_FIELD_BOOL,
    PT_FIELD_INT,
    PT_FIELD_TEXT
};

struct pt_field {
    const char *name; /* NULL ends the table */
    size_t offset;
    enum pt_field_type type;
    size_t size; /* TEXT: of the array */
};

#define PT_FIELD(strct, member, of_type)                                                           \
    {                                                                                              \
        .name = #member, .offset = offsetof(strct, member), .type = (of_type),                     \
        .size = sizeof(((strct *)0)->member)                                                       \
    }

/* New reference, NULL when out of memory. Zero values are left out. */
json_t *pt_fields_to_json(const struct pt_field *table, const void *from);
/* -EPROTO: a field of the wrong type or range. */
int pt_fields_from_json(const struct pt_field *table, void *into, const json_t *from);

#endif
