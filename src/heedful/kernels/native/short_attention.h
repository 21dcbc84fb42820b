/*
Attention of short rows in training: equation 1 of the paper and its gradients.

The tokens of all rows lie one after the other, with or without padding. `starts` has the index of the
first token of each row, `places` the position of each token in its row, for the mask. One head of one
row is computed at a time, in fp32, while its queries, keys and values are in the near caches. Nothing
is kept for the backward pass: computing the weights again is faster than reading them from memory.
*/

typedef struct {
    const int64_t *starts; /* index of each row's first token, and of the end */
    const int64_t *places;
    int apart; /* numbers from one token to the next */
} Tokens;

typedef struct {
    const void *query, *key, *value; /* of the first head */
    Tokens queries, keys;
    const uint8_t *mask; /* one where a query may attend to a key; NULL for everywhere */
    int64_t mask_row, mask_head, mask_query, mask_key; /* bytes from one to the next */
    int rows, heads, d_k, d_v;
    int longest_queries, longest_keys; /* of a row */
    int is_fp32, threads;
} ShortAttention;

/* One head of one row; rows of floats are filled up with zeros to whole registers. */
typedef struct {
    float *query, *key, *value;             /* (n or m, width) */
    float *key_columns, *value_columns;     /* (width, m) */
    float *weights, *d_weights;             /* (n, m) */
    float *d_context, *out;                 /* (n, d_v); (n or m, width) */
    int64_t first_query, first_key;
    int n, m;                               /* queries and keys */
    int m_filled, d_k_filled, d_v_filled;   /* rounded up to whole registers */
} Head;

enum { PANELS_AT_ONCE = 2 };

/* A tile of a product: rows of x, with any strides, times `PANELS` registers of y. */
#define SUM_TILE(ROWS, PANELS)                                                                        \
    static void sum_tile_##ROWS##_##PANELS(const float *x, int x_row, int x_inner, int inner,         \
                                           const float *y, int y_apart, float *out, int out_apart) {  \
        Reals sum[ROWS][PANELS];                                                                      \
        UNROLL for (int r = 0; r < ROWS; r++)                                                         \
            UNROLL for (int p = 0; p < PANELS; p++) sum[r][p] = no_reals();                           \
        for (int i = 0; i < inner; i++) {                                                             \
            Reals by[PANELS];                                                                         \
            UNROLL for (int p = 0; p < PANELS; p++) by[p] = some_reals(y + i * y_apart + p * LANES);  \
            UNROLL for (int r = 0; r < ROWS; r++) {                                                   \
                Reals one = one_input(x + r * x_row + i * x_inner);                                   \
                UNROLL for (int p = 0; p < PANELS; p++) sum[r][p] = add_products(sum[r][p], one, by[p]); \
            }                                                                                         \
        }                                                                                             \
        UNROLL for (int r = 0; r < ROWS; r++)                                                         \
            UNROLL for (int p = 0; p < PANELS; p++)                                                   \
                store_reals(out + r * out_apart + p * LANES, sum[r][p]);                              \
    }
#define SUM_TILES(ROWS) SUM_TILE(ROWS, 1) SUM_TILE(ROWS, 2)
SUM_TILES(1) SUM_TILES(2) SUM_TILES(3) SUM_TILES(4) SUM_TILES(5) SUM_TILES(6)
#if defined(__AVX512VNNI__)
SUM_TILES(7) SUM_TILES(8)
#endif

typedef void (*SumTile)(const float *, int, int, int, const float *, int, float *, int);
#define OF_ROWS(ROWS) {sum_tile_##ROWS##_1, sum_tile_##ROWS##_2}
static const SumTile SUM_TILE_OF[TALL][PANELS_AT_ONCE] = {
    OF_ROWS(1), OF_ROWS(2), OF_ROWS(3), OF_ROWS(4), OF_ROWS(5), OF_ROWS(6),
#if defined(__AVX512VNNI__)
    OF_ROWS(7), OF_ROWS(8),
#endif
};

/* out = x y, for x (rows, inner) with any strides, y (inner, width), out (rows, width). */
static void sum_products(const float *x, int x_row, int x_inner, int rows, int inner, const float *y, int width,
                     float *out) {
    for (int column = 0; column < width; column += PANELS_AT_ONCE * LANES) {
        int panels = column + LANES < width ? 2 : 1;
        for (int row = 0; row < rows; row += TALL) {
            int tall = row + TALL < rows ? TALL : rows - row;
            SUM_TILE_OF[tall - 1][panels - 1](x + row * x_row, x_row, x_inner, inner, y + column, width,
                                              out + row * width + column, width);
        }
    }
}

