// Wire: lines that programs say to each other (worker.h) and fields of a store's results:
//     VERB <tab> key=value <tab> key=value ...
// A value's tabs, newlines and % are written as %09 %0A %25.
#ifndef PTXSMITH_WIRE_H
#define PTXSMITH_WIRE_H

#include "../gen/variant.h"

char *wire_line(Arena *a, const char *verb, const Params *fields); // with its newline
// False when the line is none; *verb and the fields live in `a`.
bool wire_parse(Arena *a, const char *line, const char **verb, Params *fields);
// A field with a number, whatever the locale.
void wire_put_number(Arena *a, Params *fields, const char *name, double x);
double wire_number(const Params *fields, const char *name); // 0 when absent

#endif
