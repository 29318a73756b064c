// Diff: what changed between two texts, by lines, as a unified diff.
#ifndef PTXSMITH_DIFF_H
#define PTXSMITH_DIFF_H

#include "../gen/arena.h"

// "" when they are the same; else "--- name\n+++ name\n" and hunks with three lines of context.
char *diff_text(Arena *a, const char *name_a, const char *text_a, const char *name_b,
                const char *text_b);

#endif
