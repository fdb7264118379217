/* replay.c: feeds every file of a corpus folder to a fuzz target, as an ordinary TAP test.
 *
 * The same fuzz_NAME.c is a libFuzzer program under clang (tools/fuzz) and, linked with this main,
 * a unit test in every build: an input that once crashed cannot come back unnoticed. A missing or
 * empty folder fails, as a test that feeds nothing proves nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Returns 1 when the file was fed whole. The copy has exactly its size, so that ASan sees the end.
 */
static int feed(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        return 0;
    int fed = 0;
    long size = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    rewind(f);
    uint8_t *bytes = size >= 0 ? malloc(size ? (size_t)size : 1) : NULL;
    if (bytes && fread(bytes, 1, (size_t)size, f) == (size_t)size) {
        LLVMFuzzerTestOneInput(bytes, (size_t)size);
        fed = 1;
    }
    free(bytes);
    fclose(f);
    return fed;
}

int main(int argc, char **argv)
{
    struct dirent **entries = NULL;
    int n = argc == 2 ? scandir(argv[1], &entries, not_hidden, alphasort) : -1;
    if (n <= 0) {
        printf("Bail out! no corpus in %s\n", argc == 2 ? argv[1] : "(one folder expected)");
        return 1;
    }
    int failed = 0;
    printf("1..%d\n", n);
    for (int i = 0; i < n; i++) {
        int fed = feed(argv[1], entries[i]->d_name);
        printf("%sok %d - %s\n", fed ? "" : "not ", i + 1, entries[i]->d_name);
        fflush(stdout);
        failed += !fed;
        free(entries[i]);
    }
    free(entries);
    return failed ? 1 : 0;
}
