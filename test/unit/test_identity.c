/* test_identity.c: the machine is recognised; small sysctls are read as they stand.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/types.h"
#include "os/identity.h"
#include "os/sysctl.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void this_machine_is_itself(void **state)
{
    (void)state;
    struct pt_identity a, b;
    char host[65];
    pt_identity_read(&a);
    pt_identity_read(&b);
    assert_int_equal(gethostname(host, sizeof(host)), 0);
    assert_string_equal(a.host, host);
    assert_int_equal(strlen(a.boot_id), 36);
    assert_true(a.kernel[0] && a.arch[0] && a.cpus >= 1 && a.net_ns > 0);
    assert_true(pt_identity_same_host(&a, &b));
    assert_true(pt_identity_same_net(&a, &b));
    b.net_ns++;
    assert_true(pt_identity_same_host(&a, &b));
    assert_false(pt_identity_same_net(&a, &b));
    b = a;
    b.boot_id[0] ^= 1;
    assert_false(pt_identity_same_host(&a, &b));
    a.boot_id[0] = b.boot_id[0] = 0;
    assert_false(pt_identity_same_host(&a, &b));
}

static void sysctls_are_read(void **state)
{
    (void)state;
    char text[64], tiny[2];
    int64_t v[4];
    assert_int_equal(pt_sysctl_text("kernel/ostype", text, sizeof(text)), 0);
    assert_string_equal(text, "Linux");
    assert_int_equal(pt_sysctl_text("kernel/ostype", tiny, sizeof(tiny)), -EMSGSIZE);
    assert_string_equal(tiny, "");
    assert_int_equal(pt_sysctl_text("no/such/thing", text, sizeof(text)), -ENOENT);
    assert_int_equal(pt_sysctl_numbers("net/ipv4/ip_local_port_range", v, 4), 2);
    assert_true(v[0] >= 1 && v[0] <= v[1] && v[1] <= 65535);
    assert_int_equal(pt_sysctl_numbers("net/ipv4/ip_local_port_range", v, 1), 1);
    assert_int_equal(pt_sysctl_numbers("kernel/ostype", v, 4), -EINVAL);
    assert_true(pt_sysctl_number("net/core/rmem_max", -1) > 0);
    assert_int_equal(pt_sysctl_number("no/such/thing", -7), -7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_machine_is_itself),
        cmocka_unit_test(sysctls_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
