// Where the records of separated values end: at a line break that is not inside of quotes. A quote opens a quoted cell
// only where the cell begins; inside, two of them are one of its characters.
#pragma once
#include <cstddef>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace deciban {

// The end of the last complete record among the first `most` (0: all), or 0 if none is complete; byte by byte. A carriage
// return is a line break of its own unless a line feed follows; as the last byte it is not known to be one yet.
inline std::size_t record_ends_slowly(const char* data, std::size_t size, char delimiter, char quote, std::size_t most) {
    std::size_t last = 0, found = 0;
    bool begins = true, quoted = false;
    for (std::size_t i = 0; i < size; ++i) {
        const char c = data[i];
        if (quoted) {
            if (c != quote) continue;
            if (i + 1 < size && data[i + 1] == quote) {
                ++i;
            } else {
                quoted = false;
            }
        } else if (begins && c == quote) {
            quoted = true;
            begins = false;
        } else if (c == '\n' || (c == '\r' && i + 1 < size && data[i + 1] != '\n')) {
            last = i + 1;
            begins = true;
            if (++found == most) break;
        } else {
            begins = c == delimiter;
        }
    }
    return last;
}

// Calls see(place) for every byte that equals c, in order: 16 bytes at a time, since in such files every tenth may.
template <class See>
void each(const char* data, std::size_t size, char c, See&& see) {
    std::size_t i = 0;
#if defined(__SSE2__)
    const __m128i wanted = _mm_set1_epi8(c);
    for (; i + 16 <= size; i += 16) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + i));
        for (int found = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, wanted)); found != 0; found &= found - 1) {
            see(data + i + __builtin_ctz(static_cast<unsigned>(found)));
        }
    }
#endif
    for (; i < size; ++i) {
        if (data[i] == c) see(data + i);
    }
}

// The same, from quote to quote: nothing else changes what a line break is. Where the last line feed outside of quotes
// is not near the end, every byte is looked at.
inline std::size_t record_ends(const char* data, std::size_t size, char delimiter, char quote, std::size_t most) {
    if (most != 0) return record_ends_slowly(data, size, delimiter, quote, most);
    const char* end = data + size;
    const char* outside = data;     // where the last text outside of quotes begins
    const char* open = nullptr;     // the quote that is not closed yet
    const char* doubled = nullptr;  // the second of two quotes
    each(data, size, quote, [&](const char* q) {
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
    return record_ends_slowly(data, size, delimiter, quote, 0);
}

// Whether a 0 with a digit after it begins a cell: that of a code such as 00501, and maybe of a date or a time of day.
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
