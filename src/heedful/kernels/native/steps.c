/*
The layers of a Transformer, in fp32, bfloat16 or 8 bits, from the first to the last in one call.

With enough sentences, each thread computes some of them and never waits. With few sentences, all threads
share the rows, split every product by its outputs, and wait after each stage. The result of a row depends
neither on the number of threads nor on other rows.
*/

#include <omp.h>
#include <stddef.h>

#include "numbers.h"
#include "product.h"

int lanes(void) { return LANES; }
int can_multiply_bfloat16(void) { return CAN_MULTIPLY_BFLOAT16; }
int inputs_at_once(void) { return TOGETHER; }
int most_levels(void) { return MOST_LEVELS; }

#if CAN_MULTIPLY
#include "rotation.h"
#include "attention.h"
#include "activations.h"

/*
The projections and linear layers of a layer. In an encoder `query_proj` and `cross_out_proj` have no
weights. In a pre-norm stack norms[i] is the norm before the next sub-layer.
*/
typedef struct {
    Product qkv_proj, out_proj, query_proj, cross_out_proj, linear1, linear2;
    Norm norms[3];
} Layer;

typedef struct {
    const Layer *layers;
    const Norm *first; /* first norm of a pre-norm stack; NULL for post-norm, as in the paper */
    int count, d_model, heads, d_k, d_v;
    int kind, levels; /* format of inputs of products, and in 8 bits their levels */
    int activation;   /* of the feed-forward networks */
} Stack;

/* Keys and values of one layer: (sentences, heads, slots, width of a head), in fp32 or bfloat16. */
typedef struct {
    void *keys, *values;
} KeyValue;

/*
`mask_bias` is negative where a position must not attend. The row for position w of sentence s begins
at (s * width + w) * stride, or at s * stride if all positions of a sentence have the same mask.
`distances`, if not NULL, has a bias for each head and each distance from -reach to reach
(`add_distances`). `cosines` and `sines`, if not NULL, have the angles by which queries and keys are rotated,
a row for each of `width` positions; if `turn_apart` is 0, all positions have the first row.
*/
typedef struct {
    const KeyValue *layers;
    const float *mask_bias;
    int stride, same, slots, filled;
    const float *distances;
    int reach, is_step;
    const float *cosines, *sines;
    int turn_apart;
} Attended;

/* `normal` receives the last norm of a pre-norm stack. */
typedef struct {
    Attended own, source;
    float *states, *normal;
    int sentences, width;
} Work;

/* Results between two stages, for some rows. */
typedef struct {
    float *product, *context, *largest;
    char *input; /* in the format of inputs of products */
} Room;

static int widest_product(const Stack *stack) {
    const Layer *layer = stack->layers;
    int most = stack->d_model;
    if (layer->qkv_proj.outer > most) most = layer->qkv_proj.outer;
    if (layer->linear1.outer > most) most = layer->linear1.outer;
    return most;
}

/* Bytes of the results of this many rows. */
static size_t room_for(const Stack *stack, int rows) {
    int widest = widest_product(stack), context = stack->heads * stack->d_v;
    int input = context > widest ? context : widest;
    size_t inputs = bytes_of(stack->kind) * (size_t)input;
    return (size_t)rows * (4 * ((size_t)widest + (size_t)context + 1) + inputs) + FOUR;
}

static Room room_at(const Stack *stack, char *memory, int rows) {
    Room room;
    room.product = (float *)memory;
    room.context = room.product + (size_t)rows * (size_t)widest_product(stack);
    room.largest = room.context + (size_t)rows * (size_t)(stack->heads * stack->d_v);
    room.input = (char *)(room.largest + rows);
    return room;
}

/* Write a row as input of the next product. */
static void put_row(const Stack *stack, const Room *room, int row, const float *x, int width, int positive) {
    char *to = room->input + (size_t)row * (size_t)width * bytes_of(stack->kind);
    room->largest[row] = write_row(x, width, stack->kind, stack->levels, positive, to);
}

/* List the slots that each row of a mask may attend to, and their number. */
typedef struct {
    int *counts, *which;
} List;

static size_t list_bytes(const Attended *view, int sentences, int width) {
    return (size_t)(sentences * (view->same ? 1 : width)) * (size_t)(view->filled + 1) * sizeof(int);
}

static List list_at(const Attended *view, char *memory, int sentences, int width) {
    List list;
    list.counts = (int *)memory;
    list.which = list.counts + sentences * (view->same ? 1 : width);
    return list;
}

