/* main.c: finds the command and calls it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

int main(void)
{
    puts("pitot " PT_VERSION);
    return 0;
}
