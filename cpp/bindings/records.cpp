#include "../kernels/records.hpp"

#include "arrays.hpp"

namespace deciban {

void bind_records(nb::module_& m) {
    m.def(
        "record_ends",
        [](nb::bytes data, int delimiter, int quote, std::size_t most) {
            const char* start = data.c_str();
            const std::size_t size = data.size();
            nb::gil_scoped_release release;
            return record_ends(start, size, static_cast<char>(delimiter), static_cast<char>(quote), most);
        },
        "Where the last complete record of separated values ends, among the first `most` (0: all); 0 if none does.",
        nb::arg("data"), nb::arg("delimiter"), nb::arg("quote"), nb::arg("most"));
    m.def(
        "has_leading_zero",
        [](nb::bytes data, int delimiter, int quote) {
            const char* start = data.c_str();
            const std::size_t size = data.size();
            nb::gil_scoped_release release;
            return has_leading_zero(start, size, static_cast<char>(delimiter), static_cast<char>(quote));
        },
        "Whether a cell of separated values begins with a 0 and another digit.",
        nb::arg("data"), nb::arg("delimiter"), nb::arg("quote"));
}

}  // namespace deciban
