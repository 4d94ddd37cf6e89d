// Four doubles at a time, in the compilers' own vector types: one source for every instruction set.
//
// DECIBAN_CLONES compiles a function twice and picks at load time: x86-64-v3 (AVX2 and FMA), or what every x86-64 has.
// Lanes and the order of operations are the same in both, and fma is a true fused multiply-add in both, so the
// results are the same bit for bit; only the speed differs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define DECIBAN_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define DECIBAN_CLONES
#endif
#define DECIBAN_INLINE static inline __attribute__((always_inline))
#define DECIBAN_UNROLL _Pragma("GCC unroll 8")  // short loops whose arrays must live in registers

namespace deciban {

typedef double v4 __attribute__((vector_size(32)));
typedef std::int64_t i4 __attribute__((vector_size(32)));

DECIBAN_INLINE v4 load(const double* p) { v4 r; std::memcpy(&r, p, sizeof r); return r; }
DECIBAN_INLINE i4 load(const std::int64_t* p) { i4 r; std::memcpy(&r, p, sizeof r); return r; }
DECIBAN_INLINE void store(double* p, v4 v) { std::memcpy(p, &v, sizeof v); }
DECIBAN_INLINE void store(std::int64_t* p, i4 v) { std::memcpy(p, &v, sizeof v); }
DECIBAN_INLINE v4 splat(double x) { return v4{x, x, x, x}; }
DECIBAN_INLINE i4 splat(std::int64_t x) { return i4{x, x, x, x}; }
DECIBAN_INLINE double sum(v4 v) { return (v[0] + v[2]) + (v[1] + v[3]); }
DECIBAN_INLINE bool any(i4 v) { return (v[0] | v[1] | v[2] | v[3]) != 0; }
DECIBAN_INLINE v4 keep(v4 v, i4 mask) { return (v4)((i4)v & mask); }

DECIBAN_INLINE v4 fma(v4 a, v4 b, v4 c) {
    v4 r;
    DECIBAN_UNROLL
    for (int i = 0; i < 4; ++i) r[i] = __builtin_fma(a[i], b[i], c[i]);
    return r;
}

inline std::size_t padded(std::size_t d) { return (d + 3) / 4 * 4; }

}  // namespace deciban
