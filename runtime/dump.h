// Dump: views of one PTX text.
#ifndef PTXSMITH_DUMP_H
#define PTXSMITH_DUMP_H

#include <stdio.h>

#include "../gen/variant.h"

typedef struct DumpSubject {
  const char *name;   // what a variant is made of, or a file's name
  const Source *ptx;
  const LineMap *map; // NULL for a file
  const PtxModule *module;
  Variant *variant;   // NULL for a file
} DumpSubject;

// Each PTX line beside the template line that it came from, innermost first.
void dump_annotated(Arena *a, const DumpSubject *s, bool json, FILE *out);
// Instruction mix, registers, memory, the hot loop, for every entry.
void dump_stats(Arena *a, const DumpSubject *s, bool json, FILE *out);
// Machine code by ptxas and nvdisasm or cuobjdump.  ST_DEVICE when they are not on the PATH.
Status dump_sass(Arena *a, const DumpSubject *s, bool json, FILE *out, Diag *d);

#endif