/* Read `count` tokens of a head as floats, times a factor; fill up rows and tokens with zeros. */
static void read_tokens(const void *numbers, int64_t first, int count, int apart, int head, int width,
                        int filled, int filled_count, int is_fp32, float factor, float *to) {
    for (int token = 0; token < count; token++, to += filled) {
        size_t at = (size_t)(first + token) * (size_t)apart + (size_t)head * (size_t)width;
        const char *next = (const char *)numbers + (at + (size_t)width) * (is_fp32 ? 4 : 2);
        for (int i = 0; i < width * (is_fp32 ? 4 : 2); i += 64) __builtin_prefetch(next + i);
        if (is_fp32)
            for (int i = 0; i < width; i++) to[i] = factor * ((const float *)numbers)[at + i];
        else
            for (int i = 0; i < width; i++) to[i] = factor * from_bfloat16(((const uint16_t *)numbers)[at + i]);
        for (int i = width; i < filled; i++) to[i] = 0.0f;
    }
    memset(to, 0, (size_t)(filled_count - count) * (size_t)filled * sizeof(float));
}

/* Write tokens of a head, times a factor. */
static void write_tokens(const float *from, int64_t first, int count, int apart, int head, int width,
                         int filled, int is_fp32, float factor, void *numbers) {
    for (int token = 0; token < count; token++, from += filled) {
        size_t at = (size_t)(first + token) * (size_t)apart + (size_t)head * (size_t)width;
        if (is_fp32)
            for (int i = 0; i < width; i++) ((float *)numbers)[at + i] = factor * from[i];
        else
            for (int i = 0; i < width; i++) ((uint16_t *)numbers)[at + i] = to_bfloat16(factor * from[i]);
    }
}

/* Transpose, eight by eight; both sizes are multiples of eight. */
static void turn(const float *x, int rows, int width, float *to) {
    for (int row = 0; row < rows; row += 8)
        for (int i = 0; i < width; i += 8) {
            __m256 a[8], b[8];
            UNROLL for (int k = 0; k < 8; k++) a[k] = _mm256_loadu_ps(x + (row + k) * width + i);
            UNROLL for (int k = 0; k < 8; k += 2) {
                b[k] = _mm256_unpacklo_ps(a[k], a[k + 1]);
                b[k + 1] = _mm256_unpackhi_ps(a[k], a[k + 1]);
            }
            UNROLL for (int k = 0; k < 8; k += 4) {
                a[k] = _mm256_shuffle_ps(b[k], b[k + 2], 0x44);
                a[k + 1] = _mm256_shuffle_ps(b[k], b[k + 2], 0xee);
                a[k + 2] = _mm256_shuffle_ps(b[k + 1], b[k + 3], 0x44);
                a[k + 3] = _mm256_shuffle_ps(b[k + 1], b[k + 3], 0xee);
            }
            UNROLL for (int k = 0; k < 4; k++) {
                __m256 first = _mm256_permute2f128_ps(a[k], a[k + 4], 0x20);
                __m256 last = _mm256_permute2f128_ps(a[k], a[k + 4], 0x31);
                _mm256_storeu_ps(to + (i + k) * rows + row, first);
                _mm256_storeu_ps(to + (i + k + 4) * rows + row, last);
            }
        }
}

/* Scores of forbidden keys become minus infinity. */
static void forbid(const ShortAttention *of, int row, int head, const Head *part) {
    const int64_t *query_place = of->queries.places + part->first_query;
    const int64_t *key_place = of->keys.places + part->first_key;
    const uint8_t *mask = of->mask + row * of->mask_row + head * of->mask_head;
    int in_turn = of->mask_key == 1 && key_place[0] == 0 && key_place[part->m - 1] == part->m - 1;
    for (int i = 0; i < part->n; i++) {
        const uint8_t *allowed = mask + query_place[i] * of->mask_query;
        float *score = part->weights + i * part->m_filled;
        if (in_turn)
            for (int k = 0; k < part->m; k++) score[k] = allowed[k] ? score[k] : -INFINITY;
        else
            for (int k = 0; k < part->m; k++)
                score[k] = allowed[key_place[k] * of->mask_key] ? score[k] : -INFINITY;
    }
}

static size_t floats_of(Head *part, int n, int m, int d_k, int d_v, float *memory) {
    size_t at = 0;
    part->n = n, part->m = m;
    part->m_filled = whole_registers(m);
    part->d_k_filled = whole_registers(d_k), part->d_v_filled = whole_registers(d_v);
    size_t keys = (size_t)part->m_filled, queries = (size_t)n, most = n > m ? (size_t)n : (size_t)m;
    size_t k_wide = (size_t)part->d_k_filled, v_wide = (size_t)part->d_v_filled;
#define TAKE(WHAT, COUNT) part->WHAT = memory + at, at += (COUNT)
    TAKE(query, queries * k_wide);
    TAKE(key, keys * k_wide);
    TAKE(value, keys * v_wide);
    TAKE(key_columns, keys * k_wide);
    TAKE(value_columns, keys * v_wide);
    TAKE(weights, queries * keys);
    TAKE(d_weights, queries * keys);
    TAKE(d_context, queries * v_wide);
    TAKE(out, most * (k_wide > v_wide ? k_wide : v_wide));
#undef TAKE
    return at;
}

