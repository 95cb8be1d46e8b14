/* Differences between platforms and compilers: OpenMP, thread-local storage, memory from the system, prefetching. */
#ifndef CYGRAD_PLATFORM_H
#define CYGRAD_PLATFORM_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef _OPENMP
#include <omp.h>
#define CG_HAVE_OPENMP 1
#else
#define CG_HAVE_OPENMP 0
static inline int omp_get_max_threads(void) { return 1; }
static inline int omp_get_thread_num(void) { return 0; }
static inline int omp_get_num_procs(void) { return 1; }
#endif

/* The compiler and the instruction level of this build, for show_config. */
#define CG_TEXT_(x) #x
#define CG_TEXT(x) CG_TEXT_(x)
#if defined(__clang__)
#define CG_COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define CG_COMPILER "gcc " __VERSION__
#elif defined(_MSC_VER)
#define CG_COMPILER "MSVC " CG_TEXT(_MSC_VER)
#else
#define CG_COMPILER "unknown"
#endif
#if defined(__AVX512F__)
#define CG_LEVEL "avx512"
#elif defined(__AVX2__)
#define CG_LEVEL "avx2"
#else
#define CG_LEVEL "baseline"
#endif
/* The highest instruction level that this CPU supports, of those in setup.py. */
static inline const char *cg_best_level(void) {
#if (defined(__x86_64__) || defined(_M_X64)) && defined(__GNUC__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
        return "baseline";
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
        return "avx512";
    return "avx2";
#else
    return "baseline";
#endif
}

#if defined(CYGRAD_DEBUG)
#define CG_DEBUG 1
#else
#define CG_DEBUG 0
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CG_SANITIZED 1
#else
#define CG_SANITIZED 0
#endif

#if defined(_MSC_VER)
#define CG_THREAD_LOCAL __declspec(thread)
#define CG_LIKELY(x) (x)
#else
#define CG_THREAD_LOCAL _Thread_local
#define CG_LIKELY(x) __builtin_expect(!!(x), 1)
#endif

/* Unused bytes of this thread's C stack; the largest size_t if unknown. */
#if defined(__linux__) && defined(_GNU_SOURCE)
#include <pthread.h>
static inline size_t cg_stack_left(void) {
    static CG_THREAD_LOCAL char *lowest;
    pthread_attr_t attributes;
    void *stack;
    size_t size;
    if (lowest == NULL) {
        if (pthread_getattr_np(pthread_self(), &attributes)) return (size_t)-1;
        if (pthread_attr_getstack(&attributes, &stack, &size)) stack = NULL;
        pthread_attr_destroy(&attributes);
        lowest = stack;
    }
    return lowest == NULL ? (size_t)-1 : (size_t)((char *)__builtin_frame_address(0) - lowest);
}
#else
static inline size_t cg_stack_left(void) { return (size_t)-1; }
#endif

/* a b + c, rounded once if the CPU has an instruction for it, otherwise twice. Code that uses these must be correct in
   both cases. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define CG_FUSED 1
static inline float cg_fma_f(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double cg_fma_d(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
#define CG_FUSED 0
static inline float cg_fma_f(float a, float b, float c) { return a * b + c; }
static inline double cg_fma_d(double a, double b, double c) { return a * b + c; }
#endif

/* The index of the lowest or highest set bit, which must exist, and the number of set bits. */
static inline int cg_lowest_bit64(unsigned long long x) { return __builtin_ctzll(x); }
static inline int cg_highest_bit(unsigned long long x) { return 63 - __builtin_clzll(x); }
static inline int cg_count_bits(unsigned long long x) { return __builtin_popcountll(x); }
static inline int cg_lowest_bit(unsigned mask) {
#if defined(_MSC_VER)
    unsigned long place;
    _BitScanForward(&place, mask);
    return (int)place;
#else
    return __builtin_ctz(mask);
#endif
}

/* A typed memoryview over raw memory, as a value. It has no owner (None) and no reference count, so creating it takes a
   few stores and does not need the GIL. It must not outlive the memory. Shapes count elements, strides count bytes.
   setup.py limits Cython's struct to three dimensions (buffer_max_dims), so it is cheap to pass by value. */
#define CG_VIEW1(p, n)                                                                                               \
    ((__Pyx_memviewslice){.memview = (void *)Py_None,                                                                \
                          .data = (char *)(p),                                                                       \
                          .shape = {(n)},                                                                            \
                          .strides = {sizeof(*(p))},                                                                 \
                          .suboffsets = {-1, -1}})
#define CG_VIEW2(p, rows, columns)                                                                                   \
    ((__Pyx_memviewslice){.memview = (void *)Py_None,                                                                \
                          .data = (char *)(p),                                                                       \
                          .shape = {(rows), (columns)},                                                              \
                          .strides = {(Py_ssize_t)((columns) * sizeof(*(p))), sizeof(*(p))},                         \
                          .suboffsets = {-1, -1}})

/* Does not compile if memoryviews have another size than in the driver (kernels/registry.pxd). */
#define CG_SAME_VIEWS()                                                                                              \
    do {                                                                                                             \
        _Static_assert(sizeof(__Pyx_memviewslice) == 2 * sizeof(void *) + 9 * sizeof(Py_ssize_t),                    \
                       "set Cython.Compiler.Options.buffer_max_dims = 3 in setup.py, as cygrad does");               \
    } while (0)

