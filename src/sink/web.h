/* web.h: the front end of the reports, web/, as bytes inside the program; tools/embed makes them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SINK_WEB_H
#define PT_SINK_WEB_H

#include <stddef.h>

/* Not terminated. */
extern const char pt_web_style[], pt_web_script[];
extern const size_t pt_web_style_size, pt_web_script_size;

#endif
