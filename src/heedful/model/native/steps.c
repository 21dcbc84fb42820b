/*
What happens between two products of a decoder step, each in one pass over the rows.

Products are taken with 8-bit integers (heedful.model.layouts): a row of numbers becomes unsigned
bytes, -levels as 1, zero as levels + 1, and `largest`, the absolute value that stands for `levels`.
A product comes back as floats that still have to be multiplied by `largest` of their row.

Keys and values are bfloat16: the upper half of a float. Every function works row by row or
sentence by sentence, so the result does not depend on the number of threads.
*/

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Waking a second thread takes as long as a few thousand numbers. */
#define WORTH(rows, width) (threads > 1 && (size_t)(rows) * (width) > 16384)

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
    for (int i = 0; i < width; i++) {
        float size = fabsf(x[i]);
        largest = size > largest ? size : largest;
    }
    float by = (float)levels / largest, middle = (float)levels + 1.5f;
    for (int i = 0; i < width; i++) bytes[i] = (uint8_t)(int32_t)(x[i] * by + middle);
    return largest;
}

/* Write rows as bytes. */
void round_rows(const float *x, int rows, int width, int levels, int threads, uint8_t *bytes,
                float *largest) {
#pragma omp parallel for num_threads(threads) if (WORTH(rows, width))
    for (int row = 0; row < rows; row++)
        largest[row] = round_row(x + (size_t)row * width, width, levels, bytes + (size_t)row * width);
}

/* max(0, product * scale + bias) as bytes that use all values from zero on. */
void relu_rows(const float *product, const float *scale, const float *bias, int rows, int width,
               int levels, int threads, uint8_t *bytes, float *largest) {
#pragma omp parallel num_threads(threads) if (WORTH(rows, width))
    {
        float *line = malloc((size_t)width * sizeof(float));
#pragma omp for
        for (int row = 0; row < rows; row++) {
            const float *in = product + (size_t)row * width;
            float by = scale[row], top = 1e-12f;
            for (int i = 0; i < width; i++) {
                float value = in[i] * by + bias[i];
                value = value > 0.0f ? value : 0.0f;
                top = value > top ? value : top;
                line[i] = value;
            }
            float up = (float)(2 * levels + 1) / top;
            uint8_t *out = bytes + (size_t)row * width;
            for (int i = 0; i < width; i++) out[i] = (uint8_t)(int32_t)(line[i] * up + 0.5f);
            largest[row] = top;
        }
        free(line);
    }
}

/*
Add what a sub-layer found to the states, normalise, and write the result as bytes.
After the sum (the paper) the states become the normalised sum; before the next sub-layer (`pre`)
they become the sum, and the bytes are those of the normalised one. `normal` gets the normalised
numbers where it is not NULL.
*/
void add_norm_rows(const float *product, const float *scale, const float *bias, float *states,
                   const float *gain, const float *shift, float epsilon, int pre, int rows,
                   int width, int levels, int threads, uint8_t *bytes, float *largest,
                   float *normal) {
#pragma omp parallel num_threads(threads) if (WORTH(rows, width))
    {
        float *line = malloc((size_t)width * sizeof(float));
#pragma omp for
        for (int row = 0; row < rows; row++) {
            const float *in = product + (size_t)row * width;
            float *state = states + (size_t)row * width;
            float by = scale[row], sum = 0.0f, squares = 0.0f;
            for (int i = 0; i < width; i++) {
                float value = state[i] + in[i] * by + bias[i];
                line[i] = value;
                sum += value;
            }
            float mean = sum / (float)width;
            for (int i = 0; i < width; i++) {
                float off = line[i] - mean;
                squares += off * off;
            }
            float rate = 1.0f / sqrtf(squares / (float)width + epsilon);
            if (pre) memcpy(state, line, (size_t)width * sizeof(float));
            for (int i = 0; i < width; i++) line[i] = (line[i] - mean) * rate * gain[i] + shift[i];
            if (!pre) memcpy(state, line, (size_t)width * sizeof(float));
            if (normal) memcpy(normal + (size_t)row * width, line, (size_t)width * sizeof(float));
            largest[row] = round_row(line, width, levels, bytes + (size_t)row * width);
        }
        free(line);
    }
}

