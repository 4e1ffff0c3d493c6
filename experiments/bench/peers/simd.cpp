// MZS22 (Algorithm 1) by hand in C++, for timing beside the engine: runs in the lanes of vectors, one thread, the engine's
// own solver (two Halley steps from the last round's solution), a lighter generator (xoshiro128+ in place of threefry; -DTHREEFRY
// takes the engine's, to see what it costs).
//
//   g++ -O3 -march=native -ffast-math -fopenmp-simd -DARMS=10 simd.cpp -o simd -lmvec
//   ./simd RUNS ROUNDS DELAY        prints one line of JSON
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int K = ARMS;
constexpr int LANES = 64;
using Row = float[LANES];
#define EACH_LANE _Pragma("omp simd") for (int v = 0; v < LANES; v++)

#ifdef THREEFRY
// As the engine: threefry of (round, run) under the round's key, whose two words are the numbers for arm and loss.
struct Generator {
  alignas(64) Row second;
  uint32_t key, round = 0;
  bool kept = false;
  explicit Generator(uint64_t seed) : key(uint32_t(seed)) {}
  static uint32_t turned(uint32_t x, int by) { return (x << by) | (x >> (32 - by)); }
  void uniform(Row out) {
    if (kept) {
      std::copy(second, second + LANES, out);
      kept = false;
      return;
    }
    kept = true;
    round++;
    EACH_LANE {
      const uint32_t k[3] = {key, round, key ^ round ^ 0x1BD11BDAu};
      const int turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
      uint32_t x = k[0], y = uint32_t(v) + k[1];
#pragma GCC unroll 5
      for (int group = 0; group < 5; group++) {
#pragma GCC unroll 4
        for (int turn = 0; turn < 4; turn++) { x += y; y = x ^ turned(y, turns[group % 2][turn]); }
        x += k[(group + 1) % 3];
        y += k[(group + 2) % 3] + uint32_t(group + 1);
      }
      out[v] = (float(int32_t(x >> 9)) + 0.5f) / 8388608.0f;
      second[v] = (float(int32_t(y >> 9)) + 0.5f) / 8388608.0f;
    }
  }
};
#else
struct Generator {
  alignas(64) uint32_t s[4][LANES];
  explicit Generator(uint64_t seed) {
    for (auto &word : s)
      for (auto &lane : word) {
        seed += 0x9e3779b97f4a7c15ULL;  // splitmix64
        uint64_t z = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        lane = uint32_t(z >> 32);
      }
  }
  void uniform(Row out) {
    EACH_LANE {
      uint32_t sum = s[0][v] + s[3][v], kept = s[1][v] << 9;
      s[2][v] ^= s[0][v]; s[3][v] ^= s[1][v]; s[1][v] ^= s[2][v]; s[0][v] ^= s[3][v];
      s[2][v] ^= kept;
      s[3][v] = (s[3][v] << 11) | (s[3][v] >> 21);
      out[v] = (float(int32_t(sum >> 9)) + 0.5f) / 8388608.0f;
    }
  }
};
#endif

struct Rates { double tsallis_start, entropy_start, log_k; };

