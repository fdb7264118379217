/* output.c: see output.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/output.h"

#include "sink/run.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIVE_CEILING ((size_t)4096)

const struct pt_reports pt_reports_test = {&pt_sink_text, &pt_sink_csv_series, &pt_sink_csv};
const struct pt_reports pt_reports_run = {&pt_sink_run_text, &pt_sink_run_csv_series,
                                          &pt_sink_run_csv};

/* As gettext does: the first of the three that is set and not empty. */
static bool environment_is_chinese(void)
{
    static const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    for (size_t i = 0; i < PT_COUNT(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return !strncmp(value, "zh", 2);
    }
    return false;
}

static bool is_stdout(const char *path)
{
    return !strcmp(path, "-");
}

static bool wants_color(const struct pt_reporting *c, bool terminal)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return terminal && !c->no_color && !(no_color && *no_color) && term && *term &&
           strcmp(term, "dumb") != 0;
}

void pt_output_init(struct pt_output *o, const struct pt_reporting *c)
{
    *o = (struct pt_output){.asked = c, .reports = &pt_reports_test};
    bool taken = is_stdout(c->json) || is_stdout(c->csv) || is_stdout(c->html);
    o->fd = taken ? STDERR_FILENO : STDOUT_FILENO;
    bool terminal = isatty(o->fd) == 1;
    o->color = wants_color(c, terminal);
    o->chinese = c->lang == PT_LANG_ZH || (c->lang == PT_LANG_AUTO && environment_is_chinese());
    o->progress =
        (struct pt_progress){.terminal = terminal, .color = o->color, .chinese = o->chinese};
}

