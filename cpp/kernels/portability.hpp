// All that depends on the compiler, each with a plain fallback: other files are standard C++17. GCC and Clang have
// vector types and builtins; elsewhere, and with DECIBAN_PORTABLE, the same operations are loops over arrays. Lanes and
// the order of operations are the same, so the results are equal bit for bit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__GNUC__) && !defined(DECIBAN_PORTABLE)
#define DECIBAN_GNU 1
#else
#define DECIBAN_GNU 0
#endif

// DECIBAN_CLONES compiles a function twice, for x86-64-v3 (AVX2 and FMA) and for baseline x86-64, and picks at load
// time. This takes ifunc, which only glibc has, and whose resolvers run before a sanitizer is ready.
// DECIBAN_CLONES_V4 also compiles it for x86-64-v4 (AVX-512), which multiplies vectors of 64-bit integers.
#if DECIBAN_GNU && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) &&                                 \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DECIBAN_CLONED
#define DECIBAN_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#define DECIBAN_CLONES_V4 __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DECIBAN_CLONES
#define DECIBAN_CLONES_V4
#endif

// DECIBAN_UNROLL is for short loops whose arrays must stay in registers.
#if DECIBAN_GNU && defined(__clang__)
#define DECIBAN_INLINE static inline __attribute__((always_inline))
#define DECIBAN_UNROLL _Pragma("clang loop unroll(full)")
#elif DECIBAN_GNU
#define DECIBAN_INLINE static inline __attribute__((always_inline))
#define DECIBAN_UNROLL _Pragma("GCC unroll 8")
#else
#define DECIBAN_INLINE static inline
#define DECIBAN_UNROLL
#endif

namespace deciban {

// Vectors: numbers, unsigned and signed integers, and bytes. A cast from one to another of the same size keeps the
// bits. A comparison gives all ones or all zeros in each lane, and is cast to u4 or b16.
#if DECIBAN_GNU

typedef double v4 __attribute__((vector_size(32)));
typedef std::uint64_t u4 __attribute__((vector_size(32)));
typedef std::int64_t i4 __attribute__((vector_size(32)));
typedef unsigned char b16 __attribute__((vector_size(16)));

// Four of the eight lanes of a and b.
template <int I, int J, int K, int L>
DECIBAN_INLINE v4 shuffle(v4 a, v4 b) {
#ifdef __clang__
    return __builtin_shufflevector(a, b, I, J, K, L);
#else
    return __builtin_shuffle(a, b, i4{I, J, K, L});
#endif
}
DECIBAN_INLINE v4 larger(v4 a, v4 b) { return a > b ? a : b; }

#else

template <class T, int N>
struct Lanes {
    T lanes[N];
    T& operator[](std::size_t i) { return lanes[i]; }
    const T& operator[](std::size_t i) const { return lanes[i]; }
    template <class U, int M>
    explicit operator Lanes<U, M>() const {
        static_assert(sizeof(Lanes) == sizeof(Lanes<U, M>), "a cast keeps the bits");
        Lanes<U, M> r;
        std::memcpy(&r, this, sizeof r);
        return r;
    }
    Lanes& operator+=(const Lanes& b) { return *this = *this + b; }
    Lanes& operator-=(const Lanes& b) { return *this = *this - b; }
    Lanes& operator*=(const Lanes& b) { return *this = *this * b; }
    Lanes& operator|=(const Lanes& b) { return *this = *this | b; }
};
typedef Lanes<double, 4> v4;
typedef Lanes<std::uint64_t, 4> u4;
typedef Lanes<std::int64_t, 4> i4;
typedef Lanes<unsigned char, 16> b16;

template <class T, int N, class Operation>
Lanes<T, N> lanewise(const Lanes<T, N>& a, const Lanes<T, N>& b, const Operation& operation) {
    Lanes<T, N> r;
    for (int i = 0; i < N; ++i) r.lanes[i] = static_cast<T>(operation(a.lanes[i], b.lanes[i]));
    return r;
}
inline u4 mask_of(const v4& a, const v4& b, bool (*holds)(double, double)) {
    u4 r;
    for (int i = 0; i < 4; ++i) r.lanes[i] = holds(a.lanes[i], b.lanes[i]) ? ~std::uint64_t{0} : 0;
    return r;
}
#define DECIBAN_LANEWISE(symbol)                                                                                       \
    template <class T, int N>                                                                                          \
    Lanes<T, N> operator symbol(const Lanes<T, N>& a, const Lanes<T, N>& b) {                                          \
        return lanewise(a, b, [](T x, T y) { return x symbol y; });                                                    \
    }
DECIBAN_LANEWISE(+)
DECIBAN_LANEWISE(-)
DECIBAN_LANEWISE(*)
DECIBAN_LANEWISE(/)
DECIBAN_LANEWISE(&)
DECIBAN_LANEWISE(|)
DECIBAN_LANEWISE(^)
#undef DECIBAN_LANEWISE
#define DECIBAN_COMPARISON(symbol)                                                                                     \
    inline u4 operator symbol(const v4& a, const v4& b) {                                                              \
        return mask_of(a, b, [](double x, double y) { return x symbol y; });                                           \
    }                                                                                                                  \
    inline b16 operator symbol(const b16& a, const b16& b) {                                                           \
        return lanewise(a, b, [](unsigned char x, unsigned char y) { return x symbol y ? 255 : 0; });                  \
    }
DECIBAN_COMPARISON(==)
DECIBAN_COMPARISON(!=)
DECIBAN_COMPARISON(<)
DECIBAN_COMPARISON(>)
DECIBAN_COMPARISON(>=)
#undef DECIBAN_COMPARISON
inline i4 operator<(const i4& a, const i4& b) {
    return lanewise(a, b, [](std::int64_t x, std::int64_t y) { return x < y ? -1 : 0; });
}
inline v4 operator-(const v4& a) { return {-a[0], -a[1], -a[2], -a[3]}; }
inline u4 operator~(const u4& a) { return {~a[0], ~a[1], ~a[2], ~a[3]}; }
inline u4 operator<<(const u4& a, int bits) { return {a[0] << bits, a[1] << bits, a[2] << bits, a[3] << bits}; }
inline u4 operator>>(const u4& a, int bits) { return {a[0] >> bits, a[1] >> bits, a[2] >> bits, a[3] >> bits}; }

template <int I, int J, int K, int L>
v4 shuffle(const v4& a, const v4& b) {
    const double lanes[] = {a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]};
    return {lanes[I], lanes[J], lanes[K], lanes[L]};
}
inline v4 larger(const v4& a, const v4& b) {
    return lanewise(a, b, [](double x, double y) { return x > y ? x : y; });
}

