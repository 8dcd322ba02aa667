/* Counts of durations in buckets that grow with them. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

enum { BUCKETS = 64 * 16 };

/* Sixteen steps for each doubling; below 16, each number has its own. */
static inline unsigned int bucket_of(uint64_t ns)
{
    if (ns < 16) {
        return (unsigned int)ns;
    }
    unsigned int power = 63 - (unsigned int)__builtin_clzll(ns);
    return (power - 3) * 16 + (unsigned int)(ns >> (power - 4) & 15);
}

static inline double least_of(unsigned int bucket)
{
    unsigned int power = bucket / 16;
    return power ? (double)((16ull + bucket % 16) << (power - 1)) : bucket;
}

/* The bucket up to which there are `least` of all counts. */
static inline double quantile_of(const uint64_t *const counts[], int some, double least)
{
    uint64_t sum = 0;
    for (unsigned int bucket = 0; bucket < BUCKETS; bucket++) {
        for (int i = 0; i < some; i++) {
            sum += counts[i][bucket];
        }
        if ((double)sum >= least) {
            return least_of(bucket);
        }
    }
    return 0;
}

#endif
