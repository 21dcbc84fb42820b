/*
Attention of one head: products of queries and keys, softmax, weighted sums of values.

Keys and values are rows of fp32 or of bfloat16. Queries of a sentence that attend to the same places
are taken four at a time, so that each key and value is read and widened once for all of them; other
queries take their keys four at a time. Sums are added in one order in both.
*/

#include <immintrin.h>

/* Sixteen numbers at once, in whatever registers there are. */
typedef float Floats __attribute__((vector_size(64), aligned(4)));
typedef uint32_t Words __attribute__((vector_size(64), aligned(4)));
typedef uint16_t Halves __attribute__((vector_size(32), aligned(2)));

static inline Floats sixteen(const float *x) {
    Floats out;
    memcpy(&out, x, sizeof out);
    return out;
}

static inline Floats sixteen_wide(const uint16_t *x) {
#if defined(__AVX512F__) /* GCC would widen two halves and join them */
    __m256i halves = _mm256_loadu_si256((const __m256i *)x);
    return (Floats)_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16);
#else
    Halves halves;
    memcpy(&halves, x, sizeof halves);
    return (Floats)(__builtin_convertvector(halves, Words) << 16);
#endif
}

/* Sixteen numbers of a row of keys or values, from the i-th on. */
static inline Floats sixteen_of(const void *row, size_t i, int is_fp32) {
    return is_fp32 ? sixteen((const float *)row + i) : sixteen_wide((const uint16_t *)row + i);
}

static inline float one_of(const void *row, size_t i, int is_fp32) {
    return is_fp32 ? ((const float *)row)[i] : from_bfloat16(((const uint16_t *)row)[i]);
}

/* Keep a row of keys or values, the place-th. */
static inline void keep_row(const float *x, int width, size_t place, int is_fp32, void *rows) {
    size_t first = place * (size_t)width;
    if (is_fp32) memcpy((float *)rows + first, x, (size_t)width * sizeof(float));
    else for (int i = 0; i < width; i++) ((uint16_t *)rows)[first + i] = to_bfloat16(x[i]);
}

/* Ask for a row of keys or values that will be read soon. */
static inline void fetch_row(const void *rows, size_t place, int width, int is_fp32) {
    size_t bytes = (size_t)width * (is_fp32 ? 4 : 2);
    const char *row = (const char *)rows + place * bytes;
    for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at);
}

enum { FOUR = 4 };

/* The sums of four times sixteen numbers. */
static inline void four_sums(const Floats *sixteens, float *out) {
    __m256 eight[FOUR];
    for (int i = 0; i < FOUR; i++) {
        const float *x = (const float *)(sixteens + i);
        eight[i] = _mm256_add_ps(_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8));
    }
    __m256 pairs = _mm256_hadd_ps(eight[0], eight[1]), more = _mm256_hadd_ps(eight[2], eight[3]);
    __m256 halves = _mm256_hadd_ps(pairs, more);
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1)));
}

/* Products of four queries, rows of `width`, and one key. */
static inline void four_queries(const float *queries, const void *keys, size_t place, int width,
                                int is_fp32, float *out) {
    Floats sums[FOUR] = {{0.0f}};
    size_t first = place * (size_t)width;
    int i = 0;
    for (; i + 16 <= width; i += 16) {
        Floats key = sixteen_of(keys, first + i, is_fp32);
        for (int q = 0; q < FOUR; q++) sums[q] += sixteen(queries + q * width + i) * key;
    }
    four_sums(sums, out);
    for (; i < width; i++)
        for (int q = 0; q < FOUR; q++) out[q] += queries[q * width + i] * one_of(keys, first + i, is_fp32);
}

/* Products of a query and four keys. */
static inline void four_keys(const float *query, const void *keys, const size_t *places, int width,
                             int is_fp32, float *out) {
    Floats sums[FOUR] = {{0.0f}};
    int i = 0;
    for (; i + 16 <= width; i += 16) {
        Floats part = sixteen(query + i);
        for (int k = 0; k < FOUR; k++)
            sums[k] += part * sixteen_of(keys, places[k] * (size_t)width + i, is_fp32);
    }
    four_sums(sums, out);
    for (; i < width; i++)
        for (int k = 0; k < FOUR; k++)
            out[k] += query[i] * one_of(keys, places[k] * (size_t)width + i, is_fp32);
}

enum { AHEAD = 8 }; /* keys asked for before they are read; a search's are rarely in a near cache */

