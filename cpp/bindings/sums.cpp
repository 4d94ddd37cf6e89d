#include "../kernels/centre.hpp"
#include "../kernels/moments.hpp"
#include "arrays.hpp"

namespace deciban {

static nb::tuple bind_moments(AnyMatrix x, Labels codes, Weights weights, std::size_t classes) {
    expect_labels(codes, x.shape(0), classes);
    expect_weights(weights, x.shape(0));
    expect_cells(classes, x.shape(1));
    BadCell bad;
    Moments result = with_floats(x, [&](const auto& matrix) {
        nb::gil_scoped_release release;
        return moments(matrix, codes.data(), data_or_null(weights), classes, bad);
    });
    const std::size_t d = x.shape(1);
    nb::object cell = nb::none();
    if (bad.found()) cell = nb::make_tuple(bad.row, bad.column);
    return nb::make_tuple(canonical_words(result.count, classes, d), canonical_words(result.sum_x, classes, d),
                          canonical_words(result.sum_xx, classes, d), cell);
}

// Initial words per cell: a power of two, so that doubling ends at max_words whatever length an array claims.
static std::size_t initial_capacity(std::size_t words) {
    std::size_t capacity = 1;
    while (capacity < std::min(words, max_words)) capacity *= 2;
    return capacity;
}

// (words, cells) + sign * (words, cells), exactly
static New<double> bind_add(In<double, 2> a, In<double, 2> b, double sign) {
    const std::size_t cells = a.shape(1);
    expect_shape("b", b, {b.shape(0), cells});
    ExactSums sums(cells, initial_capacity(std::max(a.shape(0), b.shape(0))));
    {
        nb::gil_scoped_release release;
        for (std::size_t k = 0; k < cells; ++k) {
            for (std::size_t w = a.shape(0); w-- > 0;) sums.add(k, a.data()[w * cells + k]);
            for (std::size_t w = b.shape(0); w-- > 0;) sums.add(k, sign * b.data()[w * cells + k]);
        }
    }
    return canonical_words(sums, 1, cells);
}

// (words, groups, cells) summed over groups, exactly
static New<double> bind_total(In<double, 3> a) {
    const std::size_t words = a.shape(0), groups = a.shape(1), cells = a.shape(2);
    ExactSums sums(cells, initial_capacity(words + 1));
    {
        nb::gil_scoped_release release;
        for (std::size_t g = 0; g < groups; ++g)
            for (std::size_t w = words; w-- > 0;)
                for (std::size_t k = 0; k < cells; ++k) sums.add(k, a.data()[(w * groups + g) * cells + k]);
    }
    return canonical_words(sums, 1, cells);
}

static nb::tuple bind_centre(In<double, 2> count, In<double, 2> sum_x, In<double, 2> sum_xx) {
    const std::size_t cells = count.shape(1);
    expect_shape("sum_x", sum_x, {sum_x.shape(0), cells});
    expect_shape("sum_xx", sum_xx, {sum_xx.shape(0), cells});
    expect(count.shape(0) > 0 && sum_x.shape(0) > 0 && sum_xx.shape(0) > 0, "a sum needs at least one word");
    auto mean = new_array<double>({cells}), squares = new_array<double>({cells});
    {
        nb::gil_scoped_release release;
        for (std::size_t k = 0; k < cells; ++k) {
            const auto words = [&](const In<double, 2>& a) { return Words{a.data() + k, a.shape(0), cells}; };
            centre(words(count), words(sum_x), words(sum_xx), mean.data()[k], squares.data()[k]);
        }
    }
    return nb::make_tuple(mean, squares);
}

void bind_sums(nb::module_& m) {
    m.def("moments", &bind_moments, nb::arg("x"), nb::arg("codes"), nb::arg("weights").none(), nb::arg("classes"));
    m.def("add_sums", &bind_add, nb::arg("a"), nb::arg("b"), nb::arg("sign"));
    m.def("total_sums", &bind_total, nb::arg("a"));
    m.def("centre", &bind_centre, nb::arg("count"), nb::arg("sum_x"), nb::arg("sum_xx"));
    m.def("set_threads", [](unsigned n) { thread_limit().store(n); }, nb::arg("n"));
    m.def("thread_count", [] { return thread_count(std::numeric_limits<std::size_t>::max(), 1); });
}

}  // namespace deciban
