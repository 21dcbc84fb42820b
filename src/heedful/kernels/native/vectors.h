/*
A register of LANES numbers, and its operations, for each instruction set.

GCC's own vectors are not used, because GCC keeps a vector that is longer than a register in memory.
*/

#include <stdint.h>
#include <string.h>

#if defined(__AVX512VNNI__)
#include <immintrin.h>
#define CAN_MULTIPLY 1
enum { LANES = 16, MOST_LEVELS = 127, TOGETHER = 4, TALL = 8 };
typedef __m512i Ints;
static inline Ints no_ints(void) { return _mm512_setzero_si512(); }
static inline Ints four_inputs(const uint8_t *x) {
    int32_t four;
    memcpy(&four, x, 4);
    return _mm512_set1_epi32(four);
}
static inline Ints weights_of_four(const int8_t *w) { return _mm512_loadu_si512(w); }
static inline Ints add_four(Ints sum, Ints x, Ints w) { return _mm512_dpbusd_epi32(sum, x, w); }
static inline void store_ints(int32_t *to, Ints sum) { _mm512_storeu_si512(to, sum); }
#if defined(__AVX512BF16__)
#define CAN_MULTIPLY_BFLOAT16 1
typedef __m512i Pairs; /* two neighboring inputs of LANES outputs, or of one row */
static inline Pairs two_inputs(const uint16_t *x) {
    int32_t two;
    memcpy(&two, x, 4);
    return _mm512_set1_epi32(two);
}
static inline Pairs weights_of_two(const uint16_t *w) { return _mm512_loadu_si512(w); }
static inline __m512 add_pairs(__m512 sum, Pairs x, Pairs w) {
    return _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)w);
}
#endif
typedef __m512 Reals;
static inline Reals no_reals(void) { return _mm512_setzero_ps(); }
static inline Reals one_input(const float *x) { return _mm512_set1_ps(*x); }
static inline Reals some_reals(const float *w) { return _mm512_loadu_ps(w); }
static inline Reals add_products(Reals sum, Reals x, Reals w) { return _mm512_fmadd_ps(x, w, sum); }
static inline void store_reals(float *to, Reals sum) { _mm512_storeu_ps(to, sum); }
static inline Reals some_halves(const uint16_t *x) {
    __m256i halves = _mm256_loadu_si256((const __m256i *)x);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
static inline Reals larger(Reals x, Reals y) { return _mm512_max_ps(x, y); }
static inline Reals power_of_two(Reals x, Reals *exponent) { /* of whole numbers near x */
    *exponent = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm512_scalef_ps(_mm512_set1_ps(1.0f), *exponent);
}
/* y, but zero where x is below `least`. */
static inline Reals zero_below(Reals x, Reals least, Reals y) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, least, _CMP_NLT_UQ), y);
}
static inline __m256 eight_sums(Reals x) {
    return _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
}
static inline __m256 eight_largest(Reals x) {
    return _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
}
#elif defined(__AVX2__)
#include <immintrin.h>
#define CAN_MULTIPLY 1
typedef __m256i Ints;
enum { LANES = 8, TALL = 6 }; /* 12 of 16 registers hold sums */
static inline Ints no_ints(void) { return _mm256_setzero_si256(); }
static inline Ints four_inputs(const uint8_t *x) {
    int32_t four;
    memcpy(&four, x, 4);
    return _mm256_set1_epi32(four);
}
static inline Ints weights_of_four(const int8_t *w) { return _mm256_loadu_si256((const Ints *)w); }
static inline void store_ints(int32_t *to, Ints sum) { _mm256_storeu_si256((Ints *)to, sum); }
typedef __m256 Reals;
static inline Reals no_reals(void) { return _mm256_setzero_ps(); }
static inline Reals one_input(const float *x) { return _mm256_broadcast_ss(x); }
static inline Reals some_reals(const float *w) { return _mm256_loadu_ps(w); }
static inline Reals add_products(Reals sum, Reals x, Reals w) { return _mm256_fmadd_ps(x, w, sum); }
static inline void store_reals(float *to, Reals sum) { _mm256_storeu_ps(to, sum); }
static inline Reals some_halves(const uint16_t *x) {
    __m128i halves = _mm_loadu_si128((const __m128i *)x);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
static inline Reals larger(Reals x, Reals y) { return _mm256_max_ps(x, y); }
static inline Reals power_of_two(Reals x, Reals *exponent) { /* of whole numbers near x */
    *exponent = _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256i bits = _mm256_add_epi32(_mm256_cvtps_epi32(*exponent), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 23));
}
static inline Reals zero_below(Reals x, Reals least, Reals y) {
    return _mm256_and_ps(_mm256_cmp_ps(x, least, _CMP_NLT_UQ), y);
}
static inline __m256 eight_sums(Reals x) { return x; }
static inline __m256 eight_largest(Reals x) { return x; }
#if defined(__AVXVNNI__)
enum { MOST_LEVELS = 127, TOGETHER = 4 };
static inline Ints add_four(Ints sum, Ints x, Ints w) { return _mm256_dpbusd_avx_epi32(sum, x, w); }
#else
/* Four products are added in 16 bits; more levels would overflow: 4 * 127 * 63 < 2^15. */
enum { MOST_LEVELS = 63, TOGETHER = 8 };
static inline Ints add_eight(Ints sum, Ints x, Ints w, Ints y, Ints v) {
    Ints fours = _mm256_add_epi16(_mm256_maddubs_epi16(x, w), _mm256_maddubs_epi16(y, v));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(fours, _mm256_set1_epi16(1)));
}
#endif
#else
#define CAN_MULTIPLY 0
enum { LANES = 0, MOST_LEVELS = 0, TOGETHER = 0 };
#endif

