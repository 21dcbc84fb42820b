/*
The cell of an LSTM, after its matrix products, in one pass.

The four gates of a row follow each other: i, f, g and o. Each is the sum of the input's part and of the
part of the last state. All numbers are computed as floats and rounded once.
*/

/* 1 / (1 + e^-x) */
static inline float sigmoid_of(float x) {
    float power = power_of_e(x < 0.0f ? x : -x);
    return (x < 0.0f ? power : 1.0f) / (1.0f + power);
}

/* Near zero, a quotient of sums would lose most digits, so a series is used there. */
static inline float tanh_of(float x) {
    float square = x * x, size = x < 0.0f ? -x : x;
    float series = x + x * square * (-0.333333333f + square * (0.133333333f - 0.053968254f * square));
    float power = power_of_e(-2.0f * size), far = (1.0f - power) / (1.0f + power);
    return size < 0.15f ? series : x < 0.0f ? -far : far;
}

static inline __attribute__((always_inline)) void lstm_row(
    const void *from_input, const void *from_state, const void *c, int width, int is_fp32, void *gates,
    void *new_h, void *new_c) {
#pragma omp simd
    for (int k = 0; k < width; k++) {
        int at_f = width + k, at_g = 2 * width + k, at_o = 3 * width + k;
        float i = sigmoid_of(read_number(from_input, k, is_fp32) + read_number(from_state, k, is_fp32));
        float f = sigmoid_of(read_number(from_input, at_f, is_fp32) + read_number(from_state, at_f, is_fp32));
        float g = tanh_of(read_number(from_input, at_g, is_fp32) + read_number(from_state, at_g, is_fp32));
        float o = sigmoid_of(read_number(from_input, at_o, is_fp32) + read_number(from_state, at_o, is_fp32));
        float cell = f * read_number(c, k, is_fp32) + i * g;
        if (gates) {
            write_number(gates, k, i, is_fp32);
            write_number(gates, at_f, f, is_fp32);
            write_number(gates, at_g, g, is_fp32);
            write_number(gates, at_o, o, is_fp32);
        }
        write_number(new_c, k, cell, is_fp32);
        write_number(new_h, k, o * tanh_of(cell), is_fp32);
    }
}

/* `gates`, if not NULL, receives the values of the gates, which the backward pass needs. */
void lstm_cell(const void *from_input, const void *from_state, const void *c, int rows, int width,
               int is_fp32, int threads, void *gates, void *new_h, void *new_c) {
    size_t step = (size_t)width * (is_fp32 ? 4 : 2);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int row = 0; row < rows; row++) {
        size_t at = (size_t)row * step;
        const char *x = (const char *)from_input + 4 * at, *state = (const char *)from_state + 4 * at;
        const char *before = (const char *)c + at;
        char *values = gates ? (char *)gates + 4 * at : NULL, *h = (char *)new_h + at, *to = (char *)new_c + at;
        if (is_fp32 && gates) lstm_row(x, state, before, width, 1, values, h, to);
        else if (is_fp32) lstm_row(x, state, before, width, 1, NULL, h, to);
        else if (gates) lstm_row(x, state, before, width, 0, values, h, to);
        else lstm_row(x, state, before, width, 0, NULL, h, to);
    }
}

static inline __attribute__((always_inline)) void lstm_gradient_row(
    const void *gates, const void *c, const void *new_c, const void *d_h, const void *d_new_c, int width,
    int is_fp32, void *d_gates, void *d_c) {
#pragma omp simd
    for (int k = 0; k < width; k++) {
        float i = read_number(gates, k, is_fp32), f = read_number(gates, width + k, is_fp32);
        float g = read_number(gates, 2 * width + k, is_fp32);
        float o = read_number(gates, 3 * width + k, is_fp32);
        float bounded = tanh_of(read_number(new_c, k, is_fp32)), h = read_number(d_h, k, is_fp32);
        float cell = read_number(d_new_c, k, is_fp32) + h * o * (1.0f - bounded * bounded);
        write_number(d_gates, k, cell * g * i * (1.0f - i), is_fp32);
        write_number(d_gates, width + k, cell * read_number(c, k, is_fp32) * f * (1.0f - f), is_fp32);
        write_number(d_gates, 2 * width + k, cell * i * (1.0f - g * g), is_fp32);
        write_number(d_gates, 3 * width + k, h * bounded * o * (1.0f - o), is_fp32);
        write_number(d_c, k, cell * f, is_fp32);
    }
}

/* The gradients of the sums of the gates, and of c. */
void lstm_cell_gradients(const void *gates, const void *c, const void *new_c, const void *d_h,
                         const void *d_new_c, int rows, int width, int is_fp32, int threads,
                         void *d_gates, void *d_c) {
    size_t step = (size_t)width * (is_fp32 ? 4 : 2);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int row = 0; row < rows; row++) {
        size_t at = (size_t)row * step;
        const char *values = (const char *)gates + 4 * at, *before = (const char *)c + at;
        const char *after = (const char *)new_c + at, *h = (const char *)d_h + at;
        const char *cell = (const char *)d_new_c + at;
        char *sums = (char *)d_gates + 4 * at, *to = (char *)d_c + at;
        if (is_fp32)
            lstm_gradient_row(values, before, after, h, cell, width, 1, sums, to);
        else
            lstm_gradient_row(values, before, after, h, cell, width, 0, sums, to);
    }
}
