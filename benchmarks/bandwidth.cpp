// The speed limit of a fit: reading an array once, by several threads. Compiled by benchmarks/bandwidth.py.
#include "../cpp/kernels/parallel.hpp"
#include "../cpp/kernels/simd.hpp"

namespace deciban {

DECIBAN_CLONES static double sum_range(const double* x, std::size_t n) {
    v4 sums[4] = {};
    std::size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (std::size_t v = 0; v < 4; ++v) sums[v] += load(x + i + 4 * v);
    double total = sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (; i < n; ++i) total += x[i];
    return total;
}

}  // namespace deciban

extern "C" double sum_array(const double* x, std::size_t n, unsigned threads) {
    std::vector<double> sums(threads);
    deciban::parallel(n, threads, [&](unsigned part, std::size_t begin, std::size_t end) {
        sums[part] = deciban::sum_range(x + begin, end - begin);
    });
    double total = 0.0;
    for (const double part : sums) total += part;
    return total;
}
