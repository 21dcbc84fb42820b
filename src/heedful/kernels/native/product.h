/*
Products of rows and a matrix: floats, pairs of bfloat16, or unsigned and signed bytes; sums in 32 bits.

The matrix is stored in panels of LANES outputs. In a panel of bytes, four inputs of each output are
side by side, as the dot instructions of x86 read them. In bfloat16 two inputs are side by side,
and in fp32 only one. A panel of bytes is stored as

    panel 0: [output 0: inputs 0-3][output 1: inputs 0-3]...[output 0: inputs 4-7]...

With only AVX2, eight inputs are multiplied at once: the matrix is filled up with zeros, and four bytes
after the last row are read, whatever their values.

A tall tile of 2 panels keeps its sums in registers while a pair of panels stays in the nearest caches.
At every step it prefetches a part of the next pair, because prefetches of all of it would wait for each
other. Few rows take 4 panels at once, so that more of the matrix is on its way from memory. Every tile
adds the inputs of an output in the same order, so a row's result does not depend on other rows.
*/

#include <stddef.h>
#include <stdint.h>

#include "numbers.h"
#include "vectors.h"

enum { GROUP = 4 }; /* panels; a matrix is filled up with zeros to whole groups */

/* A matrix in panels. Only a matrix of bytes has sums and scales. */
typedef struct {
    const void *weights;
    const int32_t *sums;  /* of each output's weights, times the byte of zero */
    const float *scales;  /* of each output, divided by the levels of the input */
    const float *bias;
    int inner, outer;
    int kind; /* of its inputs and weights */
} Product;

#if CAN_MULTIPLY
/* Bytes of a panel. */
static inline size_t int8_panel(int inner) {
    return (size_t)(inner + TOGETHER - 1) / TOGETHER * TOGETHER * LANES;
}

/* Prefetch the next `step` bytes, at most two cache lines; tiles of 4 panels prefetch nothing. */
#define FETCH(PANELS)                                                                             \
    if (PANELS == 2) {                                                                            \
        __builtin_prefetch(next, 0, 2);                                                           \
        if (step > 64) __builtin_prefetch(next + 64, 0, 2);                                       \
    }

#define INT8_TILE(ROWS, PANELS)                                                                   \
    static void int8_tile_##ROWS##_##PANELS(const Product *by, int panel, const void *rows,       \
                                            const float *largest, float *out, const char *next,   \
                                            size_t step) {                                        \
        int inner = by->inner, first = panel * LANES;                                             \
        size_t apart = int8_panel(inner);                                                         \
        const uint8_t *x = rows;                                                                  \
        const int8_t *weights = (const int8_t *)by->weights + (size_t)panel * apart;              \
        Ints sum[ROWS][PANELS];                                                                   \
        UNROLL for (int r = 0; r < ROWS; r++)                                                     \
            UNROLL for (int p = 0; p < PANELS; p++) sum[r][p] = no_ints();                        \
        for (int k = 0; k < inner; k += TOGETHER, next += step) {                                 \
            Fours w[PANELS];                                                                      \
            FETCH(PANELS)                                                                         \
            UNROLL for (int p = 0; p < PANELS; p++)                                               \
                w[p] = some_weights(weights + p * apart + (size_t)k * LANES);                     \
            UNROLL for (int r = 0; r < ROWS; r++) {                                               \
                Fours in = some_inputs(x + (size_t)r * inner + k);                                \
                UNROLL for (int p = 0; p < PANELS; p++)                                           \
                    sum[r][p] = add_dots(sum[r][p], in, w[p]);                                    \
            }                                                                                     \
        }                                                                                         \
        int32_t whole[PANELS * LANES];                                                            \
        int columns = by->outer - first < PANELS * LANES ? by->outer - first : PANELS * LANES;    \
        UNROLL for (int r = 0; r < ROWS; r++) {                                                   \
            float *to = out + (size_t)r * by->outer + first;                                      \
            UNROLL for (int p = 0; p < PANELS; p++) store_ints(whole + p * LANES, sum[r][p]);     \
            if (columns == PANELS * LANES) /* the compiler knows how many, and needs no loop */   \
                finish(by, whole, largest[r], first, PANELS * LANES, to);                         \
            else                                                                                  \
                finish(by, whole, largest[r], first, columns, to);                                \
        }                                                                                         \
    }

