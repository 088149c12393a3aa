// Rounds of the one loop for many replicates at once: a replicate is one seed of one setting.
//
// The same steps as `kernels._rounds`, compiled at run time for one shape: the macros below. A
// replicate is played by LANES threads, which share its actions and the entries of its sums:
// 1 thread, a part of a warp, or a block (beyond 8 features). Sums and factors are float64;
// decision sets, rewards' means and scores are float32.
//
// Random numbers are the package's: SplitMix64, three streams for each seed (world, noise,
// policy). Every number has its own place in its stream, worked out from the round, so no number
// is used twice whatever the lanes, and a run can stop and go on anywhere. Normals: Box-Muller.
//
// What is not done here: everything that depends on public numbers alone (release times, the
// filter's gains, how much noise a release holds) comes in tables from the package.
//
// DIM, ACTIONS: features, and actions in a decision set. LANES, BLOCK: threads for each replicate, and
// for each block. RULE: how a release becomes a choice. SHARING, WORLD: as in `kernels._sums` and
// `kernels._arms`. WISHART, SAMPLING, EVERY_ROUND: 0 or 1.
enum { RADIUS, WIDTH, POSTERIOR };  // RULE; and below SHARING and WORLD
enum { NO_NOISE, TREE, BUFFERS, MATRIX, WINDOWS };
enum { SAME, BAND, CLUSTERS };
#define BIG (DIM > 8)                            // a block for each replicate, arrays in shared memory
#define PACKED ((DIM + 1) * (DIM + 2) / 2 - 1)   // a Gram matrix's lower triangle, then a moment
#define SLOTS ((PACKED + LANES - 1) / LANES)     // entries of it that one lane holds
#define REPLICATES_A_BLOCK (BLOCK / LANES)
#define COLUMN (BIG ? (DIM + 3) / 4 * 4 : DIM)   // a column of a factor, in whole vectors of four
#define PAIRS (WORLD == CLUSTERS ? (DIM + 1) / 2 : DIM / 2)
#define ACTION_WORDS (PAIRS < 2 ? 2 : PAIRS)
#define ROUND_WORDS (2 + ACTIONS * ACTION_WORDS)
#define POLICY_WORDS (3 + DIM)
#define FAR_OFF (1ull << 62)  // places in a stream for the few numbers that are drawn again

// Draw the next noise before choosing, which does not wait for it; with one lane, registers are short.
#define EARLY (EVERY_ROUND && SHARING == TREE && LANES > 1)
#define DRAWN (RULE == POSTERIOR || SAMPLING)  // weights differ from round to round
enum { TILTS = 16, SHIFTS = 16 };  // shifts: as in `kernels._width`, and so is their span
#define SPAN 4.0
#define LEAST_KNOWN 0.01  // of some direction, or all choices are uniform
#if LANES == 1
#define ROOM(type, name, count) type name[count]
#else
#define ROOM(type, name, count)                               \
    __shared__ __align__(16) type name##_of_all[REPLICATES_A_BLOCK][count]; \
    type* const name = name##_of_all[place.group]
#endif
#if LANES > 1 && BIG  // shared memory is short: what is seldom used is in the device's
#define FAR_ROOM(type, name, count, offset) type* const name = state + place.replicate * STATE + (offset)
#else
#define FAR_ROOM(type, name, count, offset) ROOM(type, name, count)
#endif
#define DEVICE static __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#if BIG || LANES > 1
#define UNROLL_SMALL
#else
#define UNROLL_SMALL UNROLL
#endif

// What differs between settings, `struct Setting`, and the columns of the table of releases, in which
// row n - 1 is release n, are declared by `_plan.py`, which fills them.

// What is kept of a replicate from one launch to the next: two packed sums, and these.
enum { REGRET, ROUND, NUMBER, NEXT_DUE, CHECKPOINT, SCALARS };
#define STATE (2 * PACKED + SCALARS + (BIG ? PACKED + 2 * DIM * DIM : 0))  // the rest is room to work in
// ---- lanes
struct Place {
    i64 replicate, replicates;
    int lane, group;
    unsigned mask;  // the lanes of this replicate, within its warp
    int a[LANES == 1 ? 1 : SLOTS], b[LANES == 1 ? 1 : SLOTS];  // row and column of own entries

    __device__ __forceinline__ void sync() const {
#if LANES > 32
        __syncthreads();
#elif LANES > 1
        __syncwarp(mask);
#endif
    }

    // Calls f(slot, entry, row, column) for the packed entries that this lane holds.
    template <class F> __device__ __forceinline__ void each(F f) const {
#if LANES == 1
        UNROLL for (int i = 0; i <= DIM; i++) UNROLL for (int j = 0; j <= (i < DIM ? i : DIM - 1); j++)
                f(i * (i + 1) / 2 + j, i * (i + 1) / 2 + j, i, j);
#else
        UNROLL for (int s = 0; s < SLOTS; s++)
            if (lane + s * LANES < PACKED) f(s, lane + s * LANES, a[s], b[s]);
#endif
    }

    // Entry i of a replicate's array of `size` in memory: neighbours are read by neighbours.
    template <class T> __device__ __forceinline__ T& of(T* all, i64 size, i64 i) const {
        return LANES == 1 ? all[i * replicates + replicate] : all[replicate * size + i];
    }
};