#endif

// The highest bit of each of sixteen bytes.
DECIBAN_INLINE std::uint16_t high_bits(const b16& bytes) {
#if DECIBAN_GNU && defined(__SSE2__)
    typedef char chars __attribute__((vector_size(16)));
    return static_cast<std::uint16_t>(__builtin_ia32_pmovmskb128((chars)bytes));
#else
    unsigned out = 0;
    for (unsigned i = 0; i < 2; ++i) {
        std::uint64_t word;
        std::memcpy(&word, reinterpret_cast<const char*>(&bytes) + 8 * i, 8);
        out |= static_cast<unsigned>((word & 0x8080808080808080u) * 0x0002040810204081u >> 56) << (8 * i);
    }
    return static_cast<std::uint16_t>(out);
#endif
}

// Hides the origin of a pointer from the optimizer, so that scalars are broadcast from memory instead of shuffled.
DECIBAN_INLINE const double* opaque_pointer(const double* p) {
#if DECIBAN_GNU
    __asm__("" : "+r"(p));
#endif
    return p;
}

// Loads a cache line ahead of its use. Locality: 3 for all caches, less for the outer ones only.
template <bool Write = false, int Locality = 3>
DECIBAN_INLINE void prefetch(const void* p) {
#if DECIBAN_GNU
    __builtin_prefetch(p, Write, Locality);
#else
    static_cast<void>(p);
#endif
}

// The position of the lowest bit of x > 0.
DECIBAN_INLINE unsigned lowest_bit(std::uint64_t x) {
#if DECIBAN_GNU
    return static_cast<unsigned>(__builtin_ctzll(x));
#else
    unsigned position = 0;
    for (unsigned half = 32; half; half /= 2)
        if (!(x & ((std::uint64_t{1} << half) - 1))) x >>= half, position += half;
    return position;
#endif
}

// The position of the highest bit of x > 0.
DECIBAN_INLINE unsigned highest_bit(std::uint64_t x) {
#if DECIBAN_GNU
    return 63 - static_cast<unsigned>(__builtin_clzll(x));
#else
    unsigned position = 0;
    for (unsigned half = 32; half; half /= 2)
        if (x >> half) x >>= half, position += half;
    return position;
#endif
}

// "x86-64-v3" or "x86-64", whichever DECIBAN_CLONES chose at load time; "" where functions are compiled once.
inline const char* instruction_set() {
#ifdef DECIBAN_CLONED
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "x86-64-v3" : "x86-64";
#else
    return "";
#endif
}

// The low and the high half of a product of 128 bits, combined by exclusive or.
DECIBAN_INLINE std::uint64_t mix_product(std::uint64_t a, std::uint64_t b) {
#if DECIBAN_GNU && defined(__SIZEOF_INT128__)
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
#else
    const std::uint64_t a_low = a & 0xffffffff, a_high = a >> 32, b_low = b & 0xffffffff, b_high = b >> 32;
    const std::uint64_t middle = a_high * b_low + (a_low * b_low >> 32), other = a_low * b_high + (middle & 0xffffffff);
    return (a * b) ^ (a_high * b_high + (middle >> 32) + (other >> 32));
#endif
}

}  // namespace deciban