static int put(int fd, const struct pt_buf *text)
{
    const char *p = pt_buf_str(text);
    size_t left = text->len;
    while (left) {
        ssize_t n = write(fd, p, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        p += n;
        left -= (size_t)n;
    }
    return 0;
}

/* Live lines are lost silently when nobody can read them. */
static void show(int fd, const struct pt_buf *text)
{
    (void)put(fd, text);
}

/* A reader who closed the pipe has seen enough; a full disk is a loss. */
int pt_output_print(const struct pt_output *o, const struct pt_buf *text)
{
    int rc = put(o->fd, text);
    if (rc == 0 || rc == -EPIPE)
        return 0;
    fprintf(stderr, "pitot: cannot print the report: %s\n", pt_strerror(rc));
    return rc;
}

bool pt_output_reader_left(int fd)
{
    struct pollfd p = {.fd = fd};
    return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

void pt_output_live(struct pt_output *o, pt_ns elapsed, const struct pt_progress_figure *figures,
                    size_t n, pt_ns since_start, pt_ns total)
{
    if (o->asked->quiet)
        return;
    struct pt_buf out;
    pt_buf_init(&out, LIVE_CEILING);
    pt_progress_line(&o->progress, elapsed, figures, n, &out);
    pt_progress_bar(&o->progress, since_start, total, &out);
    show(o->fd, &out);
    pt_buf_fini(&out);
}

void pt_output_text(struct pt_output *o, const struct pt_buf *text)
{
    pt_output_quiet_down(o);
    show(o->fd, text);
}

void pt_output_say(struct pt_output *o, const char *line)
{
    if (o->asked->quiet)
        return;
    struct pt_buf out;
    pt_buf_init(&out, LIVE_CEILING);
    pt_progress_end(&o->progress, &out);
    pt_buf_addf(&out, "%s\n", line);
    show(o->fd, &out);
    pt_buf_fini(&out);
}

void pt_output_quiet_down(struct pt_output *o)
{
    struct pt_buf out;
    pt_buf_init(&out, LIVE_CEILING);
    pt_progress_end(&o->progress, &out);
    show(o->fd, &out);
    pt_buf_fini(&out);
}

/* The document somewhere else than where something was asked for. */
static void rescue(const struct pt_result *r)
{
    struct pt_buf json;
    pt_buf_init(&json, PT_SINK_CEILING);
    if (pt_sink_json.render(r, &(struct pt_sink_style){0}, &json, NULL) < 0) {
        pt_buf_fini(&json);
        return;
    }
    const char *dir = getenv("TMPDIR"), *id = pt_result_get_str(r, "id");
    char path[PT_PATH_LEN];
    snprintf(path, sizeof(path), "%s/pitot-%s.json", dir && *dir ? dir : "/tmp",
             id ? id : "result");
    if (pt_sink_store(path, &json, NULL) == 0) {
        fprintf(stderr, "pitot: the result is in %s instead\n", path);
    } else {
        fputs("pitot: the result follows here instead\n", stderr);
        show(STDERR_FILENO, &json);
    }
    pt_buf_fini(&json);
}

/* Renders with one sink into one place. */
static int store(const struct pt_output *o, const struct pt_result *r, const struct pt_sink *sink,
                 const char *path)
{
    struct pt_sink_style style = {.color = o->color, .chinese = o->chinese};
    struct pt_buf out;
    struct pt_err e = {0};
    pt_buf_init(&out, PT_SINK_CEILING);
    int rc = sink->render(r, &style, &out, &e);
    if (!rc)
        rc = pt_sink_store(path, &out, &e);
    if (rc < 0)
        fprintf(stderr, "pitot: %s\n", e.text);
    pt_buf_fini(&out);
    return rc;
}

/* "a/b.csv" to "a/b.summary.csv", "a/b" to "a/b.summary", "-" stays. */
static void summary_path(const char *path, char *out, size_t cap)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    if (is_stdout(path))
        snprintf(out, cap, "-");
    else if (dot && dot != base)
        snprintf(out, cap, "%.*s.summary%s", (int)(dot - path), path, dot);
    else
        snprintf(out, cap, "%s.summary", path);
}

/* The directory of a path, and what it is called in there. */
static const char *directory_of(const char *path, char *dir, size_t cap)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        snprintf(dir, cap, ".");
    else
        snprintf(dir, cap, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return slash ? slash + 1 : path;
}

/* Whether two names are of one file, which need not be there yet. A device is no file: it can take
 * both. */
static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    bool a_there = !stat(a, &x), b_there = !stat(b, &y);
    if (a_there != b_there)
        return false;
    if (a_there)
        return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    char in_a[PT_PATH_LEN], in_b[PT_PATH_LEN];
    if (strcmp(directory_of(a, in_a, sizeof(in_a)), directory_of(b, in_b, sizeof(in_b))) != 0)
        return false;
    return !stat(in_a, &x) && !stat(in_b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* What is known before an hour of measurement need not be told after it. */
static int check_writable(const char *option, const char *path, struct pt_err *e)
{
    struct stat st;
    char dir[PT_PATH_LEN];
    bool exists = !stat(path, &st);
    if (exists && S_ISDIR(st.st_mode))
        return pt_fail(e, -EINVAL, "--%s %s: that is a directory; give a file in it a name", option,
                       path);
    directory_of(path, dir, sizeof(dir));
    if (access(exists ? path : dir, W_OK) < 0)
        return pt_fail(e, -EINVAL, "--%s %s: %s: %s", option, path, exists ? path : dir,
                       pt_strerror(-errno));
    return 0;
}

int pt_output_check(const struct pt_reporting *c, const char *input, struct pt_err *e)
{
    char summary[PT_PATH_LEN + 16];
    summary_path(c->csv, summary, sizeof(summary));
    const struct {
        const char *option, *path;
    } file[] = {{"json", c->json}, {"csv", c->csv}, {"html", c->html}, {"csv", summary}};
    size_t n = PT_COUNT(file) - (c->csv[0] ? 0 : 1);
    for (size_t i = 0; i < n; i++) {
        if (!file[i].path[0] || is_stdout(file[i].path))
            continue;
        for (size_t k = i + 1; k < n; k++) {
            if (!file[k].path[0] || !same_file(file[i].path, file[k].path))
                continue;
            if (file[k].path == summary)
                return pt_fail(e, -EINVAL,
                               "--%s %s is where --csv %s stores its totals: give one another name",
                               file[i].option, file[i].path, c->csv);
            return pt_fail(e, -EINVAL, "--%s and --%s name the same file: give one another name",
                           file[i].option, file[k].option);
        }
        if (input && same_file(file[i].path, input))
            return pt_fail(e, -EINVAL, "--%s %s would overwrite what is read: give it another name",
                           file[i].option, file[i].path);
        int rc = check_writable(file[i].option, file[i].path, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int store_csv(const struct pt_output *o, const struct pt_result *r, const char *path)
{
    char summary[PT_PATH_LEN + 16];
    summary_path(path, summary, sizeof(summary));
    int rc = store(o, r, o->reports->series, path);
    if (is_stdout(path) && rc == 0)
        fputs("\r\n", stdout);
    fflush(stdout);
    int second = store(o, r, o->reports->totals, summary);
    return rc ? rc : second;
}

static const char *stored(const char *path, int rc)
{
    return path[0] && !is_stdout(path) && rc == 0 ? path : NULL;
}

int pt_output_result(struct pt_output *o, const struct pt_result *r)
{
    const struct pt_reporting *c = o->asked;
    int rc = 0, csv = 0, html = 0;
    pt_output_quiet_down(o);
    /* Files first: the text may be cut off by a pipe that is closed, the figures must not. */
    if (c->json[0])
        rc = store(o, r, &pt_sink_json, c->json);
    if (c->csv[0])
        csv = store_csv(o, r, c->csv);
    if (c->html[0])
        html = store(o, r, &pt_sink_html, c->html);
    /* Of what was measured one document is kept, from which the rest can be made again. */
    bool kept = o->kept || (c->json[0] && rc == 0);
    if (!kept && (rc || csv || html))
        rescue(r);
    struct pt_sink_style style = {.color = o->color, .chinese = o->chinese};
    style.json = stored(c->json, rc);
    style.csv = stored(c->csv, csv);
    style.html = stored(c->html, html);
    struct pt_buf text;
    struct pt_err e = {0};
    pt_buf_init(&text, PT_SINK_CEILING);
    if (o->reports->text->render(r, &style, &text, &e) < 0)
        fprintf(stderr, "pitot: %s\n", e.text);
    int text_rc = pt_output_print(o, &text);
    pt_buf_fini(&text);
    return rc ? rc : csv ? csv : html ? html : text_rc;
}
