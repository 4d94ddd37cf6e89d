#include "../kernels/records.hpp"

#include "arrays.hpp"

namespace deciban {

void bind_records(nb::module_& m) {
    m.def(
        "last_record_end",
        [](nb::bytes data, int delimiter, int quote, std::size_t max_records) {
            const char* start = data.c_str();
            const std::size_t size = data.size();
            nb::gil_scoped_release release;
            return last_record_end(start, size, static_cast<char>(delimiter), static_cast<char>(quote), max_records);
        },
        "End of the last complete record among the first `max_records` (0: all), or 0 if there is none.",
        nb::arg("data"), nb::arg("delimiter"), nb::arg("quote"), nb::arg("max_records"));
    m.def(
        "has_leading_zero",
        [](nb::bytes data, int delimiter, int quote) {
            const char* start = data.c_str();
            const std::size_t size = data.size();
            nb::gil_scoped_release release;
            return has_leading_zero(start, size, static_cast<char>(delimiter), static_cast<char>(quote));
        },
        "Whether a cell begins with a 0 and another digit.", nb::arg("data"), nb::arg("delimiter"), nb::arg("quote"));
}

}  // namespace deciban
