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
  c->words = 0;
}

void clock_free(Clock *c) {
  free(c->more), free(c->async);
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

// Makes the set reach from word `first` on over `words`; what it has stays.
static void widen(Clock *c, uint32_t first, uint32_t words) {
  uint32_t end = first + words, old_end = c->first + c->words;
  if (c->words) {
    first = first < c->first ? first : c->first;
    end = end > old_end ? end : old_end;
  }
  if (end - first > c->room) {
    c->room = end - first > 2 * c->room ? end - first : 2 * c->room;
    c->async = realloc(c->async, c->room * sizeof *c->async);
    if (!c->async)
      abort();
  }
  uint32_t before = c->words ? c->first - first : 0, after = end - first - before - c->words;
  if (before)
    memmove(c->async + before, c->async, c->words * sizeof *c->async);
  memset(c->async, 0, before * sizeof *c->async);
  memset(c->async + before + c->words, 0, after * sizeof *c->async);
  c->first = first;
  c->words = end - first;
}

void clock_add_async(Clock *c, uint32_t number) {
  c->used = true;
  widen(c, number / 64, 1);
  c->async[number / 64 - c->first] |= UINT64_C(1) << number % 64;
}

static void join_async(Clock *to, const Clock *from) {
  if (!from->words)
    return;
  widen(to, from->first, from->words);
  uint64_t *at = to->async + (from->first - to->first);
  for (uint32_t i = 0; i < from->words; i++)
    at[i] |= from->async[i];
}

bool clock_async_within(const Clock *c, const Clock *of) {
  for (uint32_t i = 0; i < c->words; i++) {
    uint32_t at = c->first + i - of->first; // before the first is far behind the last
    if (c->async[i] & ~(at < of->words ? of->async[at] : 0))
      return false;
  }
  return true;
}

static bool knows_async(const Clock *c, uint32_t number) {
  uint32_t at = number / 64 - c->first; // wraps below the first
  return at < c->words && (c->async[at] >> number % 64 & 1);
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
  join_async(to, from);
  for (int i = 0; i < from->n; i++)
    clock_add(to, from->more[i].who, from->more[i].lanes, from->more[i].upto);
}

void clock_copy(Clock *to, const Clock *from) {
  Clock old = *to;
  *to = *from;
  to->more = old.more, to->cap = old.cap;
  to->async = old.async, to->room = old.room, to->words = 0;
  join_async(to, from);
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
    return knows_async(c, lanes);
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
