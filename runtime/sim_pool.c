// sim_pool.c: host threads that stay between launches.
#include <stdlib.h>
#include <unistd.h>

#include "sim.h"

typedef struct Worker { SimPool *pool; int index; pthread_t thread; } Worker;

struct SimPool {
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  Worker *workers; int nworkers; // besides the caller
  void (*job)(void *arg, int worker);
  void *arg;
  int wanted, running;
  uint64_t generation;
  bool end;
};

static void *worker_main(void *arg) {
  Worker *me = arg;
  SimPool *p = me->pool;
  uint64_t seen = 0;
  pthread_mutex_lock(&p->lock);
  while (!p->end) {
    if (p->generation == seen) {
      pthread_cond_wait(&p->work, &p->lock);
      continue;
    }
    seen = p->generation;
    if (me->index >= p->wanted)
      continue;
    pthread_mutex_unlock(&p->lock);
    p->job(p->arg, me->index);
    pthread_mutex_lock(&p->lock);
    if (--p->running == 0)
      pthread_cond_signal(&p->done);
  }
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

SimPool *sim_pool_new(void) {
  SimPool *p = calloc(1, sizeof *p);
  if (!p)
    abort();
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->work, NULL);
  pthread_cond_init(&p->done, NULL);
  return p;
}

void sim_pool_free(SimPool *p) {
  pthread_mutex_lock(&p->lock);
  p->end = true;
  pthread_cond_broadcast(&p->work);
  pthread_mutex_unlock(&p->lock);
  for (int i = 0; i < p->nworkers; i++)
    pthread_join(p->workers[i].thread, NULL);
  pthread_mutex_destroy(&p->lock);
  pthread_cond_destroy(&p->work);
  pthread_cond_destroy(&p->done);
  free(p->workers);
  free(p);
}

// Starts the threads for `n` workers once.  A machine that gives fewer runs with fewer.
static int start(SimPool *p, int n) {
  if (n > 1 && !p->workers) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int most = n > cores ? n : (int)cores;
    p->workers = calloc((size_t)most, sizeof *p->workers);
    for (int i = 0; p->workers && i < most - 1; i++) {
      p->workers[i] = (Worker){.pool = p, .index = i + 1};
      if (pthread_create(&p->workers[i].thread, NULL, worker_main, &p->workers[i]))
        break;
      p->nworkers++;
    }
  }
  return n - 1 < p->nworkers ? n : p->nworkers + 1;
}

void sim_pool_run(SimPool *p, int n, void (*job)(void *arg, int worker), void *arg) {
  n = start(p, n);
  if (n <= 1) {
    job(arg, 0);
    return;
  }
  pthread_mutex_lock(&p->lock);
  p->job = job;
  p->arg = arg;
  p->wanted = n;
  p->running = n - 1;
  p->generation++;
  pthread_cond_broadcast(&p->work);
  pthread_mutex_unlock(&p->lock);
  job(arg, 0);
  pthread_mutex_lock(&p->lock);
  while (p->running)
    pthread_cond_wait(&p->done, &p->lock);
  pthread_mutex_unlock(&p->lock);
}
