/*
Attention of one head: products of queries and keys, softmax, weighted sums of values.

Keys and values are rows in fp32 or bfloat16. Queries of a sentence that attend to the same slots are
computed four at a time, so that each key and value is read and widened once for four queries. Other
queries read four keys at a time. Both ways add sums in the same order.
*/

/* LANES numbers of a row of keys or values, from the i-th on. */
static inline Reals numbers_of(const void *row, size_t i, int is_fp32) {
    return is_fp32 ? some_reals((const float *)row + i) : some_halves((const uint16_t *)row + i);
}

/* The last `left` numbers of a row, and zeros. In separate loops, GCC might add them in another order. */
static inline Reals last_numbers_of(const void *row, size_t i, int left, int is_fp32) {
    float numbers[LANES] = {0.0f};
    for (int n = 0; n < left; n++)
        numbers[n] = is_fp32 ? ((const float *)row)[i + n] : from_bfloat16(((const uint16_t *)row)[i + n]);
    return some_reals(numbers);
}

static inline void store_last(float *to, Reals numbers, int left) {
    float all[LANES];
    store_reals(all, numbers);
    memcpy(to, all, (size_t)left * sizeof(float));
}

/* Write the row of keys or values at index `place`. */
static inline void keep_row(const float *x, int width, size_t place, int is_fp32, void *rows) {
    size_t first = place * (size_t)width;
    if (is_fp32) memcpy((float *)rows + first, x, (size_t)width * sizeof(float));
    else for (int i = 0; i < width; i++) ((uint16_t *)rows)[first + i] = to_bfloat16(x[i]);
}

/* Prefetch a row of keys or values that will be read soon. */
static inline void fetch_row(const void *rows, size_t place, int width, int is_fp32) {
    size_t bytes = (size_t)width * (is_fp32 ? 4 : 2);
    const char *row = (const char *)rows + place * bytes;
    for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at);
}

/* Products of four queries, rows of `width`, and one key. */
static inline void four_queries(const float *queries, const void *keys, size_t place, int width,
                                int is_fp32, float *out) {
    Reals sums[FOUR] = {no_reals(), no_reals(), no_reals(), no_reals()};
    size_t first = place * (size_t)width;
    int i = 0;
    for (; i + LANES <= width; i += LANES) {
        Reals key = numbers_of(keys, first + i, is_fp32);
        UNROLL for (int q = 0; q < FOUR; q++)
            sums[q] = add_products(sums[q], some_reals(queries + q * width + i), key);
    }
    if (i < width) {
        Reals key = last_numbers_of(keys, first + i, width - i, is_fp32);
        for (int q = 0; q < FOUR; q++)
            sums[q] = add_products(sums[q], last_numbers_of(queries + q * width, i, width - i, 1), key);
    }
    four_sums(sums, out);
}

/* Products of a query and four keys. */
static inline void four_keys(const float *query, const void *keys, const size_t *places, int width,
                             int is_fp32, float *out) {
    Reals sums[FOUR] = {no_reals(), no_reals(), no_reals(), no_reals()};
    int i = 0;
    for (; i + LANES <= width; i += LANES) {
        Reals part = some_reals(query + i);
        UNROLL for (int k = 0; k < FOUR; k++)
            sums[k] = add_products(sums[k], part, numbers_of(keys, places[k] * (size_t)width + i, is_fp32));
    }
    if (i < width) {
        Reals part = last_numbers_of(query, i, width - i, 1);
        for (int k = 0; k < FOUR; k++) {
            size_t at = places[k] * (size_t)width + i;
            sums[k] = add_products(sums[k], part, last_numbers_of(keys, at, width - i, is_fp32));
        }
    }
    four_sums(sums, out);
}

enum { AHEAD = 8 }; /* keys to prefetch, because the keys of a search are rarely in a near cache */

