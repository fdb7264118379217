/* main.c: finds the command and calls it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"
#include "cmd/measure.h"
#include "cmd/output.h"
#include "cmd/overview.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct pt_cmd *const commands[] = {
    &pt_cmd_bw,     &pt_cmd_pps,   &pt_cmd_lat,   &pt_cmd_run,    &pt_cmd_host,
    &pt_cmd_doctor, &pt_cmd_serve, &pt_cmd_truth, &pt_cmd_report, &pt_cmd_compare};

/* The program as a whole, as text for a terminal or as a man page. */
static void print_overview(FILE *to, bool man)
{
    struct pt_buf out;
    pt_buf_init(&out, (size_t)64 << 10);
    if (man)
        pt_overview_man(commands, PT_COUNT(commands), &out);
    else
        pt_overview_help(commands, PT_COUNT(commands), &out);
    fputs(pt_buf_str(&out), to);
    pt_buf_fini(&out);
}

static int unknown(const char *word)
{
    const char *names[PT_COUNT(commands) + 1] = {0};
    for (size_t i = 0; i < PT_COUNT(commands); i++)
        names[i] = commands[i]->manual->command;
    const char *near = pt_nearest(word, names);
    fprintf(stderr, "pitot: there is no command \"%s\"%s%s%s; `pitot --help` lists them\n", word,
            near ? ", did you mean \"" : "", near ? near : "", near ? "\"" : "");
    return PT_EXIT_USAGE;
}

static const struct pt_cmd *find(const char *word)
{
    for (size_t i = 0; i < PT_COUNT(commands); i++) {
        if (!strcmp(word, commands[i]->manual->command))
            return commands[i];
    }
    return NULL;
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
    return !strcmp(word, a) || !strcmp(word, b);
}

/* `pitot help [COMMAND]`, `pitot --man [COMMAND]`: the page of a command is made by its own table.
 */
static int print_page(const char *word, const char *option)
{
    const struct pt_cmd *cmd = word ? find(word) : NULL;
    if (cmd)
        return cmd->run(1, &option);
    if (word)
        return unknown(word);
    print_overview(stdout, !strcmp(option, "--man"));
    return PT_EXIT_OK;
}

static int run_command(int argc, const char *const *words)
{
    if (argc < 2) {
        print_overview(stderr, false);
        return PT_EXIT_USAGE;
    }
    const char *second = argc > 2 ? words[2] : NULL;
    if (is_one_of(words[1], "--version", "-V")) {
        puts("pitot " PT_VERSION);
        return PT_EXIT_OK;
    }
    if (is_one_of(words[1], "--help", "-h") || !strcmp(words[1], "help"))
        return print_page(second, "--help");
    if (!strcmp(words[1], "--man"))
        return print_page(second, "--man");
    const struct pt_cmd *cmd = find(words[1]);
    return cmd ? cmd->run(argc - 2, words + 2) : unknown(words[1]);
}

int main(int argc, char **argv)
{
    int status = run_command(argc, (const char *const *)argv);
    bool lost = fflush(stdout) != 0 || ferror(stdout) != 0;
    if (!lost || pt_output_reader_left(STDOUT_FILENO))
        return status;
    fputs("pitot: not all of the text could be written to the standard output\n", stderr);
    return status == PT_EXIT_OK ? PT_EXIT_FAILED : status;
}
