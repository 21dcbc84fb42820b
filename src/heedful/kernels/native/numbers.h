/*
Number formats of a search.

In fp32 all numbers are floats. In bfloat16, keys, values and the inputs of products are the upper halves
of floats. In 8 bits, keys and values are bfloat16, too, and inputs of products are unsigned bytes:
-levels as 1, zero as levels + 1. Each row has `largest`, the absolute value that `levels` represents.
*/

#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { FP32, BFLOAT16, INT8 }; /* formats of the inputs of products */

static inline size_t bytes_of(int kind) { return kind == FP32 ? 4 : kind == BFLOAT16 ? 2 : 1; }

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

/* A number of a tensor that is either in fp32 or in bfloat16. */
static inline __attribute__((always_inline)) float read_number(const void *row, int i, int is_fp32) {
    return is_fp32 ? ((const float *)row)[i] : from_bfloat16(((const uint16_t *)row)[i]);
}

static inline __attribute__((always_inline)) void write_number(void *row, int i, float x, int is_fp32) {
    if (is_fp32)
        ((float *)row)[i] = x;
    else
        ((uint16_t *)row)[i] = to_bfloat16(x);
}

/* e to the power of x for x <= 0, to about 4e-6 of the value; the series of Cephes' expf. */
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

/*
The bits of an absolute value. They have the order of the values, with NaN above infinity, so a maximum
of bits keeps a NaN; a maximum of floats would lose it.
*/
static inline int32_t magnitude(float x) {
    int32_t bits;
    memcpy(&bits, &x, 4);
    return bits & 0x7fffffff;
}

static inline float from_magnitude(int32_t bits) {
    float out;
    memcpy(&out, &bits, 4);
    return out;
}

/*
Write a row as bytes and return the absolute value that `levels` represents. It is NaN if a number of the
row is NaN, so that all results from the row are NaN, too.
*/
static inline float round_row(const float *x, int width, int levels, uint8_t *bytes) {
    int32_t most = magnitude(1e-12f);
#pragma omp simd reduction(max : most)
    for (int i = 0; i < width; i++) most = magnitude(x[i]) > most ? magnitude(x[i]) : most;
    float largest = from_magnitude(most);
    float by = (float)levels / largest, middle = (float)levels + 1.5f;
    for (int i = 0; i < width; i++) bytes[i] = (uint8_t)(int32_t)(x[i] * by + middle);
    return largest;
}

/* Write max(0, x) as bytes, with 0 for zero and 2 levels + 1 for the largest number. */
static inline float round_positive_row(const float *x, int width, int levels, uint8_t *bytes) {
    int32_t most = magnitude(1e-12f);
#pragma omp simd reduction(max : most)
    for (int i = 0; i < width; i++) {
        int32_t size = magnitude(x[i] < 0.0f ? 0.0f : x[i]);
        most = size > most ? size : most;
    }
    float largest = from_magnitude(most);
    float by = (float)(2 * levels + 1) / largest;
    for (int i = 0; i < width; i++) {
        float value = x[i] > 0.0f ? x[i] : 0.0f;
        bytes[i] = (uint8_t)(int32_t)(value * by + 0.5f);
    }
    return largest;
}

/* Write a row, or max(0, x), in the format of the inputs of products. */
static inline float write_row(const float *x, int width, int kind, int levels, int positive, void *to) {
    float least = positive ? 0.0f : -INFINITY;
    if (kind == INT8)
        return positive ? round_positive_row(x, width, levels, to) : round_row(x, width, levels, to);
    if (kind == BFLOAT16)
        for (int i = 0; i < width; i++) ((uint16_t *)to)[i] = to_bfloat16(x[i] < least ? least : x[i]);
    else
        for (int i = 0; i < width; i++) ((float *)to)[i] = x[i] < least ? least : x[i];
    return 1.0f;
}

/*
Normalize a row: mean zero, variance one, then gain and shift. Without a shift the mean stays, as in an
RMS norm. If the variance overflows, the result is NaN, as in torch: a division by infinity would give
zeros, which look like valid numbers.
*/
typedef struct {
    const float *gain, *shift;
    float epsilon;
} Norm;

static inline void norm_row(const Norm *norm, const float *x, int width, float *out) {
    float sum = 0.0f, squares = 0.0f;
    for (int i = 0; i < width; i++) sum += x[i];
    float mean = norm->shift ? sum / (float)width : 0.0f;
    for (int i = 0; i < width; i++) squares += (x[i] - mean) * (x[i] - mean);
    float rate = squares < INFINITY ? 1.0f / sqrtf(squares / (float)width + norm->epsilon) : NAN;
    if (norm->shift)
        for (int i = 0; i < width; i++) out[i] = (x[i] - mean) * rate * norm->gain[i] + norm->shift[i];
    else
        for (int i = 0; i < width; i++) out[i] = x[i] * rate * norm->gain[i];
}
