/* main.c: finds the command and calls it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"
#include "cmd/measure.h"

#include <stdio.h>
#include <string.h>

static const struct pt_cmd *const commands[] = {&pt_cmd_bw, &pt_cmd_pps, &pt_cmd_lat, &pt_cmd_serve,
                                                &pt_cmd_truth};

static void print_commands(FILE *to)
{
    fputs("usage: pitot COMMAND [options]   (pitot COMMAND --help)\n\n", to);
    for (size_t i = 0; i < PT_COUNT(commands); i++)
        fprintf(to, "  %-8s %s\n", commands[i]->manual->command, commands[i]->manual->summary);
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

int main(int argc, char **argv)
{
    const char *const *words = (const char *const *)argv;
    if (argc < 2) {
        print_commands(stderr);
        return PT_EXIT_USAGE;
    }
    if (strcmp(words[1], "--version") == 0 || strcmp(words[1], "-V") == 0) {
        puts("pitot " PT_VERSION);
        return PT_EXIT_OK;
    }
    if (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0 ||
        strcmp(words[1], "help") == 0) {
        print_commands(stdout);
        return PT_EXIT_OK;
    }
    for (size_t i = 0; i < PT_COUNT(commands); i++)
        if (strcmp(words[1], commands[i]->manual->command) == 0)
            return commands[i]->run(argc - 2, words + 2);
    return unknown(words[1]);
}
