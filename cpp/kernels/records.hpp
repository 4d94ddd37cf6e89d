// Ends of records of delimited text: line breaks outside quotes. A quote opens a quoted cell only at the start of the
// cell; inside, two quotes are one character.
#pragma once
#include <cstddef>
#include <cstring>

#include "simd.hpp"

namespace deciban {

// End of the last complete record among the first `max_records` (0: all), or 0 if there is none, byte by byte. A
// carriage return is a line break unless a line feed follows; as the last byte it is undecided.
inline std::size_t last_record_end_bytewise(const char* data, std::size_t size, char delimiter, char quote,
                                            std::size_t max_records) {
    std::size_t last = 0, matches = 0;
    bool at_cell_start = true, quoted = false;
    for (std::size_t i = 0; i < size; ++i) {
        const char c = data[i];
        if (quoted) {
            if (c != quote) continue;
            if (i + 1 < size && data[i + 1] == quote) {
                ++i;
            } else {
                quoted = false;
            }
        } else if (at_cell_start && c == quote) {
            quoted = true;
            at_cell_start = false;
        } else if (c == '\n' || (c == '\r' && i + 1 < size && data[i + 1] != '\n')) {
            last = i + 1;
            at_cell_start = true;
            if (++matches == max_records) break;
        } else {
            at_cell_start = c == delimiter;
        }
    }
    return last;
}

// Calls visit(pointer) for every byte equal to c, in order, scanning 16 bytes at a time.
template <class Visit>
void for_each_byte(const char* data, std::size_t size, char c, Visit&& visit) {
    std::size_t i = 0;
    const b16 pattern = bytes_of(static_cast<unsigned char>(c));
    for (; i + 16 <= size; i += 16) {
        for (unsigned matches = high_bits((b16)(load_bytes(data + i) == pattern)); matches != 0; matches &= matches - 1)
            visit(data + i + lowest_bit(matches));
    }
    for (; i < size; ++i) {
        if (data[i] == c) visit(data + i);
    }
}

// The same, jumping from quote to quote. If the last line feed outside quotes is not found backwards from the end,
// scans every byte.
inline std::size_t last_record_end(const char* data, std::size_t size, char delimiter, char quote,
                                   std::size_t max_records) {
    if (max_records != 0) return last_record_end_bytewise(data, size, delimiter, quote, max_records);
    const char* end = data + size;
    const char* outside = data;     // start of the last text outside quotes
    const char* open = nullptr;     // the open quote
    const char* doubled = nullptr;  // the second of two quotes
    for_each_byte(data, size, quote, [&](const char* q) {
        if (q == doubled) return;
        if (open != nullptr) {
            if (q + 1 < end && q[1] == quote) {
                doubled = q + 1;
            } else {
                open = nullptr;
                outside = q + 1;
            }
        } else if (q == data || q[-1] == delimiter || q[-1] == '\n' || q[-1] == '\r') {
            open = q;
        }
    });
    const char* stop = open != nullptr ? open : end;
    for (const char* p = stop; p > outside; --p) {
        if (p[-1] == '\n') return static_cast<std::size_t>(p - data);
    }
    return last_record_end_bytewise(data, size, delimiter, quote, 0);
}

// Whether a cell begins with a 0 and another digit: a code such as 00501, or perhaps a date or time.
inline bool has_leading_zero(const char* data, std::size_t size, char delimiter, char quote) {
    for (const char *p = data, *end = data + size; p + 1 < end; ++p) {
        p = static_cast<const char*>(std::memchr(p, '0', static_cast<std::size_t>(end - p - 1)));
        if (p == nullptr) return false;
        if (p[1] < '0' || p[1] > '9') continue;
        const char before = p == data ? '\n' : p[-1];
        if (before == delimiter || before == quote || before == '\n' || before == '\r' || before == ' ') return true;
    }
    return false;
}

}  // namespace deciban
