/*
Rotary positions: number j of a head and number j + half form a pair, which is rotated by an angle.

Row `numbers[r]` of `cosines` and `sines` has the angles of row r of x; the numbers repeat after `period`
rows. `direction` is -1 for the opposite rotation, which gives the gradient.
*/

static inline __attribute__((always_inline)) void rotate_head(
    const void *x, const float *cosines, const float *sines, int half, float direction, int is_fp32,
    void *out) {
#pragma omp simd
    for (int j = 0; j < half; j++) {
        float first = read_number(x, j, is_fp32), second = read_number(x, half + j, is_fp32);
        float sine = direction * sines[j];
        write_number(out, j, first * cosines[j] - second * sine, is_fp32);
        write_number(out, half + j, first * sine + second * cosines[j], is_fp32);
    }
}

/*
Rotate the first heads of each row and copy the rest of its `width` numbers. `stride`: numbers from one
row of x to the next; the rows of `out` follow each other.
*/
void rotate(const void *x, int64_t stride, const int64_t *numbers, int64_t period, const float *cosines,
            const float *sines, int64_t rows, int64_t width, int heads, int half, float direction,
            int is_fp32, int threads, void *out) {
    size_t bytes = is_fp32 ? 4 : 2, head = 2 * (size_t)half * bytes;
    size_t rest = (size_t)width * bytes - (size_t)heads * head;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t row = 0; row < rows; row++) {
        size_t at = (size_t)numbers[row % period] * (size_t)half;
        const char *from = (const char *)x + (size_t)row * (size_t)stride * bytes;
        char *to = (char *)out + (size_t)row * (size_t)width * bytes;
        for (int number = 0; number < heads; number++, from += head, to += head) {
            if (is_fp32)
                rotate_head(from, cosines + at, sines + at, half, direction, 1, to);
            else
                rotate_head(from, cosines + at, sines + at, half, direction, 0, to);
        }
        memcpy(to, from, rest);
    }
}
