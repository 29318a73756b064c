// sim_clock.c: vector clocks.
#include "sim_clock.h"

#include <stdlib.h>
#include <string.h>

enum { WHO_PLACES = 64 };

void clock_reset(Clock *c, uint64_t cta, int nwarps, uint32_t base) {
  c->used = false;
  c->cta = cta;
  c->nwarps = nwarps;
  c->floor = base;
  for (int i = 0; i < nwarps; i++)
    c->warp[i] = base;
  c->n = 0;
}

void clock_free(Clock *c) {
  free(c->more);
  *c = (Clock){0};
}

// The first entry that is not before (who, lanes).
static int find(const Clock *c, uint64_t who, uint32_t lanes) {
  int low = 0, high = c->n;
  while (low < high) {
    int mid = (low + high) / 2;
    const Known *k = &c->more[mid];
    if (k->who < who || (k->who == who && k->lanes < lanes))
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

static void reserve(Clock *c, int n) {
  if (n <= c->cap)
    return;
  c->cap = n > 2 * c->cap ? n : 2 * c->cap;
  c->more = realloc(c->more, (size_t)c->cap * sizeof *c->more);
  if (!c->more)
    abort();
}

static void raise_warp(Clock *c, int warp, uint32_t upto) {
  if (upto <= c->warp[warp])
    return;
  bool least = c->warp[warp] == c->floor;
  c->warp[warp] = upto;
  for (int i = 0; least && i < c->nwarps; i++)
    c->floor = i == 0 || c->warp[i] < c->floor ? c->warp[i] : c->floor;
}

void clock_add(Clock *c, uint64_t who, uint32_t lanes, uint32_t upto) {
  c->used = true;
  bool own = who / WHO_PLACES == c->cta && who % WHO_PLACES < SIM_MAX_WARPS;
  if (own) {
    int warp = (int)(who % WHO_PLACES);
    if (lanes == UINT32_MAX)
      raise_warp(c, warp, upto);
    if (upto <= c->warp[warp])
      return;
  }
  int at = find(c, who, lanes);
  if (at < c->n && c->more[at].who == who && c->more[at].lanes == lanes) {
    if (upto > c->more[at].upto)
      c->more[at].upto = upto;
    return;
  }
  reserve(c, c->n + 1);
  memmove(&c->more[at + 1], &c->more[at], (size_t)(c->n - at) * sizeof *c->more);
  c->more[at] = (Known){who, lanes, upto};
  c->n++;
}

// The warps of another CTA: what all of them are known up to, then those that are known further.
static void join_foreign(Clock *to, const Clock *from) {
  if (from->floor)
    clock_add(to, who_of(from->cta, WHO_ALL), UINT32_MAX, from->floor);
  for (int i = 0; i < from->nwarps; i++)
    if (from->warp[i] > from->floor)
      clock_add(to, who_of(from->cta, i), UINT32_MAX, from->warp[i]);
}

void clock_join(Clock *to, const Clock *from) {
  if (!from->used)
    return;
  to->used = true;
  if (to->cta == from->cta)
    for (int i = 0; i < from->nwarps; i++)
      raise_warp(to, i, from->warp[i]);
  else
    join_foreign(to, from);
  for (int i = 0; i < from->n; i++)
    clock_add(to, from->more[i].who, from->more[i].lanes, from->more[i].upto);
}

void clock_copy(Clock *to, const Clock *from) {
  Known *more = to->more;
  int cap = to->cap;
  *to = *from;
  to->more = more;
  to->cap = cap;
  reserve(to, from->n);
  if (from->n)
    memcpy(to->more, from->more, (size_t)from->n * sizeof *to->more);
}

static bool knows_exactly(const Clock *c, uint64_t who, uint32_t lanes, uint32_t event) {
  int at = find(c, who | WHO_EXACT, lanes);
  return at < c->n && c->more[at].who == (who | WHO_EXACT) && c->more[at].lanes == lanes &&
         c->more[at].upto == event;
}

bool clock_knows(const Clock *c, uint64_t who, uint32_t lanes, uint32_t event) {
  uint64_t cta = who / WHO_PLACES, place = who % WHO_PLACES;
  if (place == WHO_ASYNC)
    return knows_exactly(c, who, event, event);
  if (cta == c->cta && event <= c->warp[place])
    return true;
  uint32_t missing = lanes;
  for (int i = find(c, who_of(cta, 0), 0); i < c->n && c->more[i].who / WHO_PLACES == cta; i++) {
    uint64_t at = c->more[i].who % WHO_PLACES;
    if ((at == place || at == WHO_ALL) && c->more[i].upto >= event)
      missing &= ~c->more[i].lanes;
  }
  return !missing || knows_exactly(c, who, lanes, event);
}
