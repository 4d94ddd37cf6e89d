// SciPy's compressed sparse rows as a view for the kernels.
#pragma once
#include "../kernels/sparse.hpp"
#include "arrays.hpp"

namespace deciban {

template <class Index>
using Indices = In<Index, 1>;

template <class Index>
SparseRows<Index> sparse(const In<double, 1>& values, const Indices<Index>& columns, const Indices<Index>& starts,
                         std::size_t width) {
    expect(starts.shape(0) > 0, "sparse rows: indptr is empty");
    expect_shape("columns", columns, {values.shape(0)});
    const SparseRows<Index> rows{values.data(),       columns.data(), starts.data(),
                                 starts.shape(0) - 1, width,          values.shape(0)};
    rows.check_rows();
    return rows;
}

}  // namespace deciban