/* Without `restrict`, these short loops would mostly test whether `out` overlaps the other arrays. */
static inline void finish(const Product *by, const int32_t *restrict whole, float largest, int first,
                          int columns, float *restrict out) {
    const int32_t *restrict sums = by->sums + first;
    const float *restrict scales = by->scales + first, *restrict bias = by->bias + first;
    for (int i = 0; i < columns; i++)
        out[i] = (float)(whole[i] - sums[i]) * (scales[i] * largest) + bias[i];
}

static inline void add_bias(const Product *by, const float *restrict whole, int first, int columns,
                            float *restrict out) {
    const float *restrict bias = by->bias + first;
    for (int i = 0; i < columns; i++) out[i] = whole[i] + bias[i];
}

/* Write the sums of a tile of floats, plus a bias. */
#define STORE_SUMS(ROWS, PANELS)                                                                  \
    float whole[PANELS * LANES];                                                                  \
    int columns = by->outer - first < PANELS * LANES ? by->outer - first : PANELS * LANES;        \
    UNROLL for (int r = 0; r < ROWS; r++) {                                                       \
        float *to = out + (size_t)r * by->outer + first;                                          \
        UNROLL for (int p = 0; p < PANELS; p++) store_reals(whole + p * LANES, sum[r][p]);        \
        if (columns == PANELS * LANES)                                                            \
            add_bias(by, whole, first, PANELS * LANES, to);                                       \
        else                                                                                      \
            add_bias(by, whole, first, columns, to);                                              \
    }

#define FP32_TILE(ROWS, PANELS)                                                                   \
    static void fp32_tile_##ROWS##_##PANELS(const Product *by, int panel, const void *rows,       \
                                            const float *unused, float *out, const char *next,    \
                                            size_t step) {                                        \
        int inner = by->inner, first = panel * LANES;                                             \
        size_t apart = (size_t)inner * LANES;                                                     \
        const float *x = rows, *weights = (const float *)by->weights + (size_t)panel * apart;     \
        Reals sum[ROWS][PANELS];                                                                  \
        (void)unused;                                                                             \
        UNROLL for (int r = 0; r < ROWS; r++)                                                     \
            UNROLL for (int p = 0; p < PANELS; p++) sum[r][p] = no_reals();                       \
        for (int k = 0; k < inner; k++, next += step) {                                           \
            Reals w[PANELS];                                                                      \
            FETCH(PANELS)                                                                         \
            UNROLL for (int p = 0; p < PANELS; p++)                                               \
                w[p] = some_reals(weights + p * apart + (size_t)k * LANES);                       \
            UNROLL for (int r = 0; r < ROWS; r++) {                                               \
                Reals in = one_input(x + (size_t)r * inner + k);                                  \
                UNROLL for (int p = 0; p < PANELS; p++)                                           \
                    sum[r][p] = add_products(sum[r][p], in, w[p]);                                \
            }                                                                                     \
        }                                                                                         \
        STORE_SUMS(ROWS, PANELS)                                                                  \
    }

#define BFLOAT16_TILE(ROWS, PANELS)                                                               \
    static void bfloat16_tile_##ROWS##_##PANELS(const Product *by, int panel, const void *rows,   \
                                                const float *unused, float *out,                  \
                                                const char *next, size_t step) {                  \
        int inner = by->inner, first = panel * LANES;                                             \
        size_t apart = (size_t)inner * LANES;                                                     \
        const uint16_t *x = rows, *weights = (const uint16_t *)by->weights + (size_t)panel * apart; \
        Reals sum[ROWS][PANELS];                                                                  \
        (void)unused;                                                                             \
        UNROLL for (int r = 0; r < ROWS; r++)                                                     \
            UNROLL for (int p = 0; p < PANELS; p++) sum[r][p] = no_reals();                       \
        for (int k = 0; k < inner; k += 2, next += step) {                                        \
            Pairs w[PANELS];                                                                      \
            FETCH(PANELS)                                                                         \
            UNROLL for (int p = 0; p < PANELS; p++)                                               \
                w[p] = weights_of_two(weights + p * apart + (size_t)k * LANES);                   \
            UNROLL for (int r = 0; r < ROWS; r++) {                                               \
                Pairs in = two_inputs(x + (size_t)r * inner + k);                                 \
                UNROLL for (int p = 0; p < PANELS; p++) sum[r][p] = add_pairs(sum[r][p], in, w[p]); \
            }                                                                                     \
        }                                                                                         \
        STORE_SUMS(ROWS, PANELS)                                                                  \
    }

