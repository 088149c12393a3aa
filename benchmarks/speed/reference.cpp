// LinUCB on the pan-private tree in plain C++: what a careful programmer writes in an afternoon.
//
// It is the yardstick of `make bench`, and shares no code with the package. One thread, no
// libraries, dimensions as compile-time constants (-DDIM -DACTIONS), actions feature-major so
// that the compiler can use vector instructions for the scores. Generator: xoshiro256++ (Blackman
// & Vigna 2019); normals: the ziggurat with 256 layers (Marsaglia & Tsang 2000; Doornik 2005).
//
//   reference ROUNDS SEED LEVELS STD SHIFT FLOOR NOISE_SCALE LOG_OFFSET BIAS GAP
//
// LEVELS 0 is the learner without noise. It prints the seconds of the loop and the pseudo-regret.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int D = DIM, K = ACTIONS, P = D * (D + 3) / 2;
constexpr double TOP = 0.75;  // the mean reward of the best action
using Packed = double[P];     // lower triangle of the Gram matrix, row by row; then the moments

struct Xoshiro {
    uint64_t s[4];
    explicit Xoshiro(uint64_t seed) {
        for (auto &word : s) {  // SplitMix64
            uint64_t z = (seed += 0x9E3779B97F4A7C15u);
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
            z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
            word = z ^ (z >> 31);
        }
    }
    static uint64_t rotate(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }
    uint64_t next() {
        const uint64_t result = rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
        s[2] ^= s[0], s[3] ^= s[1], s[1] ^= s[2], s[0] ^= s[3], s[2] ^= t;
        s[3] = rotate(s[3], 45);
        return result;
    }
    double uniform() { return (double(next() >> 12) + 0.5) * 0x1p-52; }  // in (0, 1)
};

struct Ziggurat {
    static constexpr int LAYERS = 256;
    static constexpr double TAIL = 3.6541528853610088, AREA = 0.00492867323399;
    double edge[LAYERS + 1], density[LAYERS + 1];
    Ziggurat() {
        edge[0] = AREA / std::exp(-0.5 * TAIL * TAIL), edge[1] = TAIL, edge[LAYERS] = 0.0;
        for (int i = 2; i < LAYERS; i++)
            edge[i] = std::sqrt(
                -2.0 * std::log(AREA / edge[i - 1] + std::exp(-0.5 * edge[i - 1] * edge[i - 1])));
        for (int i = 0; i <= LAYERS; i++) density[i] = std::exp(-0.5 * edge[i] * edge[i]);
    }
    double operator()(Xoshiro &random) const {
        for (;;) {
            const uint64_t word = random.next();
            const int layer = word & (LAYERS - 1);
            const double value = double(int64_t(word) >> 11) * 0x1p-52 * edge[layer];
            if (std::fabs(value) < edge[layer + 1]) return value;
            if (layer == 0) return value < 0 ? -tail(random) : tail(random);
            const double low = density[layer], high = density[layer + 1];
            if (low + random.uniform() * (high - low) < std::exp(-0.5 * value * value))
                return value;
        }
    }
    static double tail(Xoshiro &random) {
        for (;;) {
            const double beyond = -std::log(random.uniform()) / TAIL;
            if (-2.0 * std::log(random.uniform()) >= beyond * beyond) return TAIL + beyond;
        }
    }
};

const Ziggurat normal;

struct World {
    Xoshiro random;
    double high, theta[D], actions[D][K], means[K];
    World(uint64_t seed, double gap) : random(seed), high(TOP - gap) {
        double square = 0.0;
        for (double &entry : theta) entry = normal(random), square += entry * entry;
        for (double &entry : theta) entry /= std::sqrt(square);
    }
    // A uniform unit vector; its inner product with theta.
    double direction(double *x) {
        double square = 0.0, product = 0.0;
        for (int i = 0; i < D; i++) x[i] = normal(random), square += x[i] * x[i];
        const double scale = 1.0 / std::sqrt(square);
        for (int i = 0; i < D; i++) x[i] *= scale, product += x[i] * theta[i];
        return product;
    }
    // Uniform on the band of means [-TOP, TOP - gap] by rejection, but for one action at TOP.
    void next_set() {
        const int best = int(random.uniform() * K);
        double x[D], mean;
        for (int k = 0; k < K; k++) {
            if (k == best) {
                do mean = direction(x); while (mean * mean > 0.99);
                const double scale = std::sqrt((1.0 - TOP * TOP) / (1.0 - mean * mean));
                for (int i = 0; i < D; i++) x[i] = scale * x[i] + (TOP - scale * mean) * theta[i];
                mean = TOP;
            } else {
                do mean = direction(x); while (mean < -TOP || mean > high);
            }
            means[k] = mean;
            for (int i = 0; i < D; i++) actions[i][k] = x[i];
        }
    }
    double reward(double mean) { return random.uniform() < 0.5 * (1.0 + mean) ? 1.0 : -1.0; }
};