#if !defined(CAN_MULTIPLY_BFLOAT16)
#define CAN_MULTIPLY_BFLOAT16 0
#endif

#if CAN_MULTIPLY
/* Sums stay in registers only if every loop over them is unrolled; otherwise GCC copies them in each step. */
#define UNROLL _Pragma("GCC unroll 8")

enum { FOUR = 4 };

/* Inputs 0-3 of a row or of LANES outputs, and inputs 4-7 if TOGETHER is 8. */
typedef struct {
    Ints four[TOGETHER / FOUR];
} Fours;

static inline Fours some_inputs(const uint8_t *x) {
    Fours in;
    UNROLL for (int i = 0; i < TOGETHER / FOUR; i++) in.four[i] = four_inputs(x + FOUR * i);
    return in;
}

static inline Fours some_weights(const int8_t *w) {
    Fours in;
    UNROLL for (int i = 0; i < TOGETHER / FOUR; i++) in.four[i] = weights_of_four(w + FOUR * i * LANES);
    return in;
}

/* Add the products of inputs and weights to the sums of LANES outputs. */
static inline Ints add_dots(Ints sum, Fours x, Fours w) {
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
    return add_four(sum, x.four[0], w.four[0]);
#else
    return add_eight(sum, x.four[0], w.four[0], x.four[1], w.four[1]);
#endif
}

/* A register in which all numbers are equal. */
static inline Reals all_the_same(float x) { return one_input(&x); }

static inline float sum_of(Reals x) {
    __m256 eight = eight_sums(x);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_shuffle_ps(four, four, 1)));
}

static inline float largest_of(Reals x) {
    __m256 eight = eight_largest(x);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_shuffle_ps(four, four, 1)));
}

/* The sum of the numbers of each of four registers. */
static inline void four_sums(const Reals *x, float *out) {
    __m256 pairs = _mm256_hadd_ps(eight_sums(x[0]), eight_sums(x[1]));
    __m256 more = _mm256_hadd_ps(eight_sums(x[2]), eight_sums(x[3]));
    __m256 halves = _mm256_hadd_ps(pairs, more);
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1)));
}
#endif
