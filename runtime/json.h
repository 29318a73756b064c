// Json: a small writer.  One object a line, so that results can be appended, cut and read by line.
//
//   Json j;
//   json_begin(&j, arena);            {
//   json_str(&j, "template", "x");      "template":"x",
//   json_array(&j, "values");           "values":[
//   json_int(&j, NULL, 1);                1
//   json_close(&j);                     ]
//   fputs(json_end(&j), out);         }\n
//
// The key is NULL for elements of an array.  Text that is not UTF-8 is mended with U+FFFD; NaN and
// infinity become null, since JSON has neither.
#ifndef PTXSMITH_JSON_H
#define PTXSMITH_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "../gen/arena.h"

enum { JSON_MAX_DEPTH = 16 };

typedef struct Json {
  Arena *arena;
  char *text;
  int len, cap;
  int depth;
  char close[JSON_MAX_DEPTH]; // '}' or ']'
  bool some[JSON_MAX_DEPTH];  // this level already has a member
} Json;

void json_begin(Json *j, Arena *a);
void json_object(Json *j, const char *key);
void json_array(Json *j, const char *key);
void json_close(Json *j);       // the innermost object or array
const char *json_end(Json *j);  // closes all that is open; the line with its newline

void json_str(Json *j, const char *key, const char *s); // NULL: null
void json_int(Json *j, const char *key, int64_t i);
void json_uint(Json *j, const char *key, uint64_t u);
void json_num(Json *j, const char *key, double x); // the shortest text that reads back the same
void json_bool(Json *j, const char *key, bool b);
void json_null(Json *j, const char *key);

#endif
