#include "parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

typedef struct Pieces {
  int64_t n;
  RangeFn f;
  void *ctx;
  atomic_int next;
} Pieces;

static void *take_pieces(void *arg) {
  Pieces *p = arg;
  for (;;) {
    int64_t c = atomic_fetch_add(&p->next, 1);
    if (c >= PARALLEL_CHUNKS) return NULL;
    int64_t from = p->n / PARALLEL_CHUNKS * c + p->n % PARALLEL_CHUNKS * c / PARALLEL_CHUNKS;
    int64_t to =
        p->n / PARALLEL_CHUNKS * (c + 1) + p->n % PARALLEL_CHUNKS * (c + 1) / PARALLEL_CHUNKS;
    if (from < to) p->f(p->ctx, (int)c, from, to);
  }
}

void parallel_ranges(int64_t n, int64_t least, RangeFn f, void *ctx) {
  Pieces p = {.n = n, .f = f, .ctx = ctx};
  pthread_t id[PARALLEL_CHUNKS];
  long cores = n < least ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
  int started = 0, wanted = cores > PARALLEL_CHUNKS ? PARALLEL_CHUNKS : (int)cores;
  while (started < wanted - 1 && !pthread_create(&id[started], NULL, take_pieces, &p)) started++;
  take_pieces(&p); // and all of them where no thread could be had
  for (int i = 0; i < started; i++) pthread_join(id[i], NULL);
}