static void fill_list(const Attended *view, int first_row, int from, int to, List list) {
    for (int row = from; row < to; row++) {
        const float *bar = view->mask_bias + (size_t)(first_row + row) * (size_t)view->stride;
        int count = 0, *which = list.which + (size_t)row * (size_t)view->filled;
        for (int t = 0; t < view->filled; t++) {
            which[count] = t;
            count += bar[t] > -1.0f;
        }
        list.counts[row] = count;
    }
}

/*
Attention of `width` positions of one sentence with one head. The slots of a sentence hold the
tokens of all its hypotheses, so only the listed slots are read. Rows of `product` begin with
queries. If `newest`, keys and values follow; before the attention they are written to the last slots.
`row` is the sentence's first row in the list.
*/
static inline __attribute__((always_inline)) void attend(
    const Stack *stack, const Attended *view, List list, int row, const float *product, int in_width,
    int newest, int layer, int sentence, int head, int width, int is_fp32, float *scratch, float *context) {
    int heads = stack->heads, d_k = stack->d_k, d_v = stack->d_v, filled = view->filled;
    size_t place = (size_t)(sentence * heads + head) * (size_t)view->slots * (is_fp32 ? 4 : 2);
    void *keys = (char *)view->layers[layer].keys + place * (size_t)d_k;
    void *values = (char *)view->layers[layer].values + place * (size_t)d_v;
    float root = 1.0f / sqrtf((float)d_k);
    float *query = scratch, *score = query + FOUR * d_k;
    for (int w = 0; w < width && newest; w++) {
        size_t at = (size_t)(filled - width + w);
        const float *in = product + (size_t)w * in_width + heads * d_k + head * d_k;
        keep_row(in, d_k, at, is_fp32, keys);
        in = product + (size_t)w * in_width + 2 * heads * d_k + head * d_v;
        keep_row(in, d_v, at, is_fp32, values);
    }
    int apart = whole_registers(filled), alone = !view->same; /* a list for each query */
    const float *zero = view->distances ? view->distances + head * (2 * view->reach + 1) + view->reach : NULL;
    for (int w = 0, queries; w < width; w += queries) {
        queries = width - w < FOUR ? width - w : FOUR;
        int line = row + alone * w, together = view->same && queries == FOUR;
        const int *counts = list.counts + line, *which = list.which + (size_t)line * (size_t)filled;
        float *out = context + (size_t)w * heads * d_v + head * d_v;
        for (int q = 0; q < queries; q++) {
            const float *in = product + (size_t)(w + q) * in_width + head * d_k;
            for (int i = 0; i < d_k; i++) query[q * d_k + i] = in[i] * root;
        }
        /* each stage for all queries: a processor computes several at once */
        if (together) score_for_four(query, which, *counts, keys, d_k, values, d_v, is_fp32, score, apart);
        for (int q = 0; q < queries && !together; q++)
            score_for_one(query + q * d_k, which + alone * q * filled, counts[alone * q], keys, d_k, values, d_v,
                          is_fp32, score + (size_t)q * apart);
        for (int q = 0; q < queries && zero; q++)
            add_distances(score + (size_t)q * apart, which + alone * q * filled, counts[alone * q], zero,
                          view->is_step, w + q);
        for (int q = 0; q < queries; q++) softmax_row(score + (size_t)q * apart, counts[alone * q]);
        if (together) weigh_for_four(score, apart, which, *counts, values, d_v, is_fp32, out, heads * d_v);
        for (int q = 0; q < queries && !together; q++)
            weigh(score + (size_t)q * apart, which + alone * q * filled, counts[alone * q], values, d_v, is_fp32,
                  out + (size_t)q * heads * d_v);
    }
}

/* Wait for the other threads, if they share rows. */
#define WAIT                                                                                      \
    if (team > 1) {                                                                               \
        _Pragma("omp barrier")                                                                    \
    }

/* The sentences of one thread, alone or in a team, and the rows that it finishes. */
typedef struct {
    int first, last, me, team, from, to;
    Room room;
    List own, source;
    float *scratch;
} Part;