/*
Let the hypotheses of each sentence look at `filled` of `slots` keys and write what they found as
bytes. With `newest` the product holds queries, keys and values; the latter two go to the last
`width` of the filled slots first. `barred` says by a number below zero where a hypothesis must
not look; its row for hypothesis w of sentence s begins at (s * width + w) * stride, or at
s * stride if all hypotheses of a sentence see the same.
*/
void attend_rows(const float *product, const float *scale, const float *bias, int newest,
                 uint16_t *keys, uint16_t *values, const float *barred, int stride, int shared,
                 int sentences, int width, int heads, int d_k, int d_v, int slots, int filled,
                 int levels, int threads, uint8_t *bytes, float *largest) {
    int in_width = newest ? heads * (2 * d_k + d_v) : heads * d_k, out_width = heads * d_v;
    float root = 1.0f / sqrtf((float)d_k);
#pragma omp parallel num_threads(threads) if (threads > 1 && sentences > 1)
    {
        float *query = malloc((size_t)width * d_k * sizeof(float));
        float *score = malloc((size_t)width * filled * sizeof(float));
        float *found = malloc((size_t)width * out_width * sizeof(float));
        float *wide = malloc((size_t)(d_k > d_v ? d_k : d_v) * sizeof(float));
#pragma omp for
        for (int s = 0; s < sentences; s++) {
            for (int h = 0; h < heads; h++) {
                uint16_t *key = keys + (size_t)(s * heads + h) * slots * d_k;
                uint16_t *value = values + (size_t)(s * heads + h) * slots * d_v;
                for (int w = 0; w < width; w++) {
                    int row = s * width + w;
                    const float *in = product + (size_t)row * in_width;
                    float by = scale[row];
                    for (int i = 0; i < d_k; i++)
                        query[w * d_k + i] = (in[h * d_k + i] * by + bias[h * d_k + i]) * root;
                    if (!newest) continue;
                    int at = filled - width + w, first = heads * d_k + h * d_k;
                    for (int i = 0; i < d_k; i++)
                        key[(size_t)at * d_k + i] = to_bfloat16(in[first + i] * by + bias[first + i]);
                    first = 2 * heads * d_k + h * d_v;
                    for (int i = 0; i < d_v; i++)
                        value[(size_t)at * d_v + i] = to_bfloat16(in[first + i] * by + bias[first + i]);
                }
                for (int t = 0; t < filled; t++) {
                    const uint16_t *from = key + (size_t)t * d_k;
                    for (int i = 0; i < d_k; i++) wide[i] = from_bfloat16(from[i]);
                    for (int w = 0; w < width; w++) {
                        const float *q = query + w * d_k;
                        float sum = 0.0f;
                        for (int i = 0; i < d_k; i++) sum += q[i] * wide[i];
                        score[w * filled + t] = sum;
                    }
                }
                for (int w = 0; w < width; w++) {
                    float *line = score + w * filled, best = -1e30f, sum = 0.0f;
                    const float *bar = barred + (size_t)(shared ? s : s * width + w) * stride;
                    for (int t = 0; t < filled; t++) {
                        line[t] = bar[t] < -1.0f ? -1e30f : line[t];
                        best = line[t] > best ? line[t] : best;
                    }
                    for (int t = 0; t < filled; t++) {
                        float weight = bar[t] < -1.0f ? 0.0f : power_of_e(line[t] - best);
                        line[t] = weight;
                        sum += weight;
                    }
                    float share = 1.0f / sum;
                    for (int t = 0; t < filled; t++) line[t] *= share;
                    memset(found + (size_t)w * out_width + h * d_v, 0, (size_t)d_v * sizeof(float));
                }
                for (int t = 0; t < filled; t++) {
                    const uint16_t *from = value + (size_t)t * d_v;
                    for (int i = 0; i < d_v; i++) wide[i] = from_bfloat16(from[i]);
                    for (int w = 0; w < width; w++) {
                        float weight = score[w * filled + t];
                        float *out = found + (size_t)w * out_width + h * d_v;
                        for (int i = 0; i < d_v; i++) out[i] += weight * wide[i];
                    }
                }
            }
            for (int w = 0; w < width; w++) {
                size_t row = (size_t)s * width + w;
                largest[row] = round_row(found + (size_t)w * out_width, out_width, levels,
                                         bytes + row * out_width);
            }
        }
        free(query);
        free(score);
        free(found);
        free(wide);
    }
}

/* Logarithms of the softmax of product * scale + bias, in place; `bias` may be NULL. */
void log_softmax_rows(float *product, const float *scale, const float *bias, int rows, int width,
                      int threads) {
#pragma omp parallel for num_threads(threads) if (WORTH(rows, width))
    for (int row = 0; row < rows; row++) {
        float *line = product + (size_t)row * width;
        float by = scale[row], best = -1e30f, sum = 0.0f;
        for (int i = 0; i < width; i++) {
            float value = line[i] * by + (bias ? bias[i] : 0.0f);
            line[i] = value;
            best = value > best ? value : best;
        }
        for (int i = 0; i < width; i++) sum += power_of_e(line[i] - best);
        float normaliser = best + logf(sum);
        for (int i = 0; i < width; i++) line[i] -= normaliser;
    }
}
