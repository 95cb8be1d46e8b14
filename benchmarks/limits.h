/* The limits of the machine: copying, reading, multiply-adds. limits.py compiles this file for this machine. */

#include <string.h>

#ifdef __AVX512F__
typedef float vector __attribute__((vector_size(64)));
#else
typedef float vector __attribute__((vector_size(32)));
#endif
enum { LANES = sizeof(vector) / sizeof(float), CHAINS = 12,     /* enough to hide the latency of a multiply-add */
       SUMS = 8, AHEAD = 16 << 10 };

static volatile float sink;

/* Copy n bytes; each thread copies a part. */
void copy(char *to, const char *from, long n, int threads)
{
    #pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int i = 0; i < threads; i++) {
        long start = n / threads * i, stop = i == threads - 1 ? n : start + n / threads;
        memcpy(to + start, from + start, stop - start);
    }
}

/* The sum of n floats. Memory is prefetched AHEAD bytes before it is read, because the CPU itself prefetches only up to
   the end of a page. */
static float sum(const float *x, long n)
{
    vector a[SUMS] = {0};
    long i = 0;
    for (; i + SUMS * LANES <= n; i += SUMS * LANES)
        #pragma GCC unroll 8
        for (int k = 0; k < SUMS; k++) {
            vector v;
            __builtin_prefetch((const char *)(x + i + k * LANES) + AHEAD);
            memcpy(&v, x + i + k * LANES, sizeof v);
            a[k] += v;
        }
    for (int k = 1; k < SUMS; k++) a[0] += a[k];
    float total = 0;
    for (int l = 0; l < LANES; l++) total += a[0][l];
    for (; i < n; i++) total += x[i];
    return total;
}

/* Read n floats; each thread reads a part. The sum keeps the compiler from removing the loop. */
float read_all(const float *x, long n, int threads)
{
    float total = 0;
    #pragma omp parallel for num_threads(threads) schedule(static, 1) reduction(+ : total)
    for (int i = 0; i < threads; i++) {
        long start = n / threads * i, stop = i == threads - 1 ? n : start + n / threads;
        total += sum(x + start, stop - start);
    }
    return total;
}

/* 2 * CHAINS * LANES * n operations in each thread. */
void multiply_add(long n, int threads)
{
    #pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; t++) {
        vector a[CHAINS], half = (vector){0} + 0.5f;
        for (int k = 0; k < CHAINS; k++) a[k] = (vector){0} + (float)k;
        for (long i = 0; i < n; i++)
            #pragma GCC unroll 12
            for (int k = 0; k < CHAINS; k++) a[k] = a[k] * half + half;
        vector total = a[0];
        for (int k = 1; k < CHAINS; k++) total += a[k];
        #pragma omp critical
        sink = total[0];
    }
}

long operations(void) { return 2L * CHAINS * LANES; }