/* Rotate the queries and keys of one head, which follow each other in the rows of a product. */
static void rotate_newest(const Stack *stack, const Attended *view, float *product, int in_width, int head,
                          int width) {
    int d_k = stack->d_k;
    for (int w = 0; w < width; w++) {
        float *query = product + (size_t)w * in_width + head * d_k, *key = query + stack->heads * d_k;
        const float *cosines = view->cosines + (size_t)w * view->turn_apart;
        const float *sines = view->sines + (size_t)w * view->turn_apart;
        rotate_head(query, cosines, sines, d_k / 2, 1.0f, 1, query);
        rotate_head(key, cosines, sines, d_k / 2, 1.0f, 1, key);
    }
}

static void project_and_attend(const Stack *stack, const Work *work, const Product *by, int newest,
                               int layer, const Part *part) {
    const Attended *view = newest ? &work->own : &work->source;
    List list = newest ? part->own : part->source;
    int me = part->me, team = part->team, width = work->width, wide = stack->heads * stack->d_v;
    const Room *room = &part->room;
    int rows = (part->last - part->first) * width, units = (part->last - part->first) * stack->heads;
    multiply(by, room->input, room->largest, rows, me, team, room->product);
    WAIT
    for (int unit = units * me / team; unit < units * (me + 1) / team; unit++) {
        int local = unit / stack->heads, row = local * width;
        float *in = room->product + (size_t)row * by->outer;
        float *out = room->context + (size_t)row * wide;
        int line = view->same ? local : row, sentence = part->first + local, head = unit % stack->heads;
        if (newest && view->cosines) rotate_newest(stack, view, in, by->outer, head, width);
        if (stack->kind != FP32)
            attend(stack, view, list, line, in, by->outer, newest, layer, sentence, head, width, 0,
                   part->scratch, out);
        else
            attend(stack, view, list, line, in, by->outer, newest, layer, sentence, head, width, 1,
                   part->scratch, out);
    }
    WAIT
    for (int row = part->from; row < part->to; row++)
        put_row(stack, room, row, room->context + (size_t)row * wide, wide, 0);
    WAIT
}

/*
Multiply by the last matrix of a sub-layer, add the result to the states, normalize, and write it as
input of the next product.
Post-norm (the paper): the states become the normalized sum. Pre-norm: the states are the sum, and
the normalized sum goes to the next sub-layer.
*/
static void add_norm(const Stack *stack, const Work *work, const Product *by, const Norm *norm,
                     int is_last, const Part *part) {
    int me = part->me, team = part->team, wide = stack->d_model, pre = stack->first != NULL;
    const Room *room = &part->room;
    int rows = (part->last - part->first) * work->width;
    multiply(by, room->input, room->largest, rows, me, team, room->product);
    WAIT
    for (int row = part->from; row < part->to; row++) {
        size_t at = (size_t)(part->first * work->width + row) * (size_t)wide;
        float *found = room->product + (size_t)row * wide, *state = work->states + at;
        for (int i = 0; i < wide; i++) state[i] += found[i];
        norm_row(norm, state, wide, found);
        if (!pre) memcpy(state, found, (size_t)wide * sizeof(float));
        if (pre && is_last) memcpy(work->normal + at, found, (size_t)wide * sizeof(float));
        put_row(stack, room, row, found, wide, 0);
    }
    WAIT
}

/* List the slots that the rows of this thread may attend to. */
static void list_slots(const Work *work, const Part *part) {
    const Attended *views[2] = {&work->own, &work->source};
    List lists[2] = {part->own, part->source};
    for (int v = 0; v < 2; v++) {
        int same = views[v]->same, begin = part->first * (same ? 1 : work->width);
        int all = part->last - part->first;
        if (!views[v]->layers) continue;
        int from = same ? all * part->me / part->team : part->from;
        int to = same ? all * (part->me + 1) / part->team : part->to;
        fill_list(views[v], begin, from, to, lists[v]);
    }
}