// The mean regret of LANES runs.
double play(int rounds, int delay, const float *means, float best, Rates rates, uint64_t seed) {
  alignas(64) float L[K][LANES] = {}, y[K][LANES], x[K][LANES];
  alignas(64) Row mu, total, first, second, which_arm, which_loss, regret = {}, probability, mean, below, target, arrived;
  alignas(64) int arm[LANES], where[LANES];
  std::vector<float> weights(size_t(delay + 1) * LANES, 0.f);
  std::vector<int> arms(size_t(delay + 1) * LANES, 0);
  Generator generator(seed);
  for (auto &row : y) std::fill(row, row + LANES, std::sqrt(float(K)));
  std::fill(mu, mu + LANES, -1e30f);
  double outstanding = 0;
  for (int t = 1; t <= rounds; t++) {
    outstanding += std::min(t - 1, delay);
    const float a = float(std::sqrt(t + rates.tsallis_start));
    const float b = 2 * float(std::sqrt((outstanding + rates.entropy_start) / rates.log_k));
    if (t == 1) EACH_LANE mu[v] = -a * std::sqrt(float(K)) - b * std::log(std::sqrt(float(K)));
    EACH_LANE mu[v] = std::min(mu[v], -a);
    for (int step = 0; step < 2; step++) {
      EACH_LANE total[v] = first[v] = second[v] = 0;
      for (int k = 0; k < K; k++)
        EACH_LANE {
          float z = y[k][v], slope = a * z + b;
          float missing = L[k][v] - mu[v] - a * z - b * logf(z);
          float bottom = std::max(slope * slope - 0.5f * b * missing, 0.25f * slope * slope);
          z = std::max(z * (bottom + missing * slope), bottom) / bottom;
          slope = a * z + b;
          float inverse = 1 / (z * slope), flat = inverse * z, p = inverse * slope * inverse * slope;
          y[k][v] = z;
          total[v] += p;
          first[v] += p * flat;
          second[v] += p * flat * flat * (2 + a * z * flat);
        }
      EACH_LANE {
        float gap = 1 - std::sqrt(total[v]);
        float bend = gap * (1.5f - 0.5f * total[v] * second[v] / (first[v] * first[v]));
        bend = std::min(std::max(bend, -1.f), 0.5f);
        float next = std::min(mu[v] + total[v] * gap / (first[v] * (1 - bend)), -a);
        below[v] = next - mu[v];  // the last move, for the last correction
        mu[v] = next;
      }
    }
    EACH_LANE total[v] = 0;
    for (int k = 0; k < K; k++)
      EACH_LANE {
        float slope = a * y[k][v] + b;
        y[k][v] = std::max(y[k][v] * (slope - below[v]), slope) / slope;
        x[k][v] = 1 / (y[k][v] * y[k][v]);
        total[v] += x[k][v];
      }
    generator.uniform(which_arm);
    generator.uniform(which_loss);
    EACH_LANE {
      target[v] = which_arm[v] * total[v];
      below[v] = 0; arm[v] = K - 1; probability[v] = x[K - 1][v]; mean[v] = means[K - 1];
    }
    alignas(64) Row suffered = {};
    alignas(64) int found[LANES] = {};
    for (int k = 0; k < K; k++)
      EACH_LANE {
        below[v] += x[k][v];
        suffered[v] += x[k][v] * (means[k] - best);
        bool here = !found[v] & (target[v] < below[v]);
        arm[v] = here ? k : arm[v];
        probability[v] = here ? x[k][v] : probability[v];
        mean[v] = here ? means[k] : mean[v];
        found[v] |= here;
      }
    const size_t in = size_t(t % (delay + 1)) * LANES, out = size_t((t + 1) % (delay + 1)) * LANES;
    EACH_LANE {
      regret[v] += suffered[v] / total[v];
      weights[in + v] = which_loss[v] < mean[v] ? total[v] / probability[v] : 0.f;
      arms[in + v] = arm[v];
    }
    EACH_LANE { arrived[v] = t > delay ? weights[out + v] : 0.f; where[v] = arms[out + v]; below[v] = 1e30f; }
    for (int k = 0; k < K; k++)
      EACH_LANE { L[k][v] += where[v] == k ? arrived[v] : 0.f; below[v] = std::min(below[v], L[k][v]); }
    for (int k = 0; k < K; k++) EACH_LANE L[k][v] -= below[v];
    EACH_LANE mu[v] -= below[v];
  }
  double sum = 0;
  for (float one : regret) sum += one;
  return sum / LANES;
}

int main(int, char **argument) {
  const int runs = atoi(argument[1]), rounds = atoi(argument[2]), delay = atoi(argument[3]);
  float means[K];
  for (int k = 0; k < K; k++) means[k] = k ? 0.5f : 0.3f;
  const double log_k = std::log(double(K)), d = delay;
  const Rates rates = {10 * d + std::pow(d / (std::cbrt(double(K)) * log_k), 2),
                       576 * d * d * std::pow(K, 2. / 3) * log_k, log_k};
  double best = 1e30, regret = 0;
  for (int turn = 0; turn < 3; turn++) {
    auto start = std::chrono::steady_clock::now();
    regret = 0;
    int blocks = (runs + LANES - 1) / LANES;
    for (int block = 0; block < blocks; block++) regret += play(rounds, delay, means, 0.3f, rates, 1000 + block) / blocks;
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / blocks / LANES);
  }
  printf("{\"rounds_per_second\": %.0f, \"regret\": %.3f}\n", rounds / best, regret);
}
