/* The learners and the environment of simulator.py in C, one run after the other: the same definitions, other random numbers.
 *
 * Arrays of the learners are [K], or [bins, K] with the arms last. Rounds are numbered from 1.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { UNIFORM, THOMPSON, UCB1, KLUCB, TSALLIS, CENSORED_THOMPSON, CENSORED_KLUCB };

typedef struct {
    int arms, rounds, choices; /* choices: the number of rewards of each arm */
    const double *rates, *medians, *spreads, *failures, *values; /* failures < 0: known when the window closes */
    double window, horizon;
    const double *means; /* true mean rewards */
} Environment;

/* xoshiro256+ by Blackman and Vigna, seeded by splitmix64. */
typedef struct {
    uint64_t s[4];
} Random;

static uint64_t next(Random *r) {
    uint64_t *s = r->s, result = s[0] + s[3], t = s[1] << 17;
    s[2] ^= s[0], s[3] ^= s[1], s[1] ^= s[2], s[0] ^= s[3], s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

static Random seeded(uint64_t seed) {
    Random r;
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        r.s[i] = z ^ (z >> 31);
    }
    return r;
}

/* In (0, 1). */
static double uniform(Random *r) { return ((double)(next(r) >> 12) + 0.5) * 0x1p-52; }

/* Marsaglia and Tsang's ziggurat with 128 layers; layer and position come from different bits. */
static double zig_w[128], zig_f[128], zig_k[128];

static void make_tables(void) {
    const double scale = 2147483648.0, area = 9.91256303526217e-3;
    double d = 3.442619855899, last = d, q = area / exp(-0.5 * d * d);
    zig_k[0] = d / q * scale, zig_k[1] = 0;
    zig_w[0] = q / scale, zig_w[127] = d / scale;
    zig_f[0] = 1, zig_f[127] = exp(-0.5 * d * d);
    for (int i = 126; i >= 1; i--) {
        d = sqrt(-2 * log(area / d + exp(-0.5 * d * d)));
        zig_k[i + 1] = d / last * scale;
        last = d, zig_f[i] = exp(-0.5 * d * d), zig_w[i] = d / scale;
    }
}

static double normal(Random *r) {
    for (;;) {
        uint64_t bits = next(r);
        int layer = bits >> 57;
        double position = (double)(int32_t)(bits >> 16), x = position * zig_w[layer];
        if (fabs(position) < zig_k[layer]) return x;
        if (layer == 0) {
            double far, y;
            do far = -log(uniform(r)) / 3.442619855899, y = -log(uniform(r));
            while (y + y < far * far);
            return position > 0 ? 3.442619855899 + far : -3.442619855899 - far;
        }
        if (zig_f[layer] + uniform(r) * (zig_f[layer - 1] - zig_f[layer]) < exp(-0.5 * x * x)) return x;
    }
}

/* Marsaglia and Tsang's method; shape >= 1. */
static double gamma_draw(Random *r, double shape) {
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = normal(r), v = 1 + c * x;
        if (v <= 0) continue;
        v = v * v * v;
        double u = uniform(r);
        if (u < 1 - 0.0331 * x * x * x * x || log(u) < 0.5 * x * x + d * (1 - v + log(v))) return d * v;
    }
}

/* The arm with the smallest draw from Beta(1 + a, 1 + b). */
static int smallest_beta(Random *r, int arms, const double *a, const double *b, double scale) {
    int best = 0;
    double least = 2;
    for (int i = 0; i < arms; i++) {
        double x = gamma_draw(r, 1 + fmax(a[i] * scale, 0)), y = gamma_draw(r, 1 + fmax(b[i] * scale, 0));
        double found = x / (x + y);
        if (found < least) least = found, best = i;
    }
    return best;
}

typedef struct {
    double *mean, *level, *entropy, *lowest, *y, *bound, *known;
} Bounds;

