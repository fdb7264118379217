/* page.c: see page.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "sink/page.h"

#include "sink/say.h"

#include <stdio.h>
#include <string.h>

static const char *const ink_codes[] = {"",         "\033[1m",  "\033[2m",
                                        "\033[31m", "\033[33m", "\033[32m"};

const char *pt_page_say(const struct pt_page *p, const char *english)
{
    return pt_say(p->style->chinese, english);
}

void pt_page_ink(struct pt_page *p, enum pt_ink ink)
{
    if (p->style->color)
        pt_buf_adds(p->out, ink == PT_INK_PLAIN ? "\033[0m" : ink_codes[ink]);
}

void pt_page_text(struct pt_page *p, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        /* C1 controls arrive as 0xc2 0x80 to 0xc2 0x9f. */
        bool c1 = c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;
        if (*c < 0x20 || *c == 0x7f || c1) {
            pt_buf_adds(p->out, "?");
            c += c1 ? 1 : 0;
        } else {
            pt_buf_add(p->out, c, 1);
        }
    }
}

static void pad(struct pt_page *p, size_t n)
{
    pt_buf_addf(p->out, "%*s", (int)n, "");
}

void pt_page_heading(struct pt_page *p, const char *english)
{
    pt_buf_adds(p->out, "\n");
    pt_page_ink(p, PT_INK_BOLD);
    pt_page_text(p, pt_page_say(p, english));
    pt_page_ink(p, PT_INK_PLAIN);
    pt_buf_adds(p->out, "\n");
}

void pt_page_files(struct pt_page *p)
{
    const struct {
        const char *name, *path;
    } file[] = {{"JSON", p->style->json}, {"CSV", p->style->csv}, {"HTML", p->style->html}};
    bool any = false;
    for (size_t i = 0; i < PT_COUNT(file); i++) {
        if (!file[i].path)
            continue;
        if (!any)
            pt_buf_adds(p->out, "\n");
        any = true;
        pt_page_row(p, PT_INK_DIM, file[i].name, file[i].path);
    }
}

void pt_page_row(struct pt_page *p, enum pt_ink ink, const char *english, const char *value)
{
    char lead[256];
    const char *label = pt_page_say(p, english);
    size_t used = 2 + pt_text_columns(label);
    snprintf(lead, sizeof(lead), "  %.200s%*s", label,
             used < PT_PAGE_LABEL ? (int)(PT_PAGE_LABEL - used) : 2, "");
    pt_page_sentence(p, ink, lead, value);
}

void pt_page_sentence(struct pt_page *p, enum pt_ink ink, const char *lead, const char *text)
{
    size_t indent = pt_text_columns(lead), at = indent;
    bool first = true;
    if (ink != PT_INK_PLAIN)
        pt_page_ink(p, ink);
    pt_page_text(p, lead);
    while (*text) {
        char word[256];
        size_t n = strcspn(text, " ");
        size_t part = n < sizeof(word) ? n : sizeof(word) - 1;
        memcpy(word, text, part);
        word[part] = '\0';
        size_t width = pt_text_columns(word);
        if (!first && at + 1 + width > PT_PAGE_COLUMNS) {
            pt_buf_adds(p->out, "\n");
            pad(p, indent);
            at = indent;
        } else if (!first) {
            pt_buf_adds(p->out, " ");
            at++;
        }
        pt_page_text(p, word);
        at += width;
        first = false;
        text += part;
        text += strspn(text, " ");
    }
    if (ink != PT_INK_PLAIN)
        pt_page_ink(p, PT_INK_PLAIN);
    pt_buf_adds(p->out, "\n");
}

void pt_page_table(struct pt_page *p, const struct pt_page_table *t)
{
    size_t width[PT_PAGE_CELLS] = {0};
    for (size_t r = 0; r < t->rows; r++) {
        for (size_t c = 0; c < t->columns; c++) {
            size_t n = pt_text_columns(t->cell[r][c]);
            width[c] = n > width[c] ? n : width[c];
        }
    }
    for (size_t r = 0; r < t->rows; r++) {
        pt_buf_adds(p->out, "  ");
        if (t->ink[r] != PT_INK_PLAIN)
            pt_page_ink(p, t->ink[r]);
        for (size_t c = 0; c < t->columns; c++) {
            size_t space = width[c] - pt_text_columns(t->cell[r][c]);
            if (c)
                pad(p, space + 2);
            pt_page_text(p, t->cell[r][c]);
            if (!c && t->columns > 1)
                pad(p, space);
        }
        if (t->ink[r] != PT_INK_PLAIN)
            pt_page_ink(p, PT_INK_PLAIN);
        pt_buf_adds(p->out, "\n");
    }
}