/* A tall tile prefetches `step` bytes from `next` on at each of its steps, even past the end. */
typedef void Tile(const Product *by, int panel, const void *rows, const float *largest, float *out,
                  const char *next, size_t step);

/* Tiles of fewer and fewer rows, down to one. */
typedef struct {
    int rows;
    Tile *tile;
} SmallTile;

/* The tiles of one kind of numbers: a tall tile of 2 panels, and small tiles of 4 panels. */
typedef struct {
    size_t together; /* inputs side by side in a panel */
    Tile *tall;
    const SmallTile *small;
} Kernel;

#if defined(__AVX512VNNI__)
INT8_TILE(8, 2)
INT8_TILE(4, 4)
FP32_TILE(8, 2)
FP32_TILE(4, 4)
#else
INT8_TILE(6, 2)
FP32_TILE(6, 2)
#endif
INT8_TILE(2, 4)
INT8_TILE(1, 4)
FP32_TILE(2, 4)
FP32_TILE(1, 4)

#if defined(__AVX512VNNI__)
static const SmallTile int8_small[] = {{4, int8_tile_4_4}, {2, int8_tile_2_4}, {1, int8_tile_1_4}};
static const SmallTile fp32_small[] = {{4, fp32_tile_4_4}, {2, fp32_tile_2_4}, {1, fp32_tile_1_4}};
static const Kernel int8_kernel = {TOGETHER, int8_tile_8_2, int8_small};
static const Kernel fp32_kernel = {1, fp32_tile_8_2, fp32_small};
#else
static const SmallTile int8_small[] = {{2, int8_tile_2_4}, {1, int8_tile_1_4}};
static const SmallTile fp32_small[] = {{2, fp32_tile_2_4}, {1, fp32_tile_1_4}};
static const Kernel int8_kernel = {TOGETHER, int8_tile_6_2, int8_small};
static const Kernel fp32_kernel = {1, fp32_tile_6_2, fp32_small};
#endif

#if CAN_MULTIPLY_BFLOAT16
BFLOAT16_TILE(8, 2)
BFLOAT16_TILE(4, 4)
BFLOAT16_TILE(2, 4)
BFLOAT16_TILE(1, 4)
static const SmallTile bfloat16_small[] = {
    {4, bfloat16_tile_4_4}, {2, bfloat16_tile_2_4}, {1, bfloat16_tile_1_4}};
static const Kernel bfloat16_kernel = {2, bfloat16_tile_8_2, bfloat16_small};
#else
#define bfloat16_kernel fp32_kernel /* never called */
#endif

/*
out = x W^T + b for the outputs of one thread, which has the index `me` among `team` threads. The bytes of
a row are relative to its `largest`.
*/
static void multiply(const Product *by, const void *x, const float *largest, int rows, int me,
                     int team, float *out) {
    const Kernel *kernel = by->kind == INT8 ? &int8_kernel : by->kind == FP32 ? &fp32_kernel : &bfloat16_kernel;
    int groups = (by->outer + GROUP * LANES - 1) / (GROUP * LANES), whole = rows - rows % TALL;
    size_t in = (size_t)by->inner * bytes_of(by->kind), wide = (size_t)by->outer;
    size_t steps = ((size_t)by->inner + kernel->together - 1) / kernel->together;
    size_t pair_bytes = 2 * steps * kernel->together * bytes_of(by->kind) * LANES;
    size_t tiles = (size_t)(rows / TALL + !whole), step = (pair_bytes / steps + tiles - 1) / tiles;
    const char *from = x, *weights = by->weights;
    for (int group = groups * me / team; group < groups * (me + 1) / team; group++) {
        int panel = group * GROUP, row;
        for (int pair = panel; pair < panel + GROUP; pair += 2) {
            if (pair * LANES >= by->outer) break;
            const char *next = weights + (size_t)(pair + 2) / 2 * pair_bytes;
            for (row = 0; row < whole; row += TALL, next += steps * step)
                kernel->tall(by, pair, from + row * in, largest + row, out + row * wide, next, step);
        }
        row = whole;
        for (const SmallTile *small = kernel->small; row < rows; small++)
            for (; row + small->rows <= rows; row += small->rows)
                small->tile(by, panel, from + row * in, largest + row, out + row * wide, weights, 0);
    }
}
#endif
