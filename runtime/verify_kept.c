#include "verify_kept.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verify_data.h"

typedef struct Entry {
  KeptCase c; // first: a KeptCase that was handed out is its Entry
  char *key; // NULL: not kept
  uint64_t bytes, asked; // asked: when last, by the number of questions
  int held;
} Entry;

enum { KEPT_OPERATORS = 4 };

struct Kept {
  Operator *op[KEPT_OPERATORS]; // the latest first
  Entry **v;
  int n, cap, found;
  uint64_t most, bytes, questions;
};

Kept *kept_new(uint64_t most) {
  Kept *k = calloc(1, sizeof *k);
  if (!k) abort();
  k->most = most;
  return k;
}

static void entry_free(Entry *e) {
  inputs_free(&e->c.in);
  reference_free(&e->c.ref);
  free(e->key);
  free(e);
}

void kept_free(Kept *k) {
  if (!k) return;
  for (int i = 0; i < k->n; i++) {
    assert(!k->v[i]->held);
    entry_free(k->v[i]);
  }
  for (int i = 0; i < KEPT_OPERATORS; i++) operator_free(k->op[i]);
  free(k->v);
  free(k);
}

uint64_t kept_room(void) {
  const uint64_t most = 16ull << 30;
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  uint64_t part = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 8 : 0;
  return part < most ? part : most;
}

uint64_t kept_bytes(const Kept *k) { return k->bytes; }
int kept_cases(const Kept *k) { return k->n; }
int kept_found(const Kept *k) { return k->found; }

static uint64_t bytes_of(const KeptCase *c, const char *key) {
  const AttnInputs *in = &c->in;
  const HostTensor *all[] = {&in->q,     &in->k,          &in->v,          &in->slopes,
                             &in->sinks, &in->descale[0], &in->descale[1], &in->descale[2]};
  uint64_t sum = sizeof(Entry) + strlen(key);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (i != 2 || in->v.host != in->k.host) sum += all[i]->bytes; // V may be a part of K
  const int64_t *q = in->q.t.shape;
  uint64_t rows = (uint64_t)(q[0] * q[1] * q[2]);
  if (c->ref.o) sum += rows * (uint64_t)in->v.t.shape[3] * sizeof *c->ref.o;
  if (c->ref.lse) sum += rows * sizeof *c->ref.lse;
  return sum;
}

static void forget(Kept *k, int i) {
  k->bytes -= k->v[i]->bytes;
  entry_free(k->v[i]);
  k->v[i] = k->v[--k->n];
}

// The one that was asked for longest ago makes room.  False: those that are held leave too little.
static bool make_room(Kept *k, uint64_t bytes) {
  while (k->bytes + bytes > k->most) {
    int oldest = -1;
    for (int i = 0; i < k->n; i++)
      if (!k->v[i]->held && (oldest < 0 || k->v[i]->asked < k->v[oldest]->asked)) oldest = i;
    if (oldest < 0) return false;
    forget(k, oldest);
  }
  return true;
}

static void keep(Kept *k, const char *key, Entry *e) {
  e->bytes = bytes_of(&e->c, key);
  if (e->bytes > k->most || !make_room(k, e->bytes)) return;
  if (k->n == k->cap) {
    int cap = k->cap ? 2 * k->cap : 16;
    Entry **grown = realloc(k->v, sizeof *grown * (size_t)cap);
    if (!grown) return;
    k->v = grown;
    k->cap = cap;
  }
  if (!(e->key = strdup(key))) return;
  e->asked = k->questions;
  k->bytes += e->bytes;
  k->v[k->n++] = e;
}

static Entry *find(Kept *k, const char *key) {
  k->questions++;
  for (int i = 0; i < k->n; i++)
    if (!strcmp(k->v[i]->key, key)) {
      k->found++;
      k->v[i]->asked = k->questions;
      return k->v[i];
    }
  return NULL;
}

Status kept_case(Kept *k, const char *key, CaseFn make, void *ctx, const KeptCase **out, Diag *d) {
  *out = NULL;
  Entry *e = k && key ? find(k, key) : NULL;
  if (!e) {
    if (!(e = calloc(1, sizeof *e))) return diag_fail(d, ST_INPUT, "out of host memory");
    e->c.every = 1;
    Status st = make(ctx, &e->c, d);
    if (st != ST_OK) return entry_free(e), st;
    if (k && key) keep(k, key, e);
  }
  e->held++;
  *out = &e->c;
  return ST_OK;
}

void kept_release(const KeptCase *c) {
  Entry *e = (Entry *)(uintptr_t)c;
  if (e && --e->held == 0 && !e->key) entry_free(e);
}

static bool same_texts(const Operator *a, const Operator *b) {
  bool same = a->nsteps == b->nsteps;
  for (int i = 0; i < a->nsteps && same; i++)
    same = !strcmp(a->step[i].variant->ptx->text, b->step[i].variant->ptx->text);
  return same;
}

Operator *kept_operator(const Kept *k, const Device *dev, const Operator *like) {
  for (int i = 0; k && i < KEPT_OPERATORS; i++)
    if (k->op[i] && k->op[i]->step[0].kernel->dev == dev && same_texts(k->op[i], like))
      return k->op[i];
  return NULL;
}

bool kept_take_operator(Kept *k, Operator *op) {
  if (!k) return false;
  operator_free(k->op[KEPT_OPERATORS - 1]);
  memmove(&k->op[1], &k->op[0], sizeof k->op[0] * (KEPT_OPERATORS - 1));
  k->op[0] = op;
  return true;
}
