/*
Dropout and the sum that follows it, in one pass. Nothing is kept for the backward pass: the random
bits are a function of the seed and of the element's index, so they are drawn again.

Philox 4x32-10 (Salmon et al. 2011) with the key `seed` gives eight times sixteen bits for each counter.
Eight counters give the bits of 64 elements: first the two lower words of each, then the two upper ones.
*/

enum { COUNTERS = 8, ELEMENTS = 64, BLOCK = 64 * ELEMENTS };

#if defined(__AVX512VNNI__)
enum { REGISTERS = 1 };
typedef __m512i Words; /* elements of 64 bits, whose lower halves are used */
static inline Words words_of(uint64_t x) { return _mm512_set1_epi64((long long)x); }
static inline Words first_counters(void) { return _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7); }
static inline Words times(Words x, Words y) { return _mm512_mul_epu32(x, y); }
static inline Words upper(Words x) { return _mm512_srli_epi64(x, 32); }
static inline Words both(Words x, Words y) { /* lower halves of x, and of y above them */
    return _mm512_mask_blend_epi32(0xaaaa, x, _mm512_slli_epi64(y, 32));
}
static inline void store_words(uint16_t *to, Words x) { _mm512_storeu_si512(to, x); }
#else
enum { REGISTERS = 2 };
typedef __m256i Words;
static inline Words words_of(uint64_t x) { return _mm256_set1_epi64x((long long)x); }
static inline Words first_counters(void) { return _mm256_setr_epi64x(0, 1, 2, 3); }
static inline Words times(Words x, Words y) { return _mm256_mul_epu32(x, y); }
static inline Words upper(Words x) { return _mm256_srli_epi64(x, 32); }
static inline Words both(Words x, Words y) {
    return _mm256_blend_epi32(x, _mm256_slli_epi64(y, 32), 0xaa);
}
static inline void store_words(uint16_t *to, Words x) { _mm256_storeu_si256((__m256i *)to, x); }
#endif

/* Draw sixteen bits for each of 64 elements. */
static inline void draw_bits(uint64_t seed, uint64_t first_counter, uint16_t *bits) {
    for (int part = 0; part < REGISTERS; part++) {
        uint64_t before = first_counter + (uint64_t)(part * COUNTERS / REGISTERS);
        Words counter = first_counters() + words_of(before);
        Words word[4] = {counter, upper(counter), words_of(0), words_of(0)};
        uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
        for (int round = 0; round < 10; round++) {
            Words low = times(word[0], words_of(0xD2511F53)), high = times(word[2], words_of(0xCD9E8D57));
            word[0] = upper(high) ^ word[1] ^ words_of(key0);
            word[1] = high;
            word[2] = upper(low) ^ word[3] ^ words_of(key1);
            word[3] = low;
            key0 += 0x9E3779B9, key1 += 0xBB67AE85;
        }
        uint16_t *to = bits + part * ELEMENTS / 2 / REGISTERS;
        store_words(to, both(word[0], word[1]));
        store_words(to + ELEMENTS / 2, both(word[2], word[3]));
    }
}

static inline __attribute__((always_inline)) void add_thinned_block(
    const void *x, const void *y, size_t first, size_t last, const uint16_t *bits, int threshold,
    float scale, int is_fp32, void *out) {
    for (size_t i = first; i < last; i++) {
        float from = is_fp32 ? ((const float *)y)[i] : from_bfloat16(((const uint16_t *)y)[i]);
        float sum = bits[i - first] >= threshold ? from * scale : 0.0f;
        if (x) sum += is_fp32 ? ((const float *)x)[i] : from_bfloat16(((const uint16_t *)x)[i]);
        if (is_fp32)
            ((float *)out)[i] = sum;
        else
            ((uint16_t *)out)[i] = to_bfloat16(sum);
    }
}

/* out = x + scale * y, where y is zero if its sixteen bits are below the threshold; x may be NULL. */
void add_thinned(const void *x, const void *y, int64_t count, uint64_t seed, int threshold, float scale,
                 int is_fp32, int threads, void *out) {
    int64_t blocks = (count + BLOCK - 1) / BLOCK;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t block = 0; block < blocks; block++) {
        uint16_t bits[BLOCK];
        size_t first = (size_t)block * BLOCK;
        size_t last = block + 1 < blocks ? first + BLOCK : (size_t)count;
        for (size_t at = first; at < last; at += ELEMENTS)
            draw_bits(seed, at / ELEMENTS * COUNTERS, bits + (at - first));
        if (is_fp32)
            add_thinned_block(x, y, first, last, bits, threshold, scale, 1, out);
        else if (x)
            add_thinned_block(x, y, first, last, bits, threshold, scale, 0, out);
        else
            add_thinned_block(NULL, y, first, last, bits, threshold, scale, 0, out);
    }
}
