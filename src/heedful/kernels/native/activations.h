/*
The step between the two linear layers of a feed-forward network: an activation and, in a gated network,
its product with the second half of the row.

e is only raised to powers of at most zero, so nothing overflows.
*/

enum { RELU, SILU, GELU, GELU_TANH }; /* in the order of NATIVE_ACTIVATIONS */

/* 1 / (1 + e^-x) */
static inline Reals sigmoid(Reals x) {
    Reals one = all_the_same(1.0f), power = powers_of_e(no_reals() - larger(x, no_reals() - x));
    return (power + zero_below(x, no_reals(), one - power)) / (one + power);
}

/* The normal distribution function; Abramowitz and Stegun 7.1.26, to about 1e-7. */
static inline Reals normal_share(Reals x) {
    Reals one = all_the_same(1.0f), size = larger(x, no_reals() - x) * all_the_same(0.707106781f);
    Reals t = one / (one + size * all_the_same(0.3275911f));
    Reals p = all_the_same(1.061405429f);
    p = add_products(all_the_same(-1.453152027f), p, t);
    p = add_products(all_the_same(1.421413741f), p, t);
    p = add_products(all_the_same(-0.284496736f), p, t);
    p = add_products(all_the_same(0.254829592f), p, t);
    Reals below = all_the_same(0.5f) * p * t * powers_of_e(no_reals() - size * size);
    return below + zero_below(x, no_reals(), one - below - below);
}

static inline Reals activate(Reals x, int activation) {
    if (activation == SILU) return x * sigmoid(x);
    if (activation == GELU) return x * normal_share(x);
    if (activation == GELU_TANH) { /* (1 + tanh(u)) / 2 is the sigmoid of 2 u */
        Reals cube = x * x * x, slope = all_the_same(1.59576912f);
        return x * sigmoid(slope * add_products(x, all_the_same(0.044715f), cube));
    }
    return larger(no_reals(), x); /* in this order, NaN stays NaN */
}

/* LANES numbers of a row, or the remaining numbers and zeros. */
static inline Reals reals_up_to(const float *x, int i, int width) {
    return width - i < LANES ? last_numbers_of(x, (size_t)i, width - i, 1) : some_reals(x + i);
}

/* Activate `width` numbers in place; with `gated`, multiply them by the `width` numbers that follow. */
static inline void activate_row(float *x, int width, int gated, int activation) {
    for (int i = 0; i < width; i += LANES) {
        Reals out = activate(reals_up_to(x, i, width), activation);
        if (gated) out = out * reals_up_to(x + width, i, width);
        if (width - i < LANES) store_last(x + i, out, width - i);
        else store_reals(x + i, out);
    }
}