// After t rows, level j shows its node (2^j rows and noise) if bit j of t is 1, and an
// independent draw otherwise. totals[j] is the sum of what levels j and above show.
struct Tree {
    const int levels;
    const double std;
    Xoshiro random;
    int64_t rows = 0;
    std::vector<Packed> nodes, idle, totals;
    Tree(int levels_, double std_, uint64_t seed)
        : levels(levels_), std(std_), random(seed), nodes(levels_), idle(levels_),
          totals(levels_ + 1) {
        for (int j = 0; j < levels; j++) draw(nodes[j]), draw(idle[j]);
        show(levels - 1);
    }
    void draw(double *out) {
        int at = 0;
        for (int i = 0; i < D; i++)
            for (int j = 0; j <= i; j++)
                out[at++] = normal(random) * (i == j ? std * std::sqrt(2.0) : std);
        while (at < P) out[at++] = normal(random) * std;
    }
    void show(int top) {
        for (int j = top; j >= 0; j--) {
            const double *shown = rows >> j & 1 ? nodes[j] : idle[j];
            for (int i = 0; i < P; i++) totals[j][i] = totals[j + 1][i] + shown[i];
        }
    }
    void add(const double *row) {
        if (levels == 0)
            for (int i = 0; i < P; i++) totals[0][i] += row[i];
        for (int j = 0; j < levels; j++)
            if (!(rows >> j & 1))
                for (int i = 0; i < P; i++) nodes[j][i] += row[i];
        rows++;
        int j = 0;
        for (; j < levels && !(rows >> j & 1); j++) draw(nodes[j]), draw(idle[j]);
        show(j < levels ? j : levels - 1);
    }
};

// L of packed + shift*I, its diagonal as reciprocals. The log-determinant, or NaN.
double cholesky(const double *packed, double shift, double (&lower)[D][D]) {
    double determinant = 1.0;
    for (int i = 0, at = 0; i < D; i++) {
        for (int j = 0; j <= i; j++, at++) {
            double rest = packed[at] + (i == j ? shift : 0.0);
            for (int k = 0; k < j; k++) rest -= lower[i][k] * lower[j][k];
            if (i != j) {
                lower[i][j] = rest * lower[j][j];
            } else {
                if (!(rest > 0.0)) return NAN;
                lower[i][i] = 1.0 / std::sqrt(rest);
                determinant *= rest;
            }
        }
    }
    return std::log(determinant);
}

// The action that maximises centre.w + radius * ||w|| with w = L^-1 x.
int best(const World &world, const double (&lower)[D][D], const double *centre, double radius) {
    double scores[K];
    for (int k = 0; k < K; k++) {
        double w[D], square = 0.0, mean = 0.0;
        for (int i = 0; i < D; i++) {
            w[i] = world.actions[i][k];
            for (int j = 0; j < i; j++) w[i] -= lower[i][j] * w[j];
            w[i] *= lower[i][i];
            square += w[i] * w[i], mean += centre[i] * w[i];
        }
        scores[k] = mean + radius * std::sqrt(square);
    }
    int winner = 0;
    for (int k = 1; k < K; k++)
        if (scores[k] > scores[winner]) winner = k;
    return winner;
}

}  // namespace

int main(int count, char **given) {
    if (count != 11) return 2;
    const int64_t rounds = std::atoll(given[1]);
    const uint64_t seed = std::strtoull(given[2], nullptr, 10);
    const double shift = std::atof(given[5]), floor = std::atof(given[6]);
    const double noise_scale = std::atof(given[7]), log_offset = std::atof(given[8]);
    const double bias = std::atof(given[9]);
    World world(2 * seed, std::atof(given[10]));
    Tree tree(std::atoi(given[3]), std::atof(given[4]), 2 * seed + 1);
    double lower[D][D], centre[D], row[P], regret = 0.0;
    const auto start = std::chrono::steady_clock::now();
    for (int64_t turn = 0; turn < rounds; turn++) {
        world.next_set();
        const double *released = tree.totals[0];
        double log_det = cholesky(released, shift, lower);
        for (double lift = floor; std::isnan(log_det); lift *= 2.0)
            log_det = cholesky(released, shift + lift, lower);
        for (int i = 0; i < D; i++) {
            centre[i] = released[P - D + i];
            for (int j = 0; j < i; j++) centre[i] -= lower[i][j] * centre[j];
            centre[i] *= lower[i][i];
        }
        const double radius = noise_scale * std::sqrt(std::fmax(0.0, log_det + log_offset)) + bias;
        const int chosen = best(world, lower, centre, radius);
        const double mean = world.means[chosen], reward = world.reward(mean);
        regret += TOP - mean;
        for (int i = 0, at = 0; i < D; i++)
            for (int j = 0; j <= i; j++) row[at++] = world.actions[i][chosen] * world.actions[j][chosen];
        for (int i = 0; i < D; i++) row[P - D + i] = reward * world.actions[i][chosen];
        tree.add(row);
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("{\"seconds\": %.9g, \"regret\": %.17g}\n", seconds.count(), regret);
    return 0;
}
