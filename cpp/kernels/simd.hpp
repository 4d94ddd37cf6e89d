// Operations on vectors of four doubles: one source for every instruction set.
#pragma once
#include <cmath>
#include <new>
#include <vector>

#include "portability.hpp"

namespace deciban {

DECIBAN_INLINE v4 load(const double* p) {
    v4 r;
    std::memcpy(&r, p, sizeof r);
    return r;
}
DECIBAN_INLINE u4 load(const std::uint64_t* p) {
    u4 r;
    std::memcpy(&r, p, sizeof r);
    return r;
}
DECIBAN_INLINE void store(double* p, v4 v) { std::memcpy(p, &v, sizeof v); }
DECIBAN_INLINE v4 splat(double x) { return v4{x, x, x, x}; }
DECIBAN_INLINE u4 splat(std::uint64_t x) { return u4{x, x, x, x}; }
// The sums of the lanes of four vectors, as one vector.
DECIBAN_INLINE v4 sums_of(v4 a, v4 b, v4 c, v4 d) {
    const v4 ab = shuffle<0, 1, 4, 5>(a, b) + shuffle<2, 3, 6, 7>(a, b);
    const v4 cd = shuffle<0, 1, 4, 5>(c, d) + shuffle<2, 3, 6, 7>(c, d);
    return shuffle<0, 2, 4, 6>(ab, cd) + shuffle<1, 3, 5, 7>(ab, cd);
}
DECIBAN_INLINE double sum(v4 v) { return (v[0] + v[2]) + (v[1] + v[3]); }
DECIBAN_INLINE bool any(u4 v) { return (v[0] | v[1] | v[2] | v[3]) != 0; }
DECIBAN_INLINE v4 keep(v4 v, u4 mask) { return (v4)((u4)v & mask); }

DECIBAN_INLINE v4 fma(v4 a, v4 b, v4 c) {
    v4 r;
    DECIBAN_UNROLL
    for (int i = 0; i < 4; ++i) r[i] = std::fma(a[i], b[i], c[i]);
    return r;
}

// Sixteen equal bytes.
DECIBAN_INLINE b16 bytes_of(unsigned char byte) {
    b16 r;
    std::memset(&r, byte, sizeof r);
    return r;
}
DECIBAN_INLINE b16 load_bytes(const char* p) {
    b16 r;
    std::memcpy(&r, p, sizeof r);
    return r;
}

// Allocates on cache-line boundaries, so that no vector straddles two lines.
template <class T>
struct Aligned {
    using value_type = T;
    Aligned() = default;
    template <class U>
    Aligned(const Aligned<U>&) {}
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64})); }
    void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{64}); }
    friend bool operator==(const Aligned&, const Aligned&) { return true; }
    friend bool operator!=(const Aligned&, const Aligned&) { return false; }
};
using Doubles = std::vector<double, Aligned<double>>;

inline std::size_t padded(std::size_t d) { return (d + 3) / 4 * 4; }

}  // namespace deciban