static void all_layers(const Stack *stack, const Work *work, const Part *part) {
    int me = part->me, team = part->team, wide = stack->d_model;
    list_slots(work, part);
    const Room *room = &part->room;
    int rows = (part->last - part->first) * work->width;
    for (int row = part->from; row < part->to; row++) {
        const float *state = work->states + (size_t)(part->first * work->width + row) * wide;
        float *line = room->product + (size_t)row * wide;
        if (stack->first) norm_row(stack->first, state, wide, line);
        put_row(stack, room, row, stack->first ? line : state, wide, 0);
    }
    WAIT
    for (int l = 0; l < stack->count; l++) {
        const Layer *layer = stack->layers + l;
        const Norm *norm = layer->norms;
        project_and_attend(stack, work, &layer->qkv_proj, 1, l, part);
        add_norm(stack, work, &layer->out_proj, norm++, 0, part);
        if (layer->query_proj.weights) {
            project_and_attend(stack, work, &layer->query_proj, 0, l, part);
            add_norm(stack, work, &layer->cross_out_proj, norm++, 0, part);
        }
        multiply(&layer->linear1, room->input, room->largest, rows, me, team, room->product);
        WAIT
        int outer = layer->linear1.outer, inner = layer->linear2.inner, gated = inner < outer;
        int positive = stack->activation == RELU && !gated; /* `put_row` applies ReLU */
        for (int row = part->from; row < part->to; row++) {
            float *line = room->product + (size_t)row * outer;
            if (!positive) activate_row(line, inner, gated, stack->activation);
            put_row(stack, room, row, line, inner, positive);
        }
        WAIT
        add_norm(stack, work, &layer->linear2, norm, l + 1 == stack->count, part);
    }
}

static size_t rounded(size_t bytes) { return (bytes + 255) / 256 * 256; }

/* Bytes of scratch memory of `attend`: four queries and their scores. */
static size_t scratch_for(const Stack *stack, const Work *work) {
    int filled = work->own.filled > work->source.filled ? work->own.filled : work->source.filled;
    return rounded(FOUR * (size_t)(stack->d_k + whole_registers(filled)) * sizeof(float));
}

/* Bytes that every thread needs: scratch, lists, and room for this many sentences. */
size_t memory_for(const Stack *stack, const Work *work, int sentences) {
    return scratch_for(stack, work) + rounded(list_bytes(&work->own, sentences, work->width)) +
           rounded(list_bytes(&work->source, sentences, work->width)) +
           rounded(room_for(stack, sentences * work->width));
}

/* Divide the memory: `own` is for the thread, `shared` for all threads of the same sentences. */
static void divide_memory(const Stack *stack, const Work *work, int sentences, char *own, char *shared,
                          Part *part) {
    part->scratch = (float *)own;
    shared += scratch_for(stack, work);
    part->own = list_at(&work->own, shared, sentences, work->width);
    shared += rounded(list_bytes(&work->own, sentences, work->width));
    part->source = list_at(&work->source, shared, sentences, work->width);
    shared += rounded(list_bytes(&work->source, sentences, work->width));
    part->room = room_at(stack, shared, sentences * work->width);
}

/*
Run all layers on all sentences: `block` sentences at a time by one thread, or, if `block` is 0, all
sentences by all threads together. `memory` has `memory_for` bytes for each thread.
*/
void run_layers(const Stack *stack, const Work *work, int block, int threads, char *memory) {
    int at_once = block ? block : work->sentences, rows = at_once * work->width;
    int blocks = (work->sentences + at_once - 1) / at_once;
    size_t each = memory_for(stack, work, at_once);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int me = omp_get_thread_num();
        char *own = memory + (size_t)me * each;
        Part part = {.last = work->sentences, .me = me, .team = omp_get_num_threads()};
        divide_memory(stack, work, at_once, own, block ? own : memory, &part);
        if (block) {
            part.me = 0, part.team = 1;
#pragma omp for schedule(dynamic)
            for (int b = 0; b < blocks; b++) {
                part.first = b * block;
                part.last = part.first + block < work->sentences ? part.first + block : work->sentences;
                part.to = (part.last - part.first) * work->width;
                all_layers(stack, work, &part);
            }
        } else {
            part.from = rows * me / part.team, part.to = rows * (me + 1) / part.team;
            all_layers(stack, work, &part);
        }
    }
}

/* Logarithms of the softmax of a row, in place. */
static void log_softmax_row(float *line, int width) {
    float best = -1e30f, sum = 0.0f;
#pragma omp simd reduction(max : best)
    for (int i = 0; i < width; i++) best = line[i] > best ? line[i] : best;
    for (int i = 0; i < width; i++) sum += power_of_e(line[i] - best);
    float normalizer = best + logf(sum);
    for (int i = 0; i < width; i++) line[i] -= normalizer;
}