/* The same with a stride, in elements, for the only dimension or for the rows. */
#define CG_VIEW1S(p, n, step)                                                                                        \
    ((__Pyx_memviewslice){.memview = (void *)Py_None,                                                                \
                          .data = (char *)(p),                                                                       \
                          .shape = {(n)},                                                                            \
                          .strides = {(Py_ssize_t)(step) * (Py_ssize_t)sizeof(*(p))},                                \
                          .suboffsets = {-1, -1}})
#define CG_VIEW2S(p, rows, columns, step)                                                                            \
    ((__Pyx_memviewslice){.memview = (void *)Py_None,                                                                \
                          .data = (char *)(p),                                                                       \
                          .shape = {(rows), (columns)},                                                              \
                          .strides = {(Py_ssize_t)(step) * (Py_ssize_t)sizeof(*(p)), sizeof(*(p))},                  \
                          .suboffsets = {-1, -1}})

/* Memory from the system. cg_reserve() reserves addresses, aligned to huge pages, and cg_commit() makes pages of them
   usable. A page that is not committed uses no memory, even under strict overcommit, and accessing it ends the process.
   Huge pages are requested but not guaranteed. With them the first access to new memory runs at 14 GB/s instead of 2.2
   (measured; 2 MiB pages against 4 KiB). */
#include <sys/mman.h>
#include <unistd.h>
#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif

static inline size_t cg_page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static inline char *cg_reserve(size_t nbytes) {
    const size_t huge = (size_t)2 << 20;
    char *p = mmap(NULL, nbytes + huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t before;
    if (p == MAP_FAILED) return NULL;
    before = (huge - (uintptr_t)p % huge) % huge;
    if (before) munmap(p, before);
    munmap(p + before + nbytes, huge - before);
#if defined(MADV_HUGEPAGE)
    madvise(p + before, nbytes, MADV_HUGEPAGE);
#endif
    return p + before;
}

static inline int cg_commit(char *p, size_t nbytes) { return mprotect(p, nbytes, PROT_READ | PROT_WRITE) == 0; }

static inline int cg_decommit(char *p, size_t nbytes) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap(p, nbytes, PROT_NONE, flags, -1, 0) == MAP_FAILED) return 0; /* too many mappings: stays committed */
#if defined(MADV_HUGEPAGE)
    madvise(p, nbytes, MADV_HUGEPAGE);
#endif
    return 1;
}

static inline void cg_unreserve(char *p, size_t nbytes) { munmap(p, nbytes); }

/* Copy with stores that bypass the cache. Ordinary stores read each line into the cache first and evict other data. The
   target starts at a cache line. cg_stream_end() orders the stores before all later ones. */
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
static inline void cg_stream(char *target, const char *source, size_t nbytes) {
    size_t i = 0;
#if defined(__AVX512F__)
    for (; i + 64 <= nbytes; i += 64) _mm512_stream_si512((void *)(target + i), _mm512_loadu_si512(source + i));
#elif defined(__AVX__)
    for (; i + 32 <= nbytes; i += 32)
        _mm256_stream_si256((__m256i *)(target + i), _mm256_loadu_si256((const __m256i *)(source + i)));
#else
    for (; i + 16 <= nbytes; i += 16)
        _mm_stream_si128((__m128i *)(target + i), _mm_loadu_si128((const __m128i *)(source + i)));
#endif
    memcpy(target + i, source + i, nbytes - i);
}
static inline void cg_stream_end(void) { _mm_sfence(); }
#else
static inline void cg_stream(char *target, const char *source, size_t nbytes) { memcpy(target, source, nbytes); }
static inline void cg_stream_end(void) {}
#endif

/* Prefetch the cache lines of a range. The range may extend beyond allocated memory. */
static inline void cg_prefetch(const char *p, size_t nbytes) {
#if defined(__GNUC__)
    for (size_t i = 0; i < nbytes; i += 64) __builtin_prefetch(p + i);
#else
    (void)p, (void)nbytes;
#endif
}

/* cg_rest() gives up the CPU for a moment. cg_now() is a monotonic clock in nanoseconds. cg_ticks() is the fastest
   clock, with a constant but unknown rate. */
#if defined(_MSC_VER)
#include <windows.h>
static inline void cg_rest(void) { Sleep(0); }
static inline long long cg_now(void) {
    LARGE_INTEGER now, second;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&second);
    return (long long)((double)now.QuadPart * 1e9 / (double)second.QuadPart);
}
#else
#include <time.h>
static inline long long cg_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}
static inline void cg_rest(void) {
    struct timespec t = {0, 20000};
    nanosleep(&t, NULL);
}
#endif
/* A spin lock for short critical sections; does not need the GIL. */
#if defined(_MSC_VER)
static inline void cg_lock(long *lock) { while (_InterlockedExchange(lock, 1)) cg_rest(); }
static inline void cg_unlock(long *lock) { _InterlockedExchange(lock, 0); }
#else
static inline void cg_lock(long *lock) { while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) cg_rest(); }
static inline void cg_unlock(long *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }
#endif
#if defined(__x86_64__) && defined(__GNUC__)
static inline long long cg_ticks(void) { return (long long)__builtin_ia32_rdtsc(); }
#else
static inline long long cg_ticks(void) { return cg_now(); }
#endif

/* Debug builds fill freed memory with NaN. Builds with AddressSanitizer mark it as inaccessible instead. */
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define CG_POISON(p, n) ASAN_POISON_MEMORY_REGION((p), (n))
#define CG_UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#elif defined(CYGRAD_DEBUG)
#include <string.h>
#define CG_POISON(p, n) memset((p), 0xff, (n))
#define CG_UNPOISON(p, n) ((void)0)
#else
#define CG_POISON(p, n) ((void)0)
#define CG_UNPOISON(p, n) ((void)0)
#endif

#endif
