// The headers of a mail, or of a part of one: lines of bytes that anybody may have written.
#pragma once
#include <cstddef>
#include <cstring>
#include <string>

namespace deciban {

// Where the body of a part begins, and whether there were more lines than are read.
struct HeadersEnd {
    std::size_t body;
    bool truncated;
};

// Reads headers from data[begin, end) up to an empty line, or to a line that is no header. Calls start(name) with the
// name of each, in lower case, and then add(begin, end) for the text of its line and of each continuation line, which
// is a range of data.
template <class Start, class Add>
HeadersEnd read_headers(const char* data, std::size_t begin, std::size_t end, std::size_t max_lines, const Start& start,
                        const Add& add) {
    if (begin >= end) return {end, false};
    if (data[begin] == '\n') return {begin + 1, false};
    std::string name;
    std::size_t at = begin;
    for (std::size_t lines = 0;; ++lines) {
        const auto* newline = static_cast<const char*>(std::memchr(data + at, '\n', end - at));
        const std::size_t stop = newline ? newline - data : end;
        if (lines == max_lines) {  // this line and those up to the empty one are not read
            while (at < end && data[at] != '\n') {
                const auto* next = static_cast<const char*>(std::memchr(data + at, '\n', end - at));
                at = next ? next - data + 1 : end;
            }
            return {at < end ? at + 1 : end, true};
        }
        std::size_t colon = at;
        while (colon < stop && data[colon] >= '!' && data[colon] <= '~' && data[colon] != ':') ++colon;
        if (colon < stop && data[colon] == ':') {
            name.assign(data + at, colon - at);
            for (char& c : name)
                if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
            std::size_t text = colon + 1;
            while (text < stop && (data[text] == ' ' || data[text] == '\t')) ++text;
            start(name);
            add(text, stop);
        } else if (at < stop && (data[at] == ' ' || data[at] == '\t')) {
            add(at, stop);
        } else if (at < stop && !(stop - at >= 5 && !std::memcmp(data + at, "From ", 5)) &&
                   !(stop - at >= 6 && !std::memcmp(data + at, ">From ", 6))) {
            return {at, false};
        }
        if (stop == end) return {end, false};
        at = stop + 1;
        if (at == end) return {end, false};
        if (data[at] == '\n') return {at + 1, false};
    }
}

}  // namespace deciban
