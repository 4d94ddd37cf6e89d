// Vectors of four doubles in the compiler's vector extension: one source for every instruction set.
//
// DECIBAN_CLONES compiles a function twice, for x86-64-v3 (AVX2 and FMA) and for baseline x86-64, and picks at load
// time. Lanes, order of operations and fused multiply-adds are the same in both, so the results are equal bit for bit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define DECIBAN_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define DECIBAN_CLONES
#endif
#define DECIBAN_INLINE static inline __attribute__((always_inline))
#define DECIBAN_UNROLL _Pragma("GCC unroll 8")  // for short loops whose arrays must stay in registers

namespace deciban {

typedef double v4 __attribute__((vector_size(32)));
typedef std::int64_t i4 __attribute__((vector_size(32)));

DECIBAN_INLINE v4 load(const double* p) {
    v4 r;
    std::memcpy(&r, p, sizeof r);
    return r;
}
DECIBAN_INLINE i4 load(const std::int64_t* p) {
    i4 r;
    std::memcpy(&r, p, sizeof r);
    return r;
}
DECIBAN_INLINE void store(double* p, v4 v) { std::memcpy(p, &v, sizeof v); }
DECIBAN_INLINE void store(std::int64_t* p, i4 v) { std::memcpy(p, &v, sizeof v); }
DECIBAN_INLINE v4 splat(double x) { return v4{x, x, x, x}; }
DECIBAN_INLINE i4 splat(std::int64_t x) { return i4{x, x, x, x}; }
// The sums of the lanes of four vectors, as one vector.
DECIBAN_INLINE v4 sums_of(v4 a, v4 b, v4 c, v4 d) {
    const v4 ab = __builtin_shuffle(a, b, i4{0, 1, 4, 5}) + __builtin_shuffle(a, b, i4{2, 3, 6, 7});
    const v4 cd = __builtin_shuffle(c, d, i4{0, 1, 4, 5}) + __builtin_shuffle(c, d, i4{2, 3, 6, 7});
    return __builtin_shuffle(ab, cd, i4{0, 2, 4, 6}) + __builtin_shuffle(ab, cd, i4{1, 3, 5, 7});
}
DECIBAN_INLINE double sum(v4 v) { return (v[0] + v[2]) + (v[1] + v[3]); }
// Hides the origin of a pointer from the optimizer, so that scalars are broadcast from memory instead of shuffled.
DECIBAN_INLINE const double* opaque_pointer(const double* p) {
    __asm__("" : "+r"(p));
    return p;
}
DECIBAN_INLINE bool any(i4 v) { return (v[0] | v[1] | v[2] | v[3]) != 0; }
DECIBAN_INLINE v4 keep(v4 v, i4 mask) { return (v4)((i4)v & mask); }

DECIBAN_INLINE v4 fma(v4 a, v4 b, v4 c) {
    v4 r;
    DECIBAN_UNROLL
    for (int i = 0; i < 4; ++i) r[i] = __builtin_fma(a[i], b[i], c[i]);
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