/*
Write rows as inputs of a product. Floats are read in place; `bytes` and `largest` have room for all
rows. All threads of a team call it.
*/
static const void *put_rows(const Product *by, const float *x, int rows, int levels, int positive,
                            uint8_t *bytes, float *largest) {
    size_t inner = (size_t)by->inner, in = inner * bytes_of(by->kind);
    if (by->kind == FP32) return x;
#pragma omp for
    for (int row = 0; row < rows; row++)
        largest[row] = write_row(x + row * inner, by->inner, by->kind, levels, positive, bytes + row * in);
    return bytes;
}

/* Turn states into log-probabilities. */
void log_probabilities(const Product *by, const float *states, int rows, int levels, int threads,
                       uint8_t *bytes, float *largest, float *out) {
    int outer = by->outer, block = 32;
    size_t in = (size_t)by->inner * bytes_of(by->kind);
    int blocks = (rows + block - 1) / block, apart = threads == 1 || blocks >= threads;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int me = omp_get_thread_num(), team = apart ? 1 : omp_get_num_threads();
        const char *x = put_rows(by, states, rows, levels, 0, bytes, largest);
        if (!apart) multiply(by, x, largest, rows, me, team, out);
#pragma omp barrier
#pragma omp for schedule(dynamic)
        for (int b = 0; b < (apart ? blocks : rows); b++) {
            int first = apart ? b * block : b;
            int last = apart ? (first + block < rows ? first + block : rows) : b + 1;
            if (apart)
                multiply(by, x + first * in, largest + first, last - first, 0, 1,
                         out + (size_t)first * outer);
            for (int row = first; row < last; row++) log_softmax_row(out + (size_t)row * outer, outer);
        }
    }
}

/* out = x W^T + b for rows of floats. */
void product_rows(const Product *by, const float *x, int rows, int levels, int positive, int threads,
                  uint8_t *bytes, float *largest, float *out) {
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int me = omp_get_thread_num(), team = omp_get_num_threads();
        multiply(by, put_rows(by, x, rows, levels, positive, bytes, largest), largest, rows, me, team, out);
    }
}

#include "dropout.h"
#include "short_attention.h"
#endif

#include "loss.h"
#include "cell.h"

/* The `wanted` largest numbers of a row, largest first; equal numbers stay in order. */
static void best_of_row(const float *line, int width, int wanted, float *found, int64_t *at) {
    for (int i = 0; i < wanted; i++) found[i] = -INFINITY, at[i] = 0;
    for (int first = 0; first < width; first += 64) {
        int last = first + 64 < width ? first + 64 : width;
        float largest = -INFINITY;
#pragma omp simd reduction(max : largest)
        for (int i = first; i < last; i++) largest = line[i] > largest ? line[i] : largest;
        for (int i = first; largest > found[wanted - 1] && i < last; i++) {
            int place = wanted - 1;
            if (!(line[i] > found[place])) continue;
            for (; place > 0 && line[i] > found[place - 1]; place--)
                found[place] = found[place - 1], at[place] = at[place - 1];
            found[place] = line[i], at[place] = i;
        }
    }
}

void best_of_rows(const float *scores, int rows, int width, int wanted, int threads, float *best,
                  int64_t *where) {
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int row = 0; row < rows; row++)
        best_of_row(scores + (size_t)row * width, width, wanted, best + (size_t)row * wanted,
                    where + (size_t)row * wanted);
}

/*
The `wanted` largest sums of a hypothesis's total and a token's score, for each beam. Only the best
`each` tokens of a row can be among them, so these are found first.
*/
void best_continuations(const float *totals, const float *scores, int beams, int width, int vocabulary,
                        int each, int wanted, int threads, float *row_scores, int64_t *row_tokens,
                        float *sums, float *chosen, int64_t *parents, int64_t *tokens) {
    best_of_rows(scores, beams * width, vocabulary, each, threads, row_scores, row_tokens);
    for (int beam = 0; beam < beams; beam++) {
        size_t row = (size_t)beam * width, to = (size_t)beam * wanted;
        int next[width]; /* of each row, whose tokens are sorted */
        memset(next, 0, sizeof next);
        for (int i = 0; i < wanted; i++, to++) {
            int best = -1;
            float largest = 0.0f;
            for (int w = 0; w < width; w++) {
                if (next[w] == each) continue;
                float sum = totals[row + w] + row_scores[(row + w) * each + next[w]];
                if (best < 0 || sum > largest) best = w, largest = sum;
            }
            size_t at = (row + best) * each + next[best]++;
            sums[to] = largest, chosen[to] = row_scores[at];
            parents[to] = best, tokens[to] = row_tokens[at];
        }
    }
}