DEVICE Place find_place(i64 replicates) {
    Place place;
    i64 thread = (i64)blockIdx.x * BLOCK + threadIdx.x;
    place.replicate = thread / LANES, place.replicates = replicates;
    place.lane = threadIdx.x % LANES, place.group = threadIdx.x / LANES;
    int first = (threadIdx.x % 32) / LANES * LANES;
    place.mask = LANES >= 32 ? 0xffffffffu : ((1u << (LANES % 32)) - 1u) << first;
#if LANES > 1
    UNROLL for (int s = 0; s < SLOTS; s++) {
        int entry = place.lane + s * LANES, row = 0;
        while ((row + 1) * (row + 2) / 2 <= entry) row++;
        place.a[s] = row;
        place.b[s] = entry - row * (row + 1) / 2;
    }
#endif
    return place;
}
#if LANES > 1
// The largest whole number of all lanes.
DEVICE unsigned largest(const Place& place, unsigned value) {
    value = __reduce_max_sync(place.mask, value);
#if LANES > 32
    __shared__ unsigned of_warps[LANES / 32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
    __syncthreads();
    for (int warp = 0; warp < LANES / 32; warp++) value = max(value, of_warps[warp]);
#endif
    return value;
}

// Whole numbers in the order of floating-point ones.
DEVICE unsigned ordered(float value) {
    unsigned bits = __float_as_uint(value);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

DEVICE float largest(const Place& place, float value) {
    unsigned top = largest(place, ordered(value));
    return __uint_as_float(top >> 31 ? top & 0x7fffffffu : ~top);
}

// The action of the lane that has the largest score; the first if several do.
DEVICE int winner(const Place& place, float score, int action) {
    unsigned own = ordered(score), top = largest(place, own);
    return ACTIONS - (int)largest(place, own == top ? (unsigned)(ACTIONS - action) : 0u);
}
#else
DEVICE float largest(const Place&, float value) { return value; }
DEVICE int winner(const Place&, float, int action) { return action; }
#endif
// ---- random numbers
struct Stream { u64 position, stride; };

DEVICE u64 mixed(u64 word) {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
    return word ^ (word >> 31);
}

DEVICE u64 word_at(Stream stream, u64 place) {
    return mixed(stream.position + (place + 1) * stream.stride);
}

// Uniform in (0, 1], from 32 bits.
DEVICE float uniform(unsigned bits) { return ((float)bits + 0.5f) * 2.3283064e-10f; }
// Uniform in (0, 1), from 52 bits.
DEVICE double exact_uniform(u64 word) { return ((double)(word >> 12) + 0.5) * 2.220446049250313e-16; }
// Two standard normals: by Box and Muller, from 32 bits of radius and 32 of angle.
DEVICE void normals(u64 word, float& first, float& second) {
    float radius = sqrtf(-2.0f * __logf(uniform((unsigned)(word >> 32))));
    float angle = (float)(int)(unsigned)word * 1.4629180792671596e-9f;  // pi / 2^31
    float sine, cosine;
    __sincosf(angle, &sine, &cosine);
    first = radius * cosine;
    second = radius * sine;
}

DEVICE float normal(u64 word) { float first, second; normals(word, first, second); return first; }

// The root of a chi-square with dof >= 2, started with a normal and 32 bits: Marsaglia & Tsang (2000).
// Places from `place` on, 64 of them, are for further attempts.
DEVICE float chi(Stream stream, u64 place, float dof, float z, unsigned bits) {
    float offset = 0.5f * dof - 1.0f / 3.0f, slope = rsqrtf(9.0f * offset), step = 0.0f;
    for (int attempt = 0; attempt < 31; attempt++) {
        step = slope * z;  // the cube of 1 + step is tested; its logarithm by differences
        float apart = 3.0f * (log1pf(step) - step - step * step) - step * step * step;
        if (step > -1.0f && __logf(uniform(bits)) < 0.5f * z * z + offset * apart) break;
        z = normal(word_at(stream, place + 2 * attempt));
        bits = (unsigned)(word_at(stream, place + 2 * attempt + 1) >> 32);
    }
    return (1.0f + step) * sqrtf(2.0f * offset * (1.0f + step));
}
// ---- decision sets
struct World {
    const Setting* setting;
    const float* memory;  // actions, means and the best mean; or centres and theta; or theta
    i64 size;             // of that, for one replicate
    Stream stream;
    i64 round;
    int special;  // the place of the optimal action, or the group of people
};

DEVICE void open_round(World& world, i64 round) {
    world.round = round;
    world.special = 0;
    if (WORLD == SAME) return;
    unsigned bits = (unsigned)(word_at(world.stream, round * ROUND_WORDS + 1) >> 32);
    unsigned count = WORLD == BAND ? ACTIONS : (unsigned)world.setting->groups;
    world.special = (int)(((u64)bits * count) >> 32);
}

// The density (1 - z^2)^((d-3)/2) over that at `peak`, for the largest exponents that occur.
DEVICE float likely(float z, float peak) {
    return __powf((1.0f - z * z) / (1.0f - peak * peak), 0.5f * (DIM - 3));
}

// An inner product with theta on the band: by cubics of the inverse distribution function, or,
// where many features make its ends too steep for that, by rejection.
DEVICE float band_product(const World& world, int action, unsigned bits) {
    if (!BIG) {
        const float* cubic = world.setting->band + 4 * (bits >> 21);
        float along = (float)(bits & 0x1fffff) * (1.0f / (1 << 21));
        return cubic[0] + along * (cubic[1] + along * (cubic[2] + along * cubic[3]));
    }
    float low = (float)world.setting->low, high = (float)world.setting->high;
    float peak = low <= 0.0f && 0.0f <= high ? 0.0f : fminf(fabsf(low), fabsf(high));
    u64 from = FAR_OFF + ((u64)world.round * ACTIONS + action) * 1024;
    float z = low;
    for (int attempt = 0; attempt < 1024; attempt++) {
        u64 word = word_at(world.stream, from + attempt);
        z = low + (high - low) * uniform((unsigned)(word >> 32));
        if (uniform((unsigned)word) < likely(z, peak)) break;
    }
    return z;
}

// A unit vector: theta is the first axis, the optimal action's product with it is `top`.
DEVICE float band_action(const World& world, int action, float* x) {
    u64 at = world.stream.position
             + ((u64)world.round * ROUND_WORDS + 3 + (u64)action * ACTION_WORDS) * world.stream.stride;
    unsigned left = 0;
    float square = 0.0f;
    UNROLL for (int pair = 0; pair < ACTION_WORDS; pair++) {
        u64 word = mixed(at);
        at += world.stream.stride;
        if (pair < 2) left |= ((unsigned)word & 0x3fff) << (14 * pair);
        if (pair >= PAIRS) continue;
        float share = ((float)(unsigned)(word >> 39) + 0.5f) * 2.9802322e-8f;  // 25 bits
        float radius = sqrtf(-__logf(share));
        float angle = ((float)((int)((unsigned)(word >> 14) << 7) >> 7)) * 1.8725351414619643e-7f;
        float sine, cosine;  // angle: pi / 2^24, 25 bits with their sign
        __sincosf(angle, &sine, &cosine);
        x[1 + 2 * pair] = radius * cosine;
        square += x[1 + 2 * pair] * x[1 + 2 * pair];
        if (2 + 2 * pair >= DIM) continue;
        x[2 + 2 * pair] = radius * sine;
        square += x[2 + 2 * pair] * x[2 + 2 * pair];
    }
    float z = action == world.special ? (float)world.setting->top : band_product(world, action, left);
    float scale = sqrtf(1.0f - z * z) * rsqrtf(square);
    x[0] = z;
    UNROLL for (int i = 1; i < DIM; i++) x[i] *= scale;
    return z;
}

DEVICE float clusters_action(const Place& place, const World& world, int action, float* x) {
    i64 people = world.setting->groups * ACTIONS;
    u64 from = (u64)world.round * ROUND_WORDS + 2 + (u64)action * ACTION_WORDS;
    float mean = 0.0f, square = 0.0f;
    UNROLL for (int pair = 0; pair < PAIRS; pair++) {
        float both[2];
        normals(word_at(world.stream, from + pair), both[0], both[1]);
        UNROLL for (int i = 2 * pair; i < 2 * pair + 2 && i < DIM; i++) {
            i64 at = i * people + world.special * ACTIONS + action;
            x[i] = place.of(world.memory, world.size, at) + world.setting->spread[i] * both[i % 2];
            mean += place.of(world.memory, world.size, DIM * people + i) * x[i];
            square += x[i] * x[i];
        }
    }
    float scale = rsqrtf(fmaxf(1.0f, square));
    UNROLL for (int i = 0; i < DIM; i++) x[i] *= scale;
    return mean * scale;
}

// Fills one action of the round's decision set; its mean reward.
DEVICE float make_action(const Place& place, const World& world, int action, float* x) {
    if (WORLD == BAND) return band_action(world, action, x);
    if (WORLD == CLUSTERS) return clusters_action(place, world, action, x);
    UNROLL for (int i = 0; i < DIM; i++) x[i] = place.of(world.memory, world.size, i * ACTIONS + action);
    return place.of(world.memory, world.size, DIM * ACTIONS + action);
}

DEVICE double draw_reward(const Setting& setting, u64 word, float mean) {
    if (setting.reward_std == 0.0) return exact_uniform(word) < 0.5 * (1.0 + mean) ? 1.0 : -1.0;
    double value = mean + setting.reward_std * normal(word);
    return fmin(fmax(value, -setting.reward_bound), setting.reward_bound);
}
// ---- releases
// Standard deviation of a Gaussian draw's entry.
DEVICE double deviation(const Setting& setting, int row, int column) {
    if (row == DIM) return setting.moment_scale;
    return row == column ? 1.4142135623730951 * setting.scale : setting.scale;
}

// Two Wishart matrices by Bartlett's decomposition, in place of their factors' entries.
DEVICE void bartlett(const Place& place, float* factor, float* first, float* second) {
    place.sync();
    place.each([&](int slot, int entry, int, int) {
        factor[entry] = first[slot];
        factor[PACKED + entry] = second[slot];
    });
    place.sync();
    place.each([&](int slot, int, int row, int column) {
        const float *left = factor + row * (row + 1) / 2, *right = factor + column * (column + 1) / 2;
        first[slot] = second[slot] = 0.0f;
        UNROLL_SMALL for (int k = 0; k <= column; k++) {
            first[slot] += left[k] * right[k];
            second[slot] += left[PACKED + k] * right[PACKED + k];
        }
    });
}

// The noise that a tree shows with release `number`: each level that changes takes a fresh draw.
// Rows are kept elsewhere, so a node's noise is drawn when it is first shown. What levels
// j and above show together is kept for each j from 1.
DEVICE void tree_noise(const Place& place, const Setting& setting, Stream stream, double* kept,
                       i64 kept_size, i64 number, float* factor, double* shown) {
    int levels = (int)setting.levels;
    int carry = number == 0 ? levels : min(levels, __ffsll(number) - 1);
    int top = carry < levels ? carry : levels - 1;
    place.each([&](int slot, int entry, int, int) {
        bool none = top + 1 >= levels;
        shown[slot] = none ? 0.0 : place.of(kept, kept_size, (i64)top * PACKED + entry);
    });
    for (int level = top; level >= 0; level -= 2) {  // two levels at a time
        u64 turn = (u64)number * 32 + (unsigned)(top - level) / 2;
        float first[SLOTS], second[SLOTS];
        place.each([&](int slot, int entry, int row, int column) {
            normals(word_at(stream, turn * PACKED + entry), first[slot], second[slot]);
            if (!WISHART || row != column) return;
            u64 from = FAR_OFF + (turn * 64 + row) * 128, bits = word_at(stream, from + 127);
            float dof = (float)setting.dof - row;
            first[slot] = chi(stream, from, dof, first[slot], (unsigned)bits);
            second[slot] = chi(stream, from + 64, dof, second[slot], (unsigned)(bits >> 32));
        });
        if (WISHART) bartlett(place, factor, first, second);
        place.each([&](int slot, int entry, int row, int column) {
            double scale = WISHART ? setting.scale : deviation(setting, row, column);
            if (setting.idle || level == carry) shown[slot] += scale * first[slot];
            if (level > 0) place.of(kept, kept_size, (i64)(level - 1) * PACKED + entry) = shown[slot];
            if (level > 0 && setting.idle) shown[slot] += scale * second[slot];
            if (level > 1) place.of(kept, kept_size, (i64)(level - 2) * PACKED + entry) = shown[slot];
        });
    }
}

// Makes release `number` of the rows so far: fills `total`, what is shown. `shown` is a tree's noise.
DEVICE void make_release(const Place& place, const Setting& setting, Stream stream, double* kept,
                         i64 kept_size, i64 number, const double* shown, double* sums, double* total) {
    if (SHARING == NO_NOISE) {
        place.each([&](int slot, int entry, int, int) { total[entry] = sums[slot]; });
    } else if (SHARING == TREE) {
        place.each([&](int slot, int entry, int, int) { total[entry] = sums[slot] + shown[slot]; });
    } else if (number > 0) {
        const double* public_ = setting.releases + (number - 1) * COLUMNS;
        i64 count = setting.buffers;
        place.each([&](int slot, int entry, int row, int column) {
            double draw = deviation(setting, row, column)
                          * normal(word_at(stream, (u64)number * PACKED + entry));
            if (SHARING == BUFFERS) {
                for (i64 j = 0; j < count; j++)
                    draw -= setting.mixture[count + j] * place.of(kept, kept_size, j * PACKED + entry);
                for (i64 j = 0; j < count; j++) {
                    double& buffer = place.of(kept, kept_size, j * PACKED + entry);
                    buffer = setting.mixture[j] * buffer + draw;
                }
                double& noise = place.of(kept, kept_size, count * PACKED + entry);
                noise += draw;
                total[entry] = sums[slot] + noise;
            } else {
                double& window = place.of(kept, kept_size, entry);
                double& rate = place.of(kept, kept_size, PACKED + entry);
                double& lag = place.of(kept, kept_size, 2 * PACKED + entry);
                window = public_[KEPT] * window + sums[slot];
                sums[slot] = 0.0;
                double seen = window + public_[ENLARGED] * draw;
                double surprise = seen - public_[HELD] * rate - public_[KEPT] * lag;
                rate += public_[GAIN] * surprise;
                lag = public_[KEPT] * lag + public_[LAG_GAIN] * surprise;
                total[entry] = public_[SIZE] * rate;
            }
        });
    }
    place.sync();
}
// ---- linear algebra
// What a choice is made by: w = L^-1 x or w = basis^T x, and an action's score is
// weights.w + bonus * sqrt(sum spread w^2), plus bonus * sqrt(sum lean w^2) with RULE WIDTH.
struct Decision {
    float* lower;  // entry (i, j) of the factor at j * COLUMN + i; WIDTH: of the basis
    float *weights, *spread, *lean;  // spread, unless WIDTH: the reciprocals of D
    float bonus, dither, share;
    bool flat;  // nothing is known yet and all actions are alike
};

// 1 / x for numbers that float32 has room for: Newton's steps from there.
DEVICE double reciprocal(double x) {
    double found = 1.0f / (float)x;
    found = fma(found, fma(-x, found, 1.0), found);
    return fma(found, fma(-x, found, 1.0), found);
}

// Factors packed * scale + shift * I, as `linalg.factor` does; the log-determinant, or NaN. The
// moment is one more row: what elimination leaves of it are the weights.
#if !BIG
DEVICE double factor_once(const Place&, const double* packed, double scale, double shift,
                          double*, Decision& made) {
    double lower[DIM + 1][DIM], inverse[DIM];
    float log_det = 0.0f;  // to seven digits, which is as much as the bonus has
    bool positive = true;
    UNROLL for (int i = 0; i <= DIM; i++) {
        UNROLL for (int j = 0; j < i; j++) {
            double rest = packed[i * (i + 1) / 2 + j] * scale;
            UNROLL for (int k = 0; k < j; k++) rest -= lower[i][k] * lower[j][k];
            lower[i][j] = rest;
        }
        double pivot = i < DIM ? packed[i * (i + 1) / 2 + i] * scale + shift : 1.0;
        UNROLL for (int j = 0; j < i; j++) {
            double entry = lower[i][j] * inverse[j];
            pivot -= lower[i][j] * entry;
            lower[i][j] = entry;
            if (i < DIM) made.lower[j * COLUMN + i] = (float)entry;
            else made.weights[j] = (float)entry;
        }
        if (i == DIM) break;
        positive = positive && pivot > 0.0;
        inverse[i] = reciprocal(pivot);
        if (RULE == RADIUS) log_det += __logf((float)pivot);
        made.spread[i] = (float)inverse[i];
    }
    return positive ? (double)log_det : log(-1.0);
}
#else
DEVICE double factor_once(const Place& place, const double* packed, double scale, double shift,
                          double* work, Decision& made) {
    place.sync();
    place.each([&](int, int entry, int row, int column) {
        work[entry] = packed[entry] * scale + (row == column ? shift : 0.0);
    });
    place.sync();
    double product = 1.0, log_det = 0.0;
    const int wide = LANES < 16 ? 1 : 16;
    for (int k = 0; k < DIM; k++) {
        double pivot = work[k * (k + 1) / 2 + k];
        if (!(pivot > 0.0)) return log(-1.0);
        double inverse = 1.0 / pivot;
        product *= pivot;
        if (!(1e-100 < product && product < 1e100)) { log_det += log(product); product = 1.0; }
        for (int i = k + 1 + place.lane / wide; i <= DIM; i += LANES / wide) {
            double along = work[i * (i + 1) / 2 + k] * inverse;
            for (int j = k + 1 + place.lane % wide; j <= i && j < DIM; j += wide)
                work[i * (i + 1) / 2 + j] -= along * work[j * (j + 1) / 2 + k];
        }
        if (place.lane == 0) made.spread[k] = (float)inverse;
        place.sync();
    }
    place.each([&](int, int entry, int row, int column) {
        if (row == column) return;
        double along = work[entry] / work[column * (column + 1) / 2 + column];
        if (row < DIM) made.lower[column * COLUMN + row] = (float)along;
        else made.weights[column] = (float)along;
    });
    place.sync();
    return log_det + log(product);
}
#endif

// The same, lifted by `floor` times powers of two until it is positive definite.
DEVICE double factor(const Place& place, const double* packed, double scale, double shift,
                     double floor, double* work, Decision& made) {
    double log_det = factor_once(place, packed, scale, shift, work, made);
    for (double lift = floor; !(log_det == log_det) && lift < 1e300; lift *= 2.0)
        log_det = factor_once(place, packed, scale, shift + lift, work, made);
    return log_det;
}

// Eigenvalues (left on the diagonal) and eigenvectors (columns) of a symmetric matrix: Jacobi's
// rotations, in rows of DIM entries.
DEVICE void diagonalise(const Place& place, double* matrix, double* vectors) {
    place.sync();
    for (int i = place.lane; i < DIM * DIM; i += LANES) vectors[i] = i % (DIM + 1) == 0 ? 1.0 : 0.0;
    for (int sweep = 0; sweep < 40; sweep++) {
        double off = 0.0, on = 0.0;
        place.sync();
        UNROLL_SMALL for (int p = 0; p < DIM; p++) {
            on += matrix[p * DIM + p] * matrix[p * DIM + p];
            UNROLL_SMALL for (int q = p + 1; q < DIM; q++) off += matrix[p * DIM + q] * matrix[p * DIM + q];
        }
        if (off <= 1e-29 * on) break;
        UNROLL_SMALL for (int p = 0; p < DIM; p++)
            UNROLL_SMALL for (int q = p + 1; q < DIM; q++) {
                double across = matrix[p * DIM + q];
                double first = matrix[p * DIM + p], second = matrix[q * DIM + q];
                if (across == 0.0) continue;
                double tau = (second - first) / (2.0 * across);
                double tangent = (tau >= 0.0 ? 1.0 : -1.0) / (fabs(tau) + sqrt(1.0 + tau * tau));
                double cosine = 1.0 / sqrt(1.0 + tangent * tangent), sine = tangent * cosine;
                place.sync();
                UNROLL_SMALL for (int k = place.lane; k < DIM; k += LANES) {
                    double left = vectors[k * DIM + p], right = vectors[k * DIM + q];
                    vectors[k * DIM + p] = cosine * left - sine * right;
                    vectors[k * DIM + q] = sine * left + cosine * right;
                    if (k == p || k == q) continue;
                    left = matrix[k * DIM + p], right = matrix[k * DIM + q];
                    matrix[k * DIM + p] = matrix[p * DIM + k] = cosine * left - sine * right;
                    matrix[k * DIM + q] = matrix[q * DIM + k] = sine * left + cosine * right;
                }
                if (place.lane == 0) {
                    matrix[p * DIM + p] = first - tangent * across;
                    matrix[q * DIM + q] = second + tangent * across;
                    matrix[p * DIM + q] = matrix[q * DIM + p] = 0.0;
                }
                place.sync();
            }
    }
    place.sync();
}
// ---- from a release to a decision
struct Work { double *packed, *matrix, *vectors, *values, *along; };

DEVICE void unpack(const Place& place, const double* total, double divisor, double* matrix) {
    place.sync();
    place.each([&](int, int entry, int row, int column) {
        if (row < DIM) matrix[row * DIM + column] = matrix[column * DIM + row] = total[entry] / divisor;
    });
}

// Paper: prop:calc-beta and alg:linucb; see `kernels._rounds.play_radius`.
DEVICE void decide_by_radius(const Place& place, const Setting& setting, const double* total,
                             const Work& work, Decision& made) {
    double log_det = factor(place, total, 1.0, setting.shift, setting.floor, work.packed, made);
    float root = sqrtf((float)fmax(0.0, log_det + setting.log_offset));
    made.bonus = (float)setting.optimism * ((float)setting.noise_scale * root + (float)setting.bias);
}

// `kernels._width.region`.
DEVICE void decide_by_width(const Place& place, const Setting& setting, const double* total,
                            i64 number, const Work& work, Decision& made) {
    const double* public_ = setting.releases + (number - 1) * COLUMNS;
    double heaviest = public_[HEAVIEST], reach = public_[REACH];
    double norm = setting.theta_norm, gram_std = public_[GRAM_STD], moment_std = public_[MOMENT_STD];
    unpack(place, total, heaviest, work.matrix);
    diagonalise(place, work.matrix, work.vectors);
    double floor = moment_std * moment_std + 2.0 * norm * norm * gram_std * gram_std;
    double prior = setting.prior * (setting.variance * reach + floor);
    double square = 2.0 * public_[LOG_TAIL], least = work.matrix[0];
    for (int i = place.lane; i < DIM; i += LANES)
        work.values[i] = setting.variance * fmax(work.matrix[i * DIM + i] + reach, 0.0) + floor + prior;
    place.sync();
    for (int i = 0; i < DIM; i++) {
        square += log(work.values[i] / prior);
        least = fmin(least, work.matrix[i * DIM + i]);
    }
    bool known = true;
    for (int i = 0; i < DIM; i++)
        known &= norm * work.matrix[i * DIM + i] >= sqrt(square * work.values[i]);
    double empty = setting.variance * reach + floor + prior;  // from here on as in `smallest_shift`
    double blank = 2.0 * public_[LOG_TAIL] + DIM * log(empty / prior);
    double half = 0.5 * blank * setting.variance / norm, enough = half + sqrt(half * half + blank * empty);
    double tried = reach + fmax(reach, enough / norm) + fmax(0.0, -least - reach);
    double factor = exp(log(SPAN) / (SHIFTS - 1)), best = 1e300, shift = 0.0;
    for (int candidate = 0; candidate < SHIFTS && !known; candidate++) {
        double variance = 0.0, lean = 0.0;
        for (int i = 0; i < DIM; i++) {
            double inverse = 1.0 / (work.matrix[i * DIM + i] + tried);
            variance += work.values[i] * inverse * inverse;
            lean += inverse * inverse;
        }
        double width = sqrt(square * variance) + tried * norm * sqrt(lean);
        if (width < best) shift = tried;
        best = fmin(best, width), tried *= factor;
    }
    UNROLL for (int i = BIG ? place.lane : 0; i < DIM; i += BIG ? LANES : 1) {
        double inverse = 1.0 / (work.matrix[i * DIM + i] + shift), along = 0.0, lean = shift * norm * inverse;
        UNROLL for (int j = 0; j < DIM; j++) {
            along += work.vectors[j * DIM + i] * total[DIM * (DIM + 1) / 2 + j];
            made.lower[i * COLUMN + j] = (float)work.vectors[j * DIM + i];
        }
        made.weights[i] = (float)(inverse * along / heaviest);
        made.spread[i] = (float)(work.values[i] * square * inverse * inverse);
        made.lean[i] = (float)(lean * lean);
    }
    made.bonus = (float)setting.optimism;
    place.sync();
}

DEVICE double above_zero(double value, double std) {
    double at = value / std;
    if (std == 0.0) return fmax(value, 0.0);
    if (at < -8.0) return std / -at;
    return value + std * 0.3989422804014327 * exp(-0.5 * at * at) / (0.5 * erfc(-0.7071067811865476 * at));
}

// `kernels._posterior.above_zero` above, and `floor_of` with one block.
DEVICE double floor_of(const Setting& setting, double gram_std, double moment_std, double prior) {
    double square = fmin(setting.theta_norm * setting.theta_norm, prior * DIM);
    return moment_std * moment_std + (1.0 + 1.0 / DIM) * square * gram_std * gram_std;
}

// `kernels._posterior._through_noise`: the information of a noisy release, packed into
// `work.packed`; the prior's variance. `known` is how much is known of some direction.
DEVICE double through_noise(const Place& place, const Setting& setting, const double* total,
                            const double* public_, const Work& work, double& known) {
    double gram_std = public_[GRAM_STD], moment_std = public_[MOMENT_STD];
    double *values = work.values, *along = work.along;
    unpack(place, total, 1.0, work.matrix);
    diagonalise(place, work.matrix, work.vectors);
    double mean = 0.0, square = 0.0, sum = 0.0;
    for (int i = 0; i < DIM; i++) mean += work.matrix[i * DIM + i] / DIM;
    for (int i = 0; i < DIM; i++)
        square += (work.matrix[i * DIM + i] - mean) * (work.matrix[i * DIM + i] - mean);
    double by_noise = 2.0 * gram_std * gram_std * (DIM * (DIM + 1) / 2 - 1);
    double gathered = square > by_noise ? 1.0 - by_noise / square : 0.0;
    for (int i = place.lane; i < DIM; i += LANES) {
        double value = mean + gathered * (work.matrix[i * DIM + i] - mean);
        values[i] = above_zero(value, 1.4142135623730951 * gram_std);
        along[i] = 0.0;
        for (int j = 0; j < DIM; j++) along[i] += work.vectors[j * DIM + i] * total[DIM * (DIM + 1) / 2 + j];
    }
    place.sync();
    for (int i = 0; i < DIM; i++) sum += values[i];
    double shrink = gram_std > 0.0 ? fmin(1.0, public_[WEIGHT] * setting.square / sum) : 1.0;
    double best = -1e300, prior = setting.prior, tried = setting.prior;
    for (int halving = 0; halving <= (int)setting.halvings; halving++, tried *= 0.5) {
        double likelihood = -halving, floor = floor_of(setting, gram_std, moment_std, tried);
        for (int i = 0; i < DIM; i++) {
            double value = shrink * values[i];
            double spread = setting.variance * value + floor + tried * value * value;
            likelihood -= 0.5 * (log(spread) + along[i] * along[i] / spread);
        }
        if (likelihood > best) { best = likelihood; prior = tried; }
    }
    double floor = floor_of(setting, gram_std, moment_std, prior);
    known = 0.0;
    for (int i = 0; i < DIM; i++) {
        double value = shrink * values[i], gain = prior * value * value / (setting.variance * value + floor);
        known = fmax(known, gain / (1.0 + gain));
    }
    place.each([&](int, int entry, int row, int column) {
        double held = 0.0;
        for (int i = 0; i < DIM; i++) {
            double value = shrink * values[i], weight = value / (setting.variance * value + floor);
            double other = row < DIM ? work.vectors[row * DIM + i] * value : along[i];
            held += work.vectors[column * DIM + i] * weight * other;
        }
        work.packed[entry] = held;
    });
    place.sync();
    return prior;
}

// `kernels._posterior.fill`, and what the rule makes of it.
DEVICE void decide_by_posterior(const Place& place, const Setting& setting, const double* total,
                                i64 round, i64 number, const Work& work, double* scratch, Decision& made) {
    double prior = setting.prior, known = 0.0;
    if (SHARING == NO_NOISE) {
        double scale = 1.0 / setting.variance, most = 0.0;
        UNROLL for (int i = 0; i < DIM; i++) most = fmax(most, total[i * (i + 1) / 2 + i]);
        known = prior * scale * most < LEAST_KNOWN / (1.0 - LEAST_KNOWN) ? 0.0 : 1.0;
        factor(place, total, scale, 1.0 / prior, 1.0 / prior, scratch, made);
        float more = sqrtf(__logf(fmaxf(1.0f, (float)round)) / DIM);
        made.bonus = (float)setting.deviations + (float)setting.growth * more;
    } else {
        const double* public_ = setting.releases + (number - 1) * COLUMNS;
        prior = through_noise(place, setting, total, public_, work, known);
        factor(place, work.packed, 1.0, 1.0 / prior, 1.0 / prior, scratch, made);
        made.bonus = (float)public_[BONUS];
    }
    made.dither = (float)setting.dither * rsqrtf((float)prior);
    made.share = known < LEAST_KNOWN ? 1.0f : (float)setting.uniform;
}

DEVICE void decide(const Place& place, const Setting& setting, const double* total, i64 round,
                   i64 number, const Work& work, double* scratch, Decision& made) {
    made.flat = RULE != POSTERIOR && !SAMPLING && WORLD != CLUSTERS
                && (RULE == WIDTH ? number == 0 : SHARING == NO_NOISE && round == 0);
    if (RULE == RADIUS) {
        decide_by_radius(place, setting, total, work, made);
    } else if (number > 0 && RULE == WIDTH) {
        decide_by_width(place, setting, total, number, work, made);
    } else if (number > 0) {
        decide_by_posterior(place, setting, total, round, number, work, scratch, made);
    } else {  // before the first release
        for (int i = BIG ? place.lane : 0; i < DIM; i += BIG ? LANES : 1) {
            for (int j = 0; j < DIM; j++) made.lower[i * COLUMN + j] = i == j ? 1.0f : 0.0f;
            made.weights[i] = made.spread[i] = 0.0f;
            made.lean[i] = (float)(setting.theta_norm * setting.theta_norm);
        }
        made.bonus = (float)setting.optimism, made.share = 1.0f, made.dither = 0.0f;
        place.sync();
    }
}
// ---- choosing
// Turns a vector from the package's axes to ours, where theta is the first of them.
DEVICE void turn(const Place& place, const World& world, float* x) {
    float product = 0.0f, square = 0.0f, mirror[DIM];
    UNROLL for (int i = 0; i < DIM; i++) {
        mirror[i] = place.of(world.memory, world.size, i) - (i == 0 ? 1.0f : 0.0f);
        product += mirror[i] * x[i];
        square += mirror[i] * mirror[i];
    }
    if (!(square > 1e-12f)) return;
    UNROLL for (int i = 0; i < DIM; i++) x[i] -= 2.0f * product / square * mirror[i];
}

// The normals of a tilt: the package's own numbers where there is a table of them.
DEVICE void tilt_normals(const Setting& setting, i64 number, int which, float* x) {
    if (!EVERY_ROUND || SHARING != NO_NOISE) {
        const float* own = setting.tilts + ((number - 1) * (TILTS / 2) + which / 2) * DIM;
        UNROLL for (int i = 0; i < DIM; i++) x[i] = own[i];
    } else {
        const u64 stride = 0x9E3779B97F4A7C15ull;
        u64 position = mixed((u64)(number * TILTS + which / 2) * stride);
        UNROLL for (int i = 0; i < DIM; i++) x[i] = normal(mixed(position += stride));
    }
}

// The weights of this round: those of the release, tilted (POSTERIOR) or drawn (SAMPLING).
DEVICE void round_weights(const Place& place, const Setting& setting, const World& world,
                          Stream policy, i64 number, const Decision& made, float* weights) {
    u64 from = (u64)world.round * POLICY_WORDS;
    UNROLL for (int i = 0; i < DIM; i++) weights[i] = made.weights[i];
    if (RULE == POSTERIOR && made.dither > 0.0f) {
        float x[DIM];
        int which = (int)(word_at(policy, from + 1) >> 60);
        float sign = which % 2 == 0 ? made.dither : -made.dither;
        tilt_normals(setting, number, which, x);
        if (WORLD == BAND) turn(place, world, x);
        UNROLL for (int j = 0; j < DIM; j++) {
            UNROLL for (int i = j + 1; i < DIM; i++) x[i] -= made.lower[j * COLUMN + i] * x[j];
            weights[j] += sign * made.spread[j] * x[j];
        }
    }
    UNROLL for (int i = 0; i < DIM && SAMPLING; i++) {
        float width = sqrtf(made.spread[i]) + (RULE == WIDTH ? sqrtf(made.lean[i]) : 0.0f);
        weights[i] += made.bonus * width * normal(word_at(policy, from + 3 + i));
    }
}

// The score of an action.
DEVICE float score(const Decision& made, const float* weights, const float* action) {
    float found = 0.0f, square = 0.0f, lean = 0.0f, x[DIM];
    UNROLL for (int i = 0; i < DIM; i++) x[i] = action[i];
    UNROLL for (int j = 0; j < DIM; j++) {
        float along = RULE == WIDTH ? 0.0f : x[j];
        UNROLL for (int i = RULE == WIDTH ? 0 : j + 1; i < DIM; i++) {
            if (RULE == WIDTH) along += made.lower[j * COLUMN + i] * x[i];
            else x[i] -= made.lower[j * COLUMN + i] * along;
        }
        found += weights[j] * along;
        square += made.spread[j] * along * along;
        if (RULE == WIDTH) lean += made.lean[j] * along * along;
    }
    if (SAMPLING) return found;
    return found + made.bonus * (sqrtf(square) + (RULE == WIDTH ? sqrtf(lean) : 0.0f));
}

// A choice, its mean reward, and that of the best action.
struct Chosen { int action; float mean, best; };

// Scores this lane's actions, and finds the best of all lanes'. Fills x with it.
DEVICE Chosen choose(const Place& place, const Setting& setting, const World& world, Stream policy,
                     i64 number, const Decision& made, float* x) {
    int forced = made.flat ? 0 : -1;
    u64 from = (u64)world.round * POLICY_WORDS;
    if (RULE == POSTERIOR && made.share > 0.0f && exact_uniform(word_at(policy, from)) < made.share)
        forced = (int)(((word_at(policy, from + 2) >> 32) * ACTIONS) >> 32);
    float drawn[DRAWN ? DIM : 1], own[DIM], top = -1e30f, mean = 0.0f, best = -1e30f;
    const float* weights = DRAWN ? drawn : made.weights;
    int action = ACTIONS;
    if (DRAWN && forced < 0) round_weights(place, setting, world, policy, number, made, drawn);
    for (int k = place.lane; k < ACTIONS; k += LANES) {
        if (WORLD != CLUSTERS && forced >= 0 && k != forced) continue;
        float tried[DIM], made_mean = make_action(place, world, k, tried);
        if (WORLD == CLUSTERS) best = fmaxf(best, made_mean);
        float scored = forced < 0 ? score(made, weights, tried) : k == forced ? 1.0f : 0.0f;
        if (!(scored > top)) continue;
        top = scored, mean = made_mean, action = k;
        UNROLL for (int i = 0; i < DIM && !BIG; i++) own[i] = tried[i];
    }
    Chosen chosen;
    chosen.action = winner(place, top, action);
    chosen.best = WORLD == CLUSTERS ? largest(place, best) : WORLD == BAND ? (float)setting.top
                  : place.of(world.memory, world.size, (DIM + 1) * ACTIONS);
    if (BIG && chosen.action % LANES == place.lane) mean = make_action(place, world, chosen.action, own);
    place.sync();
    UNROLL for (int i = 0; i < DIM; i++)
        if (chosen.action % LANES == place.lane) x[i] = own[i];
    if (chosen.action % LANES == place.lane) x[DIM] = mean;
    place.sync();
    chosen.mean = x[DIM];
    return chosen;
}
// ---- the loop
extern "C" __global__ void __launch_bounds__(BLOCK, BIG || LANES == 1 ? 512 / BLOCK : 1) play(
    const Setting* __restrict__ settings, const int* __restrict__ setting_of,
    const u64* __restrict__ streams, double* __restrict__ state, double* __restrict__ kept,
    i64 kept_size, const float* __restrict__ memory, i64 memory_size, double* __restrict__ regrets,
    i64 replicates, i64 rounds) {
    Place place = find_place(replicates);
    if (place.replicate >= replicates) return;
    const Setting& setting = settings[setting_of[place.replicate]];
    const u64* own = streams + 6 * place.replicate;
    Stream noise = {own[2], own[3]}, policy = {own[4], own[5]};
    World world = {&setting, memory, memory_size, {own[0], own[1]}, 0, 0};
    FAR_ROOM(double, total, PACKED, PACKED);
    FAR_ROOM(double, packed, RULE == POSTERIOR ? PACKED : 1, 2 * PACKED + SCALARS);
    FAR_ROOM(double, matrix, RULE == RADIUS ? 1 : DIM * DIM, 3 * PACKED + SCALARS);
    FAR_ROOM(double, vectors, RULE == RADIUS ? 1 : DIM * DIM, 3 * PACKED + SCALARS + DIM * DIM);
    ROOM(double, scratch, BIG ? PACKED : 1);
    ROOM(double, values, DIM);
    ROOM(double, along, DIM);
    ROOM(float, factors, WISHART ? 2 * PACKED : 1);
    ROOM(float, x, DIM + 1);
#if BIG
    ROOM(float, lower, DIM * COLUMN);
    ROOM(float, weights, DIM);
    ROOM(float, spread, DIM);
    ROOM(float, lean, DIM);
#else
    float lower[DIM * COLUMN], weights[DIM], spread[DIM], lean[DIM];
#endif
    Work work = {RULE == POSTERIOR ? packed : scratch, matrix, vectors, values, along};
    Decision made = {lower, weights, spread, lean, 0.0f, 0.0f, 0.0f, false};

    double sums[SLOTS], shown[SHARING == TREE ? SLOTS : 1], scalars[SCALARS];
    for (int i = 0; i < SCALARS; i++) scalars[i] = place.of(state, STATE, 2 * PACKED + i);
    place.each([&](int slot, int entry, int, int) {
        sums[slot] = place.of(state, STATE, entry);
        total[entry] = place.of(state, STATE, PACKED + entry);
    });
    double regret = scalars[REGRET];
    i64 round = scalars[ROUND], number = scalars[NUMBER], due = scalars[NEXT_DUE], at = scalars[CHECKPOINT];
    if (round == 0) {
        due = setting.first_due;
        if (SHARING == TREE) tree_noise(place, setting, noise, kept, kept_size, 0, factors, shown);
        make_release(place, setting, noise, kept, kept_size, 0, shown, sums, total);
    }
    place.sync();
    decide(place, setting, total, round, number, work, scratch, made);
    i64 stop = min(round + rounds, setting.last), next = setting.checkpoints[at];
    while (round < stop) {
        open_round(world, round);
        u64 coin = word_at(world.stream, (u64)round * ROUND_WORDS);
        if (EARLY) tree_noise(place, setting, noise, kept, kept_size, number + 1, factors, shown);
        Chosen chosen = choose(place, setting, world, policy, number, made, x);
        double reward = draw_reward(setting, coin, chosen.mean);
        regret += (double)chosen.best - chosen.mean;
        place.each([&](int slot, int, int row, int column) {
            sums[slot] += (row == DIM ? reward : (double)x[row]) * (double)x[column];
        });
        round++;
        if (EVERY_ROUND || round == due) {
            number++;
            if (SHARING == TREE && !EARLY)
                tree_noise(place, setting, noise, kept, kept_size, number, factors, shown);
            make_release(place, setting, noise, kept, kept_size, number, shown, sums, total);
            decide(place, setting, total, round, number, work, scratch, made);
            if (!EVERY_ROUND) due = (i64)setting.releases[(number - 1) * COLUMNS + DUE];
        }
        if (round == next) {
            if (place.lane == 0) regrets[at * replicates + place.replicate] = regret;
            if (round < setting.last) next = setting.checkpoints[++at];
        }
    }
    place.sync();
    place.each([&](int slot, int entry, int, int) {
        place.of(state, STATE, entry) = sums[slot];
        place.of(state, STATE, PACKED + entry) = total[entry];
    });
    if (place.lane == 0) {
        double last[SCALARS] = {regret, (double)round, (double)number, (double)due, (double)at};
        for (int i = 0; i < SCALARS; i++) place.of(state, STATE, 2 * PACKED + i) = last[i];
    }
}
