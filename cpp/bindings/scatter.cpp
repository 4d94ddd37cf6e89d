#include "../kernels/scatter.hpp"

#include "arrays.hpp"

namespace deciban {

// count (words, K, 1), skipped (words, K, 1), sum (K, d), products (K or 1, d, d), both halves
static nb::tuple bind_scatter_rows(AnyMatrix x, In<std::int32_t, 1> codes, std::optional<In<double, 1>> weights, In<double, 2> origin, bool shared) {
    const std::size_t classes = origin.shape(0), d = x.shape(1), groups = shared ? 1 : classes;
    expect(origin.shape(1) == d, "an origin as wide as the matrix");
    expect_codes(codes, x.shape(0), classes);
    expect(!weights || weights->shape(0) == x.shape(0), "one weight for each row");
    Scatter result = with_floats(x, [&](const auto& matrix) {
        nb::gil_scoped_release release;
        return scatter(matrix, codes.data(), weights ? weights->data() : nullptr, origin.data(), classes, shared);
    });
    auto sum = new_array<double>({classes, d}), products = new_array<double>({groups, d, d});
    std::copy(result.sum.begin(), result.sum.end(), sum.data());
    for (std::size_t g = 0; g < groups; ++g)
        for (std::size_t i = 0; i < d; ++i)
            for (std::size_t j = i; j < d; ++j) {
                const double value = result.products[(g * result.width + i) * result.width + j];
                products.data()[(g * d + i) * d + j] = products.data()[(g * d + j) * d + i] = value;
            }
    return nb::make_tuple(words_of(result.count, classes, 1), words_of(result.skipped, classes, 1), sum, products);
}

void bind_scatter(nb::module_& m) {
    m.def("scatter", &bind_scatter_rows, nb::arg("x"), nb::arg("codes"), nb::arg("weights").none(), nb::arg("origin"), nb::arg("shared"));
}

}  // namespace deciban
