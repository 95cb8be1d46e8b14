/* A preloaded library, independent of cygrad: it records which pages of reserved address ranges a process commits, and
   makes the n-th of these calls fail, or all from the n-th on. test_arena.py compiles it, runs programs with it and
   compares its count with cygrad's.

   A range counts from its reservation: mmap() with PROT_NONE and MAP_NORESERVE without a fixed address. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096
#define RANGES 256

static struct { uintptr_t base; size_t size; unsigned char *page; } range[RANGES];
static int ranges;
static long committed, most, calls, fail_at, all_after;
static long failed[3];
enum { RESERVE, COMMIT, DECOMMIT };

static void *(*real_mmap)(void *, size_t, int, int, int, off_t);
static int (*real_munmap)(void *, size_t);
static int (*real_mprotect)(void *, size_t, int);

__attribute__((constructor)) static void begin(void)
{
    real_mmap = dlsym(RTLD_NEXT, "mmap");
    real_munmap = dlsym(RTLD_NEXT, "munmap");
    real_mprotect = dlsym(RTLD_NEXT, "mprotect");
}

static int fails(int kind)
{
    int now = ++calls == fail_at || (all_after && fail_at && calls > fail_at);
    failed[kind] += now;
    return now;
}

/* Mark the pages of [p, p + n) in a range as committed or not. Returns whether there are any. */
static int set(uintptr_t p, size_t n, int now)
{
    int k, found = 0;
    for (k = 0; k < ranges; k++) {
        uintptr_t at = p > range[k].base ? p : range[k].base;
        uintptr_t end = p + n < range[k].base + range[k].size ? p + n : range[k].base + range[k].size;
        for (; at < end; at += PAGE) {
            unsigned char *page = &range[k].page[(at - range[k].base) / PAGE];
            committed += (now - *page) * PAGE;
            *page = now;
            if (committed > most) most = committed;
            found = 1;
        }
    }
    return found;
}

void *mmap(void *where, size_t n, int prot, int flags, int file, off_t offset)
{
    int reserves = prot == PROT_NONE && (flags & MAP_NORESERVE) && !(flags & MAP_FIXED);
    int ours = reserves || ((flags & MAP_FIXED) && prot == PROT_NONE && (flags & MAP_NORESERVE));
    void *p;
    if (!real_mmap) begin();
    if (ours && fails(reserves ? RESERVE : DECOMMIT)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    p = real_mmap(where, n, prot, flags, file, offset);
    if (p == MAP_FAILED) return p;
    if (reserves && ranges < RANGES) {
        range[ranges].base = (uintptr_t)p;
        range[ranges].size = n;
        range[ranges++].page = calloc(n / PAGE + 1, 1);
    } else if (flags & MAP_FIXED) {
        set((uintptr_t)p, n, prot != PROT_NONE);
    }
    return p;
}

void *mmap64(void *where, size_t n, int prot, int flags, int file, off_t offset)
{
    return mmap(where, n, prot, flags, file, offset);
}

int munmap(void *p, size_t n)
{
    int k;
    set((uintptr_t)p, n, 0);
    for (k = 0; k < ranges; k++)                    /* a range ends with its last page */
        if ((uintptr_t)p <= range[k].base && (uintptr_t)p + n >= range[k].base + range[k].size) {
            free(range[k].page);
            range[k--] = range[--ranges];
        } else if ((uintptr_t)p <= range[k].base && (uintptr_t)p + n > range[k].base) {
            size_t cut = (uintptr_t)p + n - range[k].base;
            memmove(range[k].page, range[k].page + cut / PAGE, (range[k].size - cut) / PAGE);
            range[k].base += cut;
            range[k].size -= cut;
        } else if ((uintptr_t)p > range[k].base && (uintptr_t)p < range[k].base + range[k].size) {
            range[k].size = (uintptr_t)p - range[k].base;
        }
    return real_munmap(p, n);
}

int mprotect(void *p, size_t n, int prot)
{
    int k;
    for (k = 0; k < ranges; k++)
        if ((uintptr_t)p >= range[k].base && (uintptr_t)p < range[k].base + range[k].size && fails(COMMIT)) {
            errno = ENOMEM;
            return -1;
        }
    if (real_mprotect(p, n, prot) != 0) return -1;
    set((uintptr_t)p, n, prot != PROT_NONE);
    return 0;
}

long witness_committed(void) { return committed; }

/* The most bytes committed at any moment since the last call of this function. */
long witness_most(void)
{
    long found = most;
    most = committed;
    return found;
}

long witness_calls(void) { return calls; }

/* The number of failed calls of a kind. */
long witness_failed(long kind) { return failed[kind]; }

void witness_fail(long n, long persistent)
{
    calls = 0;
    fail_at = n;
    all_after = persistent;
}