static void kl_bounds(int arms, const Bounds *b, int first) {
    double *restrict mean = b->mean, *restrict level = b->level, *restrict entropy = b->entropy;
    double *restrict lowest = b->lowest, *restrict y = b->y;
    for (int i = 0; i < arms; i++) {
        mean[i] = fmax(mean[i], 1e-12);
        entropy[i] = (1 - mean[i]) * log(fmax(1 - mean[i], 1e-300));
        lowest[i] = (entropy[i] - level[i]) / mean[i];
        y[i] = first ? lowest[i] : fmin(fmax(y[i], lowest[i]), 0);
    }
    for (int step = 0; step < 60; step++) {
        double largest = 0;
        for (int i = 0; i < arms; i++) {
            double m = mean[i], q = m * exp(y[i]);
            double divergence = entropy[i] - m * y[i] - (1 - m) * log(1 - fmin(q, 1 - 1e-16));
            double move = (divergence - level[i]) / fmin((q - m) / fmax(1 - q, 1e-16), -1e-12);
            y[i] = fmin(fmax(y[i] - move, lowest[i]), 0);
            largest = fmax(largest, fabs(move));
        }
        if (largest <= 1e-4) break;
    }
    for (int i = 0; i < arms; i++) b->bound[i] = mean[i] * exp(y[i]);
}

/* The arm with the smallest lower bound; arms without observations first, ties at random. */
static int smallest_bound(Random *r, int arms, const double *count, const double *lost, double level, const Bounds *b, int kl, int first) {
    for (int i = 0; i < arms; i++) {
        int known = count[i] > 0;
        double safe = known ? count[i] : 1;
        b->known[i] = known;
        b->mean[i] = known ? fmin(fmax(lost[i] / safe, 0), 1) : 0.5;
        b->level[i] = level / safe;
    }
    if (kl)
        kl_bounds(arms, b, first);
    else
        for (int i = 0; i < arms; i++) b->bound[i] = b->mean[i] - sqrt(b->level[i]);
    double least = 1e300;
    for (int i = 0; i < arms; i++) {
        if (b->known[i] == 0) b->bound[i] = -1e300;
        least = fmin(least, b->bound[i]);
    }
    int best = 0, ties = 0;
    for (int i = 0; i < arms; i++)
        if (b->bound[i] <= least + 1e-13 && uniform(r) * ++ties < 1) best = i;
    return best;
}

typedef struct {
    int bins, window;
    const int *edges; /* [bins + 1] in rounds */
    double *open, *closed, *gain, *delays, *rates, *arrived, *failed, *to_come;
    int *head, *link; /* the plays that are due at a round */
    int *arm, *due;
    double *reward;
} Ages;

static void ages_begin(const Ages *a, int arms, int t) {
    int first = t - 2 * a->window > 0 ? t - 2 * a->window : 0;
    for (int s = a->head[t]; s; s = a->link[s]) {
        if (s < first) continue;
        int delay = t - 1 - s, place = a->bins, arm = a->arm[s];
        while (a->edges[place] > delay) place--;
        if (delay < a->window) a->open[place * arms + arm] -= 1, a->closed[arm] += 1;
        a->gain[arm] += a->reward[s];
        if (a->reward[s] > 0) a->delays[place < a->bins ? place : a->bins - 1] += 1;
    }
    for (int place = 0; place < a->bins; place++) {
        int s = t - a->edges[place + 1];
        if (s < 1 || a->due[s] <= t) continue;
        a->open[place * arms + a->arm[s]] -= 1;
        if (place == a->bins - 1)
            a->closed[a->arm[s]] += 1;
        else
            a->open[(place + 1) * arms + a->arm[s]] += 1;
    }
}

/* Expected failures of the outstanding plays. */
static void open_failures(const Ages *a, int arms) {
    double *restrict failed = a->failed, *restrict rates = a->rates;
    for (int i = 0; i < arms; i++) failed[i] = 0;
    for (int bin = 0; bin < a->bins; bin++) {
        double before = a->arrived[bin];
        const double *restrict open = a->open + bin * arms;
        for (int i = 0; i < arms; i++) failed[i] += open[i] * (before * (1 - rates[i]) / (1 - rates[i] * before));
    }
}

