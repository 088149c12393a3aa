// The GPU's source, compiled for a processor: every replicate one after the other.
#include "host.h"
#include "rounds.cu"

extern "C" void play_all(const Setting* settings, const int* setting_of, const u64* streams,
                         double* state, double* kept, i64 kept_size, const float* memory,
                         i64 memory_size, double* regrets, i64 replicates, i64 rounds) {
    for (i64 replicate = 0; replicate < replicates; replicate++) {
        blockIdx.x = (unsigned)replicate;
        play(settings, setting_of, streams, state, kept, kept_size, memory, memory_size, regrets,
             replicates, rounds);
    }
}