/*
Compute the scores of one query, or of four, for the listed keys, and prefetch the values, which are read
next. The four queries are rows of `width`; the scores of two queries are `apart` numbers apart.
*/
static inline void score_for_one(const float *query, const int *which, int count, const void *keys, int width,
                                 const void *values, int value_width, int is_fp32, float *scores) {
    for (int n = 0; n < count; n += FOUR) {
        size_t places[FOUR];
        float found[FOUR];
        for (int k = 0; k < FOUR; k++) { /* repeats the last key if fewer are left */
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

/* `count`, rounded up to whole registers. */
static inline int whole_registers(int count) { return (count + LANES - 1) / LANES * LANES; }

/* `power_of_e` of each number of a register. */
static inline Reals powers_of_e(Reals x) {
    Reals n, scale;
    x = larger(all_the_same(-87.0f), x); /* in this order, NaN stays NaN */
    scale = power_of_two(x * all_the_same(1.44269504f), &n);
    Reals r = add_products(x, n, all_the_same(-0.693359375f));
    r = add_products(r, n, all_the_same(2.12194440e-4f));
    Reals p = add_products(all_the_same(1.3981999507e-3f), all_the_same(1.9875691500e-4f), r);
    p = add_products(all_the_same(8.3334519073e-3f), p, r);
    p = add_products(all_the_same(4.1665795894e-2f), p, r);
    p = add_products(all_the_same(1.6666665459e-1f), p, r);
    p = add_products(all_the_same(5.0000001201e-1f), p, r);
    p = add_products(r + all_the_same(1.0f), p, r * r);
    return p * scale;
}

/*
Add a bias for the distance of each key to the scores of one query; `zero` points to the bias of 0.
In a step of a search, the listed keys are the tokens of a hypothesis in order, the newest last;
otherwise a slot is a position, and `at` is the query's position.
*/
static inline void add_distances(float *scores, const int *which, int count, const float *zero, int is_step,
                                 int at) {
    for (int n = 0; n < count && is_step; n++) scores[n] += zero[n + 1 - count];
    for (int n = 0; n < count && !is_step; n++) scores[n] += zero[which[n] - at];
}

/*
Turn scores into weights that sum to one. Whole registers are written; numbers beyond the scores get
weight zero, as does a score of minus infinity.
*/
static inline void softmax_row(float *score, int count) {
    int whole = whole_registers(count);
    for (int n = count; n < whole; n++) score[n] = -INFINITY;
    Reals best = some_reals(score), sum = no_reals(), least = all_the_same(-87.0f);
    for (int n = LANES; n < whole; n += LANES) best = larger(best, some_reals(score + n));
    best = all_the_same(largest_of(best));
    for (int n = 0; n < whole; n += LANES) {
        Reals below = some_reals(score + n) - best;
        Reals weight = zero_below(below, least, powers_of_e(below));
        store_reals(score + n, weight);
        sum += weight;
    }
    Reals share = all_the_same(1.0f / sum_of(sum));
    for (int n = 0; n < whole; n += LANES) store_reals(score + n, some_reals(score + n) * share);
}

/* The last numbers of a weighted sum of values, fewer than a register holds. */
static inline void weigh_last(const float *weights, const int *which, int count, const void *values, int width,
                              int first, int is_fp32, float *out) {
    Reals sum = no_reals();
    for (int n = 0; n < count; n++) {
        size_t at = (size_t)which[n] * (size_t)width + first;
        Reals value = last_numbers_of(values, at, width - first, is_fp32);
        sum = add_products(sum, one_input(weights + n), value);
    }
    store_last(out + first, sum, width - first);
}

/* out = the weighted sum of the values that `which` lists. */
static inline void weigh(const float *weights, const int *which, int count, const void *values, int width,
                         int is_fp32, float *out) {
    int first = 0;
    for (; first + FOUR * LANES <= width; first += FOUR * LANES) {
        Reals sums[FOUR] = {no_reals(), no_reals(), no_reals(), no_reals()};
        for (int n = 0; n < count; n++) {
            size_t at = (size_t)which[n] * (size_t)width + first;
            Reals weight = one_input(weights + n);
            UNROLL for (int i = 0; i < FOUR; i++)
                sums[i] = add_products(sums[i], weight, numbers_of(values, at + i * LANES, is_fp32));
        }
        UNROLL for (int i = 0; i < FOUR; i++) store_reals(out + first + i * LANES, sums[i]);
    }
    for (; first + LANES <= width; first += LANES) {
        Reals sum = no_reals();
        for (int n = 0; n < count; n++) {
            size_t at = (size_t)which[n] * (size_t)width + first;
            sum = add_products(sum, one_input(weights + n), numbers_of(values, at, is_fp32));
        }
        store_reals(out + first, sum);
    }
    if (first < width) weigh_last(weights, which, count, values, width, first, is_fp32, out);
}

/* Sums of four queries, whose weights are `weights_apart` numbers apart and whose sums `out_apart`. */
static inline void weigh_for_four(const float *weights, int weights_apart, const int *which, int count,
                                  const void *values, int width, int is_fp32, float *out, int out_apart) {
    int first = 0;
    for (; first + LANES <= width; first += LANES) {
        Reals sums[FOUR] = {no_reals(), no_reals(), no_reals(), no_reals()};
        for (int n = 0; n < count; n++) {
            Reals value = numbers_of(values, (size_t)which[n] * (size_t)width + first, is_fp32);
            UNROLL for (int q = 0; q < FOUR; q++)
                sums[q] = add_products(sums[q], one_input(weights + q * weights_apart + n), value);
        }
        UNROLL for (int q = 0; q < FOUR; q++) store_reals(out + q * out_apart + first, sums[q]);
    }
    for (int q = 0; q < FOUR && first < width; q++)
        weigh_last(weights + q * weights_apart, which, count, values, width, first, is_fp32, out + q * out_apart);
}