/* One step of the EM algorithm; `failures` [K] is the result. */
static void expected(const Ages *a, int arms, double *failures) {
    double *restrict rates = a->rates;
    open_failures(a, arms);
    for (int i = 0; i < arms; i++)
        rates[i] = fmin(fmax((a->gain[i] + 0.5) / (a->closed[i] + a->failed[i] + 1), 0), 1 - 1e-6);
    for (int bin = 0; bin < a->bins; bin++) {
        double before = a->arrived[bin], total = 0;
        const double *restrict open = a->open + bin * arms;
        for (int i = 0; i < arms; i++) total += open[i] * (rates[i] * (1 - before) / (1 - rates[i] * before));
        a->to_come[bin] = total;
    }
    double later = 0, left = 1, hazard[64];
    for (int bin = a->bins - 1; bin >= 0; bin--) {
        double found = a->delays[bin] + 1.0 / a->bins;
        hazard[bin] = fmin(fmax(found / (found + later + a->to_come[bin] / 2), 0), 1);
        later += found + a->to_come[bin];
    }
    for (int bin = 0; bin < a->bins; bin++) {
        a->arrived[bin] = 1 - left * (1 - hazard[bin] / 2);
        left *= 1 - hazard[bin];
    }
    for (int bin = 0; bin < a->bins; bin++) a->arrived[bin] = fmin(fmax(a->arrived[bin] / fmax(1 - left, 1e-6), 0), 1);
    open_failures(a, arms);
    for (int i = 0; i < arms; i++) failures[i] = fmax(a->closed[i] - a->gain[i], 0) + a->failed[i];
}

/* Probabilities of Tsallis-INF. */
static void tsallis(int arms, const double *total, double rate, double *x) {
    double least = 1e300, level = rate, sum = 0;
    for (int i = 0; i < arms; i++) least = fmin(least, total[i]);
    for (int step = 0; step < 30; step++) {
        double squares = 0, slope = 0;
        for (int i = 0; i < arms; i++) {
            double above = total[i] - least + level, root = rate / above;
            squares += root * root, slope += root * root / above;
        }
        double move = (squares - 1) / (2 * slope);
        level += move;
        if (fabs(move / level) < 1e-9) break;
    }
    for (int i = 0; i < arms; i++) {
        double root = rate / (total[i] - least + level);
        x[i] = root * root, sum += x[i];
    }
    for (int i = 0; i < arms; i++) x[i] /= sum;
}

