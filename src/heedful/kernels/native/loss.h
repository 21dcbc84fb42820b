/*
The softmax of the loss; each row is computed completely while it is in the nearest cache.

`right` is the score of the right class; `normalizer` is the logarithm of the sum of exponentials. The
row becomes the probabilities, minus `excess` at the right class. The rest of the gradient is the same
for every class (heedful.kernels.loss).
*/

static inline __attribute__((always_inline)) void loss_row(
    const void *row, int64_t target, int classes, float excess, int is_fp32, float *kept, void *out,
    float *right, float *normalizer) {
    float best = read_number(row, 0, is_fp32), sum = 0.0f;
#pragma omp simd reduction(max : best)
    for (int i = 1; i < classes; i++) {
        float score = read_number(row, i, is_fp32);
        best = score > best ? score : best;
    }
    *right = read_number(row, (int)target, is_fp32);
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < classes; i++) sum += kept[i] = power_of_e(read_number(row, i, is_fp32) - best);
    *normalizer = best + logf(sum);
    float each = 1.0f / sum, probability = kept[target] * each;
#pragma omp simd
    for (int i = 0; i < classes; i++) write_number(out, i, kept[i] * each, is_fp32);
    write_number(out, (int)target, probability - excess, is_fp32);
}

/* `out` may be `scores`; `memory` has a row of floats for each thread, used only in bf16. */
void loss_rows(const void *scores, const int64_t *targets, int rows, int classes, float excess,
              int is_fp32, int threads, float *memory, void *out, float *right, float *normalizer) {
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int row = 0; row < rows; row++) {
        size_t at = (size_t)row * (size_t)classes * (is_fp32 ? 4 : 2);
        const char *from = (const char *)scores + at;
        char *to = (char *)out + at;
        float *kept = memory + (size_t)omp_get_thread_num() * (size_t)classes;
        if (is_fp32)
            loss_row(from, targets[row], classes, excess, 1, (float *)to, to, right + row, normalizer + row);
        else
            loss_row(from, targets[row], classes, excess, 0, kept, to, right + row, normalizer + row);
    }
}
