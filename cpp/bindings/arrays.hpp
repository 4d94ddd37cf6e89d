// Conversions between Python arrays and the kernels' views.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "../kernels/exact.hpp"
#include "../kernels/matrix.hpp"

namespace nb = nanobind;

namespace deciban {

using AnyMatrix = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
template <class T, int Dimensions>
using In = nb::ndarray<const T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
template <class T, int Dimensions>
using Out = nb::ndarray<T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
template <class T>
using New = nb::ndarray<nb::numpy, T>;
using Labels = In<std::int32_t, 1>;
using Weights = std::optional<In<double, 1>>;

// Kernels trust shapes, and arrays may come from a corrupt file, so every binding checks that the shapes of its
// arguments agree. The checks are here and not in the kernels because no exception may leave a function with
// DECIBAN_CLONES.
inline void expect(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

template <class Array>
void expect_shape(const char* name, const Array& a, std::initializer_list<std::size_t> shape) {
    std::size_t axis = 0;
    for (const std::size_t size : shape) {
        const std::size_t actual = a.shape(axis++);
        if (actual != size)
            throw std::invalid_argument(std::string(name) + " has length " + std::to_string(actual) + ", expected " +
                                        std::to_string(size));
    }
}

// a * b cells of a few words each: below 2^48 no size computed from them overflows, and what is too large runs out of
// memory.
inline std::size_t expect_cells(std::size_t a, std::size_t b) {
    constexpr std::size_t most = (std::size_t{1} << 48) - 1;
    expect(a == 0 || b <= most / a, "the result is too large for memory");
    return a * b;
}

template <class T>
New<T> new_array(std::initializer_list<std::size_t> shape) {
    std::size_t size = 1;
    for (const auto n : shape) size = expect_cells(size, n);
    T* raw = new T[std::max<std::size_t>(size, 1)];  // not zeroed: callers write every element
    nb::capsule owner(raw, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return New<T>(raw, shape.size(), shape.begin(), owner);
}

template <class T, class Array>
Matrix<T> view(const Array& a) {
    return {static_cast<const T*>(a.data()), a.shape(0), a.shape(1), static_cast<std::ptrdiff_t>(a.stride(0)),
            static_cast<std::ptrdiff_t>(a.stride(1))};
}

// body(Matrix<float>) or body(Matrix<double>)
template <class Body>
auto with_floats(const AnyMatrix& x, const Body& body) {
    if (x.dtype() == nb::dtype<double>()) return body(view<double>(x));
    if (x.dtype() == nb::dtype<float>()) return body(view<float>(x));
    throw nb::type_error("the matrix must hold float64 or float32");
}

inline void expect_labels(const Labels& labels, std::size_t rows, std::size_t classes) {
    expect(labels.shape(0) == rows, "labels: one class code per row is needed");
    expect(classes <= std::numeric_limits<std::int32_t>::max(), "too many classes");
    bool within = true;
    for (std::size_t i = 0; i < rows; ++i) within &= static_cast<std::uint32_t>(labels.data()[i]) < classes;
    expect(within, "class code out of range");
}

inline void expect_weights(const Weights& weights, std::size_t rows) {
    if (weights) expect_shape("weights", *weights, {rows});
}

inline const double* data_or_null(const Weights& weights) { return weights ? weights->data() : nullptr; }

// The canonical words of exact sums, with shape (words, first, second).
inline New<double> canonical_words(ExactSums& sums, std::size_t first, std::size_t second) {
    const std::size_t words = sums.canonicalise(), cells = first * second;
    auto out = new_array<double>({words, first, second});
    for (std::size_t w = 0; w < words; ++w)
        for (std::size_t k = 0; k < cells; ++k) out.data()[w * cells + k] = sums.word(k, w);
    return out;
}

}  // namespace deciban
