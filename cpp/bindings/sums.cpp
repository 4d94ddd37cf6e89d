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
    return nb::make_tuple(words_of(result.count, classes, d), words_of(result.sum_x, classes, d),
                          words_of(result.sum_xx, classes, d), cell);
}

// How many words a cell has room for at first: a power of two, so that doubling it ends at most_words, whatever number of
// words an array says it has.
static std::size_t room_for(std::size_t words) {
    std::size_t room = 1;
    while (room < std::min(words, most_words)) room *= 2;
    return room;
}

// (words, cells) + sign * (words, cells), exactly
static New<double> bind_add(In<double, 2> a, In<double, 2> b, double sign) {
    const std::size_t cells = a.shape(1);
    expect_shape("b", b, {b.shape(0), cells});
    ExactSums sums(cells, room_for(std::max(a.shape(0), b.shape(0))));
    {
        nb::gil_scoped_release release;
        for (std::size_t k = 0; k < cells; ++k) {
            for (std::size_t w = a.shape(0); w-- > 0;) sums.add(k, a.data()[w * cells + k]);
            for (std::size_t w = b.shape(0); w-- > 0;) sums.add(k, sign * b.data()[w * cells + k]);
        }
    }
    return words_of(sums, 1, cells);
}

// (words, groups, cells) summed over groups, exactly
static New<double> bind_total(In<double, 3> a) {
    const std::size_t words = a.shape(0), groups = a.shape(1), cells = a.shape(2);
    ExactSums sums(cells, room_for(words + 1));
    {
        nb::gil_scoped_release release;
        for (std::size_t g = 0; g < groups; ++g)
            for (std::size_t w = words; w-- > 0;)
                for (std::size_t k = 0; k < cells; ++k) sums.add(k, a.data()[(w * groups + g) * cells + k]);
    }
    return words_of(sums, 1, cells);
}

static nb::tuple bind_centre(In<double, 2> count, In<double, 2> sum_x, In<double, 2> sum_xx) {
    const std::size_t cells = count.shape(1);
    expect_shape("sum_x", sum_x, {sum_x.shape(0), cells});
    expect_shape("sum_xx", sum_xx, {sum_xx.shape(0), cells});
    expect(count.shape(0) > 0 && sum_x.shape(0) > 0 && sum_xx.shape(0) > 0, "a sum has one word at least");
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

DECIBAN_CLONES static double read_all(const double* x, std::size_t n) {
    v4 sums[4] = {};
    std::size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (std::size_t v = 0; v < 4; ++v) sums[v] += load(x + i + 4 * v);
    double rest = sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (; i < n; ++i) rest += x[i];
    return rest;
}

static double bind_read(In<double, 2> x, unsigned threads) {
    nb::gil_scoped_release release;
    const std::size_t n = x.shape(0) * x.shape(1);
    std::vector<double> sums(std::max(1u, threads));
    parallel(n, std::max(1u, threads), [&](unsigned part, std::size_t begin, std::size_t end) { sums[part] = read_all(x.data() + begin, end - begin); });
    double total = 0.0;
    for (const double part : sums) total += part;
    return total;
}

void bind_sums(nb::module_& m) {
    m.def("moments", &bind_moments, nb::arg("x"), nb::arg("codes"), nb::arg("weights").none(), nb::arg("classes"));
    m.def("add_sums", &bind_add, nb::arg("a"), nb::arg("b"), nb::arg("sign"));
    m.def("total_sums", &bind_total, nb::arg("a"));
    m.def("centre", &bind_centre, nb::arg("count"), nb::arg("sum_x"), nb::arg("sum_xx"));
    m.def("read_bandwidth", &bind_read, nb::arg("x"), nb::arg("threads"));
    m.def("set_threads", [](unsigned n) { thread_limit().store(n); }, nb::arg("n"));
}

}  // namespace deciban