/*
Scores of one query, or of four (`queries`, rows of `width`, scores `apart` numbers from each other),
for the listed keys. On the way it asks for the values, which are read next.
*/
static inline void score_for_one(const float *query, const int *which, int count, const void *keys, int width,
                                 const void *values, int value_width, int is_fp32, float *scores) {
    for (int n = 0; n < count; n += FOUR) {
        size_t places[FOUR];
        float found[FOUR];
        for (int k = 0; k < FOUR; k++) { /* the last key again where fewer are left */
            places[k] = (size_t)which[n + k < count ? n + k : count - 1];
            if (n + k + AHEAD < count) fetch_row(keys, (size_t)which[n + k + AHEAD], width, is_fp32);
            fetch_row(values, places[k], value_width, is_fp32);
        }
        four_keys(query, keys, places, width, is_fp32, found);
        for (int k = 0; k < FOUR && n + k < count; k++) scores[n + k] = found[k];
    }
}

static inline void score_for_four(const float *queries, const int *which, int count, const void *keys, int width,
                                  const void *values, int value_width, int is_fp32, float *scores, int apart) {
    for (int n = 0; n < count; n++) {
        float found[FOUR];
        if (n + AHEAD < count) fetch_row(keys, (size_t)which[n + AHEAD], width, is_fp32);
        fetch_row(values, (size_t)which[n], value_width, is_fp32);
        four_queries(queries, keys, (size_t)which[n], width, is_fp32, found);
        for (int q = 0; q < FOUR; q++) scores[q * apart + n] = found[q];
    }
}

/* Turn scores into weights that sum to one. */
static inline void softmax_row(float *score, int count) {
    float best = -1e30f, sum = 0.0f;
#pragma omp simd reduction(max : best)
    for (int n = 0; n < count; n++) best = score[n] > best ? score[n] : best;
    for (int n = 0; n < count; n++) {
        score[n] = power_of_e(score[n] - best);
        sum += score[n];
    }
    float share = 1.0f / sum;
    for (int n = 0; n < count; n++) score[n] *= share;
}

/* out = the sum of some values, each with its weight; `which` says which. */
static inline void weigh(const float *weights, const int *which, int count, const void *values, int width,
                         int is_fp32, float *out) {
    int first = 0;
    for (; first + 64 <= width; first += 64) {
        Floats a = {0.0f}, b = {0.0f}, c = {0.0f}, d = {0.0f};
        for (int n = 0; n < count; n++) {
            size_t at = (size_t)which[n] * (size_t)width + first;
            a += weights[n] * sixteen_of(values, at, is_fp32);
            b += weights[n] * sixteen_of(values, at + 16, is_fp32);
            c += weights[n] * sixteen_of(values, at + 32, is_fp32);
            d += weights[n] * sixteen_of(values, at + 48, is_fp32);
        }
        Floats all[4] = {a, b, c, d};
        memcpy(out + first, all, sizeof all);
    }
    for (; first + 16 <= width; first += 16) {
        Floats sum = {0.0f};
        for (int n = 0; n < count; n++)
            sum += weights[n] * sixteen_of(values, (size_t)which[n] * (size_t)width + first, is_fp32);
        memcpy(out + first, &sum, sizeof sum);
    }
    for (; first < width; first++) {
        float sum = 0.0f;
        for (int n = 0; n < count; n++)
            sum += weights[n] * one_of(values, (size_t)which[n] * (size_t)width + first, is_fp32);
        out[first] = sum;
    }
}

/* The same for four queries: weights are `weights_apart` numbers from each other, sums `out_apart`. */
static inline void weigh_for_four(const float *weights, int weights_apart, const int *which, int count,
                                  const void *values, int width, int is_fp32, float *out, int out_apart) {
    int first = 0;
    for (; first + 16 <= width; first += 16) {
        Floats sums[FOUR] = {{0.0f}};
        for (int n = 0; n < count; n++) {
            Floats value = sixteen_of(values, (size_t)which[n] * (size_t)width + first, is_fp32);
            for (int q = 0; q < FOUR; q++) sums[q] += weights[q * weights_apart + n] * value;
        }
        for (int q = 0; q < FOUR; q++) memcpy(out + q * out_apart + first, sums + q, sizeof *sums);
    }
    for (; first < width; first++)
        for (int q = 0; q < FOUR; q++) {
            float sum = 0.0f;
            for (int n = 0; n < count; n++)
                sum += weights[q * weights_apart + n] *
                       one_of(values, (size_t)which[n] * (size_t)width + first, is_fp32);
            out[q * out_apart + first] = sum;
        }
}
