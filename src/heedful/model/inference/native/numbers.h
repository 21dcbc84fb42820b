/*
Numbers as searches keep them.

Keys and values are bfloat16, the upper half of a float. What products read is unsigned bytes: -levels
as 1, zero as levels + 1, and beside each row `largest`, the absolute value that stands for `levels`.
*/

#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

static inline float from_bfloat16(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float out;
    memcpy(&out, &bits, 4);
    return out;
}

/* Round to nearest, ties to even, as torch does. */
static inline uint16_t to_bfloat16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/* e to the power of x for x <= 0, to about 2e-7 of the value; the series of Cephes' expf. */
static inline float power_of_e(float x) {
    x = x < -87.0f ? -87.0f : x;
    float n = floorf(x * 1.44269504f + 0.5f);
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    int32_t bits = ((int32_t)n + 127) << 23;
    float scale;
    memcpy(&scale, &bits, 4);
    return p * scale;
}

/* Write a row as bytes and return the absolute value that stands for `levels`. */
static inline float round_row(const float *x, int width, int levels, uint8_t *bytes) {
    float largest = 1e-12f;
#pragma omp simd reduction(max : largest)
    for (int i = 0; i < width; i++) {
        float size = fabsf(x[i]);
        largest = size > largest ? size : largest;
    }
    float by = (float)levels / largest, middle = (float)levels + 1.5f;
    for (int i = 0; i < width; i++) bytes[i] = (uint8_t)(int32_t)(x[i] * by + middle);
    return largest;
}

/* Write max(0, x) as bytes that use all values from zero on. */
static inline float round_positive_row(const float *x, int width, int levels, uint8_t *bytes) {
    float largest = 1e-12f;
#pragma omp simd reduction(max : largest)
    for (int i = 0; i < width; i++) largest = x[i] > largest ? x[i] : largest;
    float by = (float)(2 * levels + 1) / largest;
    for (int i = 0; i < width; i++) {
        float value = x[i] > 0.0f ? x[i] : 0.0f;
        bytes[i] = (uint8_t)(int32_t)(value * by + 0.5f);
    }
    return largest;
}

/* Normalise a row: mean zero, variance one, then gain and shift. */
typedef struct {
    const float *gain, *shift;
    float epsilon;
} Norm;

static inline void norm_row(const Norm *norm, const float *x, int width, float *out) {
    float sum = 0.0f, squares = 0.0f;
    for (int i = 0; i < width; i++) sum += x[i];
    float mean = sum / (float)width;
    for (int i = 0; i < width; i++) squares += (x[i] - mean) * (x[i] - mean);
    float rate = 1.0f / sqrtf(squares / (float)width + norm->epsilon);
    for (int i = 0; i < width; i++) out[i] = (x[i] - mean) * rate * norm->gain[i] + norm->shift[i];
}

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

/* Ask for a row of `width` numbers that will be read soon. */
static inline void fetch_row(const uint16_t *row, int width) {
    for (int i = 0; i < width; i += 32) __builtin_prefetch(row + i);
}

/* The product of a query and a key. */
static inline float dot(const float *query, const uint16_t *key, int width) {
    Floats sums = {0.0f};
    int i = 0;
    for (; i + 16 <= width; i += 16) sums += sixteen(query + i) * sixteen_wide(key + i);
    sums += __builtin_shuffle(sums, (Words){8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7});
    sums += __builtin_shuffle(sums, (Words){4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11});
    sums += __builtin_shuffle(sums, (Words){2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13});
    float sum = sums[0] + sums[1];
    for (; i < width; i++) sum += query[i] * from_bfloat16(key[i]);
    return sum;
}

/* out = the sum of some rows, each with its weight; `which` says which rows. */
static inline void weigh(const float *weights, const int *which, int count, const uint16_t *rows,
                         int width, float *out) {
    int first = 0;
    for (; first + 64 <= width; first += 64) {
        Floats a = {0.0f}, b = {0.0f}, c = {0.0f}, d = {0.0f};
        for (int n = 0; n < count; n++) {
            const uint16_t *row = rows + (size_t)which[n] * (size_t)width + first;
            a += weights[n] * sixteen_wide(row);
            b += weights[n] * sixteen_wide(row + 16);
            c += weights[n] * sixteen_wide(row + 32);
            d += weights[n] * sixteen_wide(row + 48);
        }
        Floats all[4] = {a, b, c, d};
        memcpy(out + first, all, sizeof all);
    }
    for (; first + 16 <= width; first += 16) {
        Floats sum = {0.0f};
        for (int n = 0; n < count; n++)
            sum += weights[n] * sixteen_wide(rows + (size_t)which[n] * (size_t)width + first);
        memcpy(out + first, &sum, sizeof sum);
    }
    for (; first < width; first++) {
        float sum = 0.0f;
        for (int n = 0; n < count; n++)
            sum += weights[n] * from_bfloat16(rows[(size_t)which[n] * (size_t)width + first]);
        out[first] = sum;
    }
}
