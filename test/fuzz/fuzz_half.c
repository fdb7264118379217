/* fuzz_half.c: the report of a hostile peer, and ticks on the way.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/half.h"

#include <jansson.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    json_t *o = json_loadb((const char *)bytes, n, 0, NULL);
    struct pt_half half;
    struct pt_point point;
    if (pt_half_from_json(&half, o, NULL) == 0) {
        json_decref(pt_half_to_json(&half));
        pt_half_fini(&half);
    }
    if (pt_point_from_json(&point, o) == 0)
        json_decref(pt_point_to_json(&point));
    json_decref(o);
    return 0;
}