/* The first of `times` [rounds], ascending, that is not before `time`: how many are. */
static int number_before(const double *times, int rounds, double time) {
    int low = 0, high = rounds;
    while (low < high) {
        int middle = (low + high) / 2;
        if (times[middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Regrets [runs] of a learner. `constant` is its alpha, scale or discount; `edges` [bins + 1] are of the learned delay curve. */
void regrets(const Environment *e, int learner, double constant, int bins, const int *edges, int runs, uint64_t seed, double *out) {
    int K = e->arms, T = e->rounds, censored = learner == CENSORED_THOMPSON || learner == CENSORED_KLUCB;
    int kl = learner == KLUCB || learner == CENSORED_KLUCB;
    double best = e->means[0], *memory = malloc(sizeof(double) * (13 * K + 3 * 64 + 64 * K + 4 * (T + 2) + (size_t)(T + 2) * K));
    double *place = memory;
#define TAKE(n) (place += (n), place - (n))
    double *count = TAKE(K), *lost = TAKE(K), *won = TAKE(K), *x = TAKE(K);
    Bounds b = {TAKE(K), TAKE(K), TAKE(K), TAKE(K), TAKE(K), TAKE(K), TAKE(K)};
    double *times = TAKE(T + 2), *weights = TAKE(T + 2), *losses = TAKE(T + 2), *reward = TAKE(T + 2);
    Ages a = {bins, bins ? edges[bins] : 0, edges, TAKE(64 * K), won, lost, TAKE(64), TAKE(K), TAKE(64), TAKE(K), TAKE(64)};
    double *calendar = TAKE((size_t)(T + 2) * K);
    int *whole = malloc(sizeof(int) * 4 * (T + 2));
    a.head = whole, a.link = whole + T + 2, a.arm = whole + 2 * (T + 2), a.due = whole + 3 * (T + 2), a.reward = reward;
    make_tables();
    for (int i = 1; i < K; i++) best = fmax(best, e->means[i]);
    for (int run = 0; run < runs; run++) {
        Random random = seeded(seed + 0x632be59bd9b4e019ull * (uint64_t)(run + 1)), *r = &random;
        memset(memory, 0, sizeof(double) * 11 * K);
        memset(whole, 0, sizeof(int) * 4 * (T + 2));
        if (learner == TSALLIS) memset(calendar, 0, sizeof(double) * (T + 2) * K);
        if (censored) {
            memset(a.open, 0, sizeof(double) * 64 * K), memset(a.delays, 0, sizeof(double) * 64);
            for (int i = 0; i < K; i++) a.rates[i] = 0.5;
            for (int bin = 0; bin < bins; bin++) a.arrived[bin] = (bin + 0.5) / bins;
        }
        double sum = 0; /* sorted uniform times from exponential spacings */
        for (int t = 0; t < T; t++) times[t] = sum -= log(uniform(r));
        sum -= log(uniform(r));
        for (int t = 0; t < T; t++) times[t] *= e->horizon / sum;
        out[run] = 0;
        for (int t = 1; t <= T; t++) {
            int arm = 0;
            double weight = learner == THOMPSON ? pow(constant, -t) : 1;
            if (learner == UNIFORM) {
                arm = (int)(uniform(r) * K);
            } else if (learner == THOMPSON) {
                arm = smallest_beta(r, K, lost, won, 1 / weight);
            } else if (learner == UCB1 || learner == KLUCB) {
                arm = smallest_bound(r, K, count, lost, constant * log(t), &b, kl, t == 1);
            } else if (learner == TSALLIS) {
                tsallis(K, lost, constant * sqrt(t) / 2, x);
                double u = uniform(r), below = x[0];
                while (below < u && arm < K - 1) below += x[++arm];
            } else { /* count: failures */
                expected(&a, K, count);
                if (learner == CENSORED_THOMPSON) {
                    arm = smallest_beta(r, K, count, a.gain, 1);
                } else {
                    for (int i = 0; i < K; i++) x[i] = a.gain[i] + count[i];
                    arm = smallest_bound(r, K, x, count, constant * log(t), &b, kl, t == 1);
                }
            }
            out[run] += best - e->means[arm];
            int converts = uniform(r) < e->rates[arm];
            double spread = exp(e->spreads[arm] * normal(r));
            double delay = converts ? e->medians[arm] * spread : e->failures[arm] < 0 ? e->window : e->failures[arm] * spread;
            double value = e->values[arm * e->choices + (int)(uniform(r) * e->choices)];
            reward[t] = converts && delay <= e->window ? value : 0;
            int due = number_before(times, T, times[t - 1] + fmin(delay, e->window)) + 1;
            if (due < t + 1) due = t + 1;
            a.arm[t] = arm, a.due[t] = due, a.link[t] = a.head[due], a.head[due] = t;
            weights[t] = weight, losses[t] = 1 - reward[t];
            if (censored) {
                a.open[arm] += 1;
                ages_begin(&a, K, t + 1);
            } else if (learner == TSALLIS) {
                double *estimates = calendar + (size_t)due * K;
                for (int i = 0; i < K; i++) {
                    double base = x[i] >= 16.0 / t ? 0.5 : 0;
                    estimates[i] += base + (i == arm ? (losses[t] - base) / x[i] : 0);
                }
                for (int i = 0; i < K; i++) lost[i] += calendar[(size_t)(t + 1) * K + i];
            } else {
                for (int s = a.head[t + 1]; s; s = a.link[s]) {
                    int from = a.arm[s];
                    count[from] += weights[s], lost[from] += weights[s] * losses[s], won[from] += weights[s] * (1 - losses[s]);
                }
            }
        }
    }
    free(memory), free(whole);
}