/* Floats that each thread needs for rows of this length. */
size_t short_attention_memory(int n, int m, int d_k, int d_v) {
    Head part;
    return floats_of(&part, n, m, d_k, d_v, NULL);
}

/* Read queries, keys and values, and compute the weights. */
static void weigh_keys(const ShortAttention *of, int row, int head, float *memory, Head *part) {
    const int64_t *query = of->queries.starts + row, *key = of->keys.starts + row;
    int n = (int)(query[1] - query[0]), m = (int)(key[1] - key[0]);
    floats_of(part, n, m, of->d_k, of->d_v, memory);
    part->first_query = query[0], part->first_key = key[0];
    read_tokens(of->query, query[0], n, of->queries.apart, head, of->d_k, part->d_k_filled, n, of->is_fp32,
                1.0f / sqrtf((float)of->d_k), part->query);
    read_tokens(of->key, key[0], m, of->keys.apart, head, of->d_k, part->d_k_filled, part->m_filled,
                of->is_fp32, 1.0f, part->key);
    read_tokens(of->value, key[0], m, of->keys.apart, head, of->d_v, part->d_v_filled, part->m_filled,
                of->is_fp32, 1.0f, part->value);
    turn(part->key, part->m_filled, part->d_k_filled, part->key_columns);
    sum_products(part->query, part->d_k_filled, 1, n, of->d_k, part->key_columns, part->m_filled, part->weights);
    if (of->mask && m > 0) forbid(of, row, head, part);
    for (int i = 0; i < n && m > 0; i++) softmax_row(part->weights + i * part->m_filled, m);
}

/* `context`: (tokens, heads * d_v). */
void short_attention(const ShortAttention *of, float *memory, void *context) {
    size_t each = short_attention_memory(of->longest_queries, of->longest_keys, of->d_k, of->d_v);
#pragma omp parallel for num_threads(of->threads) schedule(dynamic, 4) if (of->threads > 1)
    for (int task = 0; task < of->rows * of->heads; task++) {
        Head part;
        int row = task / of->heads, head = task % of->heads;
        weigh_keys(of, row, head, memory + each * (size_t)omp_get_thread_num(), &part);
        sum_products(part.weights, part.m_filled, 1, part.n, part.m, part.value, part.d_v_filled, part.out);
        write_tokens(part.out, part.first_query, part.n, of->heads * of->d_v, head, of->d_v, part.d_v_filled,
                     of->is_fp32, 1.0f, context);
    }
}

/* Gradient of a query's scores: weight x (gradient of the weight - weighted mean of these gradients). */
static void softmax_gradient(const float *weights, int width, float *d_weights) {
    Reals sum = no_reals();
    for (int k = 0; k < width; k += LANES)
        sum = add_products(sum, some_reals(weights + k), some_reals(d_weights + k));
    Reals mean = all_the_same(sum_of(sum));
    for (int k = 0; k < width; k += LANES)
        store_reals(d_weights + k, some_reals(weights + k) * (some_reals(d_weights + k) - mean));
}

/* The gradients have the layout of the queries, keys and values. */
void short_attention_gradients(const ShortAttention *of, const void *d_context, float *memory, void *d_query,
                               void *d_key, void *d_value) {
    size_t each = short_attention_memory(of->longest_queries, of->longest_keys, of->d_k, of->d_v);
    float factor = 1.0f / sqrtf((float)of->d_k);
#pragma omp parallel for num_threads(of->threads) schedule(dynamic, 4) if (of->threads > 1)
    for (int task = 0; task < of->rows * of->heads; task++) {
        Head part;
        int row = task / of->heads, head = task % of->heads;
        weigh_keys(of, row, head, memory + each * (size_t)omp_get_thread_num(), &part);
        int n = part.n, m = part.m, wide = part.m_filled;
        read_tokens(d_context, part.first_query, n, of->heads * of->d_v, head, of->d_v, part.d_v_filled, n,
                    of->is_fp32, 1.0f, part.d_context);
        sum_products(part.weights, 1, wide, m, n, part.d_context, part.d_v_filled, part.out);
        write_tokens(part.out, part.first_key, m, of->keys.apart, head, of->d_v, part.d_v_filled, of->is_fp32,
                     1.0f, d_value);
        turn(part.value, wide, part.d_v_filled, part.value_columns);
        sum_products(part.d_context, part.d_v_filled, 1, n, of->d_v, part.value_columns, wide, part.d_weights);
        for (int i = 0; i < n; i++)
            softmax_gradient(part.weights + i * wide, wide, part.d_weights + i * wide);
        sum_products(part.d_weights, wide, 1, n, m, part.key, part.d_k_filled, part.out);
        write_tokens(part.out, part.first_query, n, of->queries.apart, head, of->d_k, part.d_k_filled,
                     of->is_fp32, factor, d_query);
        sum_products(part.d_weights, 1, wide, m, n, part.query, part.d_k_filled, part.out);
        write_tokens(part.out, part.first_key, m, of->keys.apart, head, of->d_k, part.d_k_filled, of->is_fp32,
                     1.0f, d_key);
    }
}
