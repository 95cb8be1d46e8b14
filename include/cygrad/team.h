/* The CPUs on which the threads of a team wake up.

   A thread that sleeps is woken by the first thread of its team. Linux may let it wake up on the CPU of that thread
   although others are idle, because the load that it knows of an idle CPU is old. Then both share one CPU for
   milliseconds. cg_keep_away() excludes this CPU until cg_let_back(). Elsewhere than on Linux these do nothing. */
#ifndef CYGRAD_TEAM_H
#define CYGRAD_TEAM_H

#include "cygrad/platform.h"

#if defined(__linux__) && defined(_GNU_SOURCE)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CG_TEAM = 64 };      /* threads of a team that are kept away, at most */

typedef struct {
    long long ended;            /* cg_now() after the last job */
    pid_t ids[CG_TEAM];         /* of threads by their number in the team; 0: unknown */
    pid_t away[CG_TEAM];        /* the threads that may not use `cpu` meanwhile */
    int n, cpu;                 /* the number of these threads */
} cg_team;

/* Called by thread `i` of a team. */
static inline void cg_enter(cg_team *team, int i) {
    static CG_THREAD_LOCAL pid_t id;
    if (!id) id = (pid_t)syscall(SYS_gettid);
    if (i < CG_TEAM) team->ids[i] = id;
}

/* Allow or forbid a thread to use a CPU. Returns whether this changed anything. Its last CPU is not taken from it. */
static inline int cg_allow(pid_t id, int cpu, int allowed) {
    cpu_set_t cpus;
    if (sched_getaffinity(id, sizeof(cpus), &cpus) || !CPU_ISSET(cpu, &cpus) == !allowed) return 0;
    if (allowed) CPU_SET(cpu, &cpus);
    else CPU_CLR(cpu, &cpus);
    return CPU_COUNT(&cpus) && sched_setaffinity(id, sizeof(cpus), &cpus) == 0;
}

static inline void cg_keep_away(cg_team *team, int threads) {
    team->n = 0;
    team->cpu = sched_getcpu();
    if (team->cpu < 0 || team->cpu >= CPU_SETSIZE) return;
    for (int i = 1; i < threads && i < CG_TEAM; i++) {
        pid_t id = team->ids[i];        /* The signal 0 tests that it is still a thread of this process. */
        if (id && syscall(SYS_tgkill, getpid(), id, 0) == 0 && cg_allow(id, team->cpu, 0)) team->away[team->n++] = id;
    }
}

static inline void cg_let_back(cg_team *team) {
    while (team->n) cg_allow(team->away[--team->n], team->cpu, 1);
}
#else
typedef struct {
    long long ended;
} cg_team;
static inline void cg_enter(cg_team *team, int i) { (void)team, (void)i; }
static inline void cg_keep_away(cg_team *team, int threads) { (void)team, (void)threads; }
static inline void cg_let_back(cg_team *team) { (void)team; }
#endif

/* The team of the calling thread: OpenMP gives each thread that starts jobs a team of its own. */
static inline cg_team *cg_own_team(void) {
    static CG_THREAD_LOCAL cg_team team;
    return &team;
}

#endif
