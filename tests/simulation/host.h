// What `rounds.cu` needs to be compiled for a processor: one lane, one replicate after the other.
#include <algorithm>
#include <cmath>

#define __device__
#define __global__
#define __shared__
#define __forceinline__ inline
#define __align__(bytes)
#define __launch_bounds__(...)

// The C library has some of these names for itself.
#define __logf logarithm
#define __powf power
#define __sincosf sine_and_cosine

using std::erfc;
using std::exp;
using std::fma;
using std::log;
using std::max;
using std::min;
using std::sqrt;

struct Index {
    unsigned x;
};
static Index blockIdx, threadIdx;

static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline float logarithm(float x) { return std::log(x); }
static inline float power(float x, float y) { return std::pow(x, y); }
static inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
static inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
static inline void sine_and_cosine(float x, float* sine, float* cosine) {
    *sine = std::sin(x);
    *cosine = std::cos(x);
}
