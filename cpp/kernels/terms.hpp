// Terms: what a text is made of. Words in any script, folded; n-grams of words and of characters; shapes.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "unicode.hpp"

namespace deciban {

constexpr std::size_t LONGEST = 128;  // bytes of a word; a longer one is no word (but its characters count)
constexpr std::size_t MOST_GRAMS = 32;  // words or characters of an n-gram
constexpr std::size_t ROOM = 1 << 16;  // bytes of folded text that are kept
constexpr std::size_t QUEUE = 64;  // terms that are looked up at a time, so that the memory they are in can be fetched

// How a text is cut into terms.
struct Cutting {
    std::size_t least_words, most_words;  // of n-grams; most 0: none
    std::size_t least_characters, most_characters;
    bool shapes;  // numbers, addresses on the web and of mail by their shapes
    unsigned hash_bits;  // 0: terms as they are
};

struct Term {
    const char* at;
    std::uint32_t size;
    bool gram;  // of characters: known by a ~ before it
    std::uint64_t head;  // its first eight bytes
    std::uint64_t hash;
};

inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// A term at a place from which eight bytes more than it has can be read.
// Models with hash_bits hold numbers made of the hash: it is never changed.
inline Term term_at(const char* at, std::size_t size, bool gram) {
    std::uint64_t head, word;
    std::memcpy(&head, at, 8);
    if (size < 8) head &= (std::uint64_t{1} << (8 * size)) - 1;
    std::uint64_t hash = mixed(((gram ? 0x9E3779B97F4A7C15u : 0xD6E8FEB86659FD93u) + size) ^ head, 0xA0761D6478BD642Fu);
    for (std::size_t i = 8; i < size; i += 8) {
        std::memcpy(&word, at + i, 8);
        if (size - i < 8) word &= (std::uint64_t{1} << (8 * (size - i))) - 1;
        hash = mixed(hash ^ word, 0xE7037ED1A0B428DBu);
    }
    return {at, static_cast<std::uint32_t>(size), gram, head, hash ^ hash >> 32};
}

// What each character is, and how it is folded.
class Characters {
public:
    static const Characters& all() {
        static const Characters characters;
        return characters;
    }

    unicode::Kind kind(std::uint32_t code) const { return static_cast<unicode::Kind>(pages_[pages_of_[code >> 8]][code & 255]); }

    // Writes a character, folded, and returns the end; twelve bytes are enough.
    char* write(std::uint32_t code, char* out) const {
        const std::size_t page = code >> 8;
        if (folds_[page])
            for (std::size_t i = begins_[page]; i < begins_[page] + folds_[page]; ++i)
                if (unicode::FOLDS[i].from == code) {
                    for (const std::uint32_t to : unicode::FOLDS[i].to)
                        if (to) out = encode(to, out);
                    return out;
                }
        return encode(code, out);
    }

    // A byte of a word, folded; 0 where it is none or not ASCII.
    char ascii(char byte) const { return ascii_[static_cast<unsigned char>(byte)]; }

private:
    static constexpr std::size_t PAGES = 0x110000 >> 8;
    std::vector<std::array<std::uint8_t, 256>> pages_;
    std::array<std::uint16_t, PAGES> pages_of_{};
    std::array<std::uint16_t, PAGES> begins_{}, folds_{};
    std::array<char, 256> ascii_{};

    Characters() {
        constexpr std::size_t runs = sizeof unicode::RUNS / sizeof *unicode::RUNS;
        std::size_t run = 0;
        for (std::size_t page = 0; page < PAGES; ++page) {
            std::array<std::uint8_t, 256> kinds{};
            for (std::size_t i = 0; i < 256; ++i) {
                while (run + 1 < runs && unicode::RUNS[run + 1] >> 3 <= page * 256 + i) ++run;
                kinds[i] = unicode::RUNS[run] & 7;
            }
            if (pages_.empty() || pages_.back() != kinds) pages_.push_back(kinds);
            pages_of_[page] = static_cast<std::uint16_t>(pages_.size() - 1);
        }
        std::size_t at = 0;
        for (const auto& fold : unicode::FOLDS) {
            const std::size_t page = fold.from >> 8;
            if (!folds_[page]++) begins_[page] = static_cast<std::uint16_t>(at);
            ++at;
        }
        for (int byte = 0; byte < 128; ++byte) {
            const auto found = kind(byte);
            if (found == unicode::LETTER || found == unicode::DIGIT) write(byte, &ascii_[byte]);
        }
    }

    static char* encode(std::uint32_t code, char* out) {
        if (code < 0x80) {
            *out++ = static_cast<char>(code);
        } else if (code < 0x800) {
            *out++ = static_cast<char>(0xC0 | code >> 6);
            *out++ = static_cast<char>(0x80 | (code & 63));
        } else {
            if (code < 0x10000) {
                *out++ = static_cast<char>(0xE0 | code >> 12);
            } else {
                *out++ = static_cast<char>(0xF0 | code >> 18);
                *out++ = static_cast<char>(0x80 | (code >> 12 & 63));
            }
            *out++ = static_cast<char>(0x80 | (code >> 6 & 63));
            *out++ = static_cast<char>(0x80 | (code & 63));
        }
        return out;
    }
};

// The character at p < end, and how many bytes it takes. A byte that begins none is a separator, NUL.
inline std::uint32_t decode(const char* p, const char* end, std::size_t& taken) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(p[i]); };
    const std::uint32_t first = byte(0);
    taken = 1;
    if (first < 0x80) return first;
    const std::size_t size = first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : first >= 0xF0 && first < 0xF5 ? 4 : 0;
    if (!size || static_cast<std::size_t>(end - p) < size) return 0;
    std::uint32_t code = first & (0xFF >> (size + 1));
    for (std::size_t i = 1; i < size; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return 0;
        code = code << 6 | (byte(i) & 63);
    }
    constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[size] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return 0;
    taken = size;
    return code;
}

// Cuts texts into terms, and gives them to `sink(Term*, count)` some at a time. Needs the same memory for any text.
template <class Sink>
class Cutter {
public:
    Cutter(const Cutting& cutting, Sink& sink)
        : cutting_(cutting), sink_(sink), characters_(Characters::all()), words_(ROOM + 2 * LONGEST + 64), grams_(ROOM + 2 * LONGEST + 64) {}

    // One column of a document; no n-gram goes on into the next.
    void text(const char* p, const char* end) {
        begin();
        if (cutting_.shapes)
            read(p, end);
        else
            while (p < end) {
                p = window(p, end);
                flush();  // terms lie in the window
            }
        flush();
    }

private:
    // Reads character by character, up to the end of a word.
    void read(const char* p, const char* end) {
        while (p < end) {
            if (const char folded = characters_.ascii(*p)) {
                if (size_ == 0 && !broken_ && cutting_.shapes && shape(p, end)) continue;
                put(folded);
                last_ = *p >= '0' && *p <= '9' ? unicode::DIGIT : unicode::LETTER;
                ++p;
                if (size_ <= LONGEST) {
                    const char* stop = p + std::min<std::size_t>(LONGEST, end - p);
                    const char* first = p;
                    char* out = word_ + size_;
                    while (p < stop) {
                        const char next = characters_.ascii(*p);
                        if (!next) break;
                        *out++ = next;
                        ++p;
                    }
                    if (p > first) {
                        size_ += p - first;
                        last_ = p[-1] >= '0' && p[-1] <= '9' ? unicode::DIGIT : unicode::LETTER;
                        if (size_ > LONGEST) too_long();
                    }
                }
                continue;
            }
            std::size_t taken;
            const std::uint32_t code = decode(p, end, taken);
            const unicode::Kind kind = characters_.kind(code);
            switch (kind) {
                case unicode::LETTER:
                case unicode::DIGIT: {
                    char* const stop = characters_.write(code, word_ + size_);
                    size_ = stop - word_;
                    last_ = kind;
                    if (size_ > LONGEST) too_long();
                    break;
                }
                case unicode::ALONE: {
                    finish();
                    char* const stop = characters_.write(code, word_);
                    size_ = stop - word_;
                    last_ = unicode::LETTER;
                    finish();
                    break;
                }
                case unicode::IGNORED: break;
                case unicode::APOSTROPHE: joined('\'', unicode::LETTER, p + taken, end); break;
                case unicode::POINT: joined(static_cast<char>(code), unicode::DIGIT, p + taken, end); break;
                default: finish();
            }
            p += taken;
        }
        finish();
    }

    // Reads some bytes at a time: a run of letters and digits of ASCII is a word, and needs no more looking at. Others are
    // read character by character. Returns from where to go on: the last run may not be whole.
    const char* window(const char* p, const char* end) {
        const std::size_t n = std::min<std::size_t>(WINDOW, end - p);
        for (std::size_t block = 0; block < n; block += 64) {
            const std::size_t size = std::min<std::size_t>(64, n - block);
            const char* from = p + block;
            if (size < 64) {
                std::memset(raw_.data(), ' ', 64);
                std::memcpy(raw_.data(), from, size);
                from = raw_.data();
            }
            std::uint64_t within = 0, others = 0;
            for (std::size_t i = 0; i < 64; i += 16) {
                Sixteen c;
                std::memcpy(&c, from + i, 16);
                const Sixteen lower = c | 0x20;
                const Sixteen letter = (Sixteen)(lower - 'a' < 26);
                const Sixteen other = (Sixteen)(c >= 0x80) | (Sixteen)(c == '\'') | (Sixteen)(c == '.') | (Sixteen)(c == ',') | (Sixteen)(c == '$');
                const Sixteen word = letter | (Sixteen)(c - '0' < 10) | (Sixteen)(c == '_') | other;
                const Sixteen folded = c | (letter & 0x20);
                std::memcpy(&folded_[block + i], &folded, 16);
                within |= std::uint64_t{bits(word)} << i;
                others |= std::uint64_t{bits(other)} << i;
            }
            runs_[block / 64] = within;
            marks_of_[block / 64] = others;
        }
        runs_[n / 64] &= n % 64 ? (std::uint64_t{1} << n % 64) - 1 : 0;  // beyond the window there is nothing
        const bool last = p + n == end;
        std::size_t at = 0;
        for (;;) {
            std::size_t from = next(at, n, 0);
            if (from >= n) return p + n;
            std::size_t to = next(from, n, ~std::uint64_t{0});
            at = to;
            if (to >= n && !last) {
                if (from) return p + from;
                while (p + to < end && in_run(p[to])) ++to;  // a run that fills the window
                read(p, p + to);
                return p + to;
            }
            if (any_other(from, to)) {
                while (to > from && trailing(folded_[to - 1])) --to;
                if (to > from && any_other(from, to)) {
                    read(p + from, p + to);
                    continue;
                }
            }
            const std::size_t size = to - from;
            if (size == 0) continue;
            if (size > LONGEST || cutting_.most_words != 1 || cutting_.most_characters) {
                read(p + from, p + to);
                continue;
            }
            push(&folded_[from], size, false);
        }
    }

    // The first place from `at` on where runs begin (flip 0) or end (flip all ones), n at most.
    std::size_t next(std::size_t at, std::size_t n, std::uint64_t flip) const {
        std::size_t i = at / 64;
        std::uint64_t word = (runs_[i] ^ flip) >> at % 64 << at % 64;
        while (!word) {
            if (++i * 64 >= n) return n;
            word = runs_[i] ^ flip;
        }
        return std::min<std::size_t>(n, 64 * i + __builtin_ctzll(word));
    }

    bool any_other(std::size_t from, std::size_t to) const {
        for (std::size_t i = from / 64; i <= (to - 1) / 64; ++i) {
            std::uint64_t word = marks_of_[i];
            if (i == from / 64) word = word >> from % 64 << from % 64;
            if (i == to / 64) word &= (std::uint64_t{1} << to % 64) - 1;
            if (word) return true;
        }
        return false;
    }

    static bool trailing(char c) { return c == '.' || c == ',' || c == '\''; }
    bool in_run(char c) const { return static_cast<signed char>(c) < 0 || trailing(c) || c == '$' || characters_.ascii(c); }

    typedef unsigned char Sixteen __attribute__((vector_size(16)));

    // The highest bits of sixteen bytes.
    static std::uint16_t bits(const Sixteen& bytes) {
#ifdef __SSE2__
        return static_cast<std::uint16_t>(__builtin_ia32_pmovmskb128((__attribute__((vector_size(16))) char)bytes));
#else
        std::uint16_t out = 0;
        std::uint64_t word;
        for (int i = 0; i < 2; ++i) {
            std::memcpy(&word, reinterpret_cast<const char*>(&bytes) + 8 * i, 8);
            out |= static_cast<std::uint16_t>(((word & 0x8080808080808080u) * 0x0002040810204081u >> 56) << (8 * i));
        }
        return out;
#endif
    }

    const Cutting& cutting_;
    Sink& sink_;
    const Characters& characters_;
    std::vector<char> words_, grams_;  // folded words with a space before each; folded characters
    std::array<std::uint32_t, MOST_GRAMS> begins_{};  // of the last words
    std::array<std::uint32_t, MOST_GRAMS> marks_{};  // of the last characters
    static constexpr std::size_t WINDOW = 4096;
    std::array<char, 64> raw_{};
    std::array<char, WINDOW + 64> folded_{};
    std::array<std::uint64_t, WINDOW / 64 + 1> runs_{}, marks_of_{};
    std::array<Term, QUEUE> queue_;
    std::array<char, QUEUE * 24> keys_;
    std::size_t queued_ = 0;
    std::size_t filled_ = 8, written_ = 0;  // bytes of words_ and of grams_
    std::size_t n_words_ = 0, n_characters_ = 0;
    char* word_ = nullptr;  // the word that is being read: where it will stand in words_
    std::size_t size_ = 0;
    bool broken_ = false;  // part of a word that is too long
    unicode::Kind last_ = unicode::SEPARATOR;

    void begin() {
        filled_ = 8;
        n_words_ = n_characters_ = 0;
        written_ = 8;
        if (cutting_.most_characters) character(' ');
        place_word();
    }

    void place_word() {
        if (filled_ > ROOM) {  // the last words move to the front
            flush();
            const std::size_t kept = std::min<std::size_t>(n_words_, cutting_.most_words ? cutting_.most_words - 1 : 0);
            const std::size_t from = kept ? begins_[(n_words_ - kept) % MOST_GRAMS] : filled_;
            std::memmove(&words_[9], &words_[from], filled_ - from);
            for (std::size_t i = n_words_ - kept; i < n_words_; ++i) begins_[i % MOST_GRAMS] -= static_cast<std::uint32_t>(from - 9);
            filled_ -= from - 9;
        }
        words_[filled_] = ' ';
        word_ = &words_[filled_ + 1];
        size_ = 0;
        broken_ = false;
        last_ = unicode::SEPARATOR;
    }

    void put(char folded) {
        word_[size_++] = folded;
        if (size_ > LONGEST) too_long();
    }

    // An apostrophe between letters, or a point between digits, is part of the word.
    void joined(char with, unicode::Kind among, const char* next, const char* end) {
        auto kind = unicode::SEPARATOR;
        for (std::size_t taken; last_ == among && next < end; next += taken) {
            kind = characters_.kind(decode(next, end, taken));
            if (kind != unicode::IGNORED) break;
        }
        if (last_ == among && kind == among)
            put(with);
        else
            finish();
    }

    void too_long() {
        spell();
        broken_ = true;
        size_ = 0;
    }

    void finish() {
        if (size_ || broken_) {
            if (cutting_.shapes && !broken_) number();
            spell();
            if (cutting_.most_characters) character(' ');
            if (!broken_) add_word();
            place_word();
        }
        last_ = unicode::SEPARATOR;
    }

    // The word stands in its place: it is a term, and so are the n-grams that end with it.
    void add_word() {
        if (!cutting_.most_words) return;
        const std::size_t end = filled_ + 1 + size_;
        begins_[n_words_ % MOST_GRAMS] = static_cast<std::uint32_t>(filled_ + 1);
        ++n_words_;
        const std::size_t most = std::min(cutting_.most_words, n_words_);
        for (std::size_t n = cutting_.least_words; n <= most; ++n) {
            const std::size_t from = begins_[(n_words_ - n) % MOST_GRAMS];
            push(&words_[from], end - from, false);
        }
        filled_ = end;
    }

    // The characters of the word (or of a part of it), for n-grams of them.
    void spell() {
        if (!cutting_.most_characters) return;
        for (std::size_t i = 0; i < size_;) {
            std::size_t next = i + 1;
            while (next < size_ && (word_[next] & 0xC0) == 0x80) ++next;
            character(word_ + i, next - i);
            i = next;
        }
    }

    void character(char one) { character(&one, 1); }

    void character(const char* bytes, std::size_t size) {
        if (written_ > ROOM) {
            flush();
            const std::size_t kept = std::min<std::size_t>(n_characters_, cutting_.most_characters - 1);
            const std::size_t from = kept ? marks_[(n_characters_ - kept) % MOST_GRAMS] : written_;
            std::memmove(&grams_[8], &grams_[from], written_ - from);
            for (std::size_t i = n_characters_ - kept; i < n_characters_; ++i) marks_[i % MOST_GRAMS] -= static_cast<std::uint32_t>(from - 8);
            written_ -= from - 8;
        }
        marks_[n_characters_ % MOST_GRAMS] = static_cast<std::uint32_t>(written_);
        std::memcpy(&grams_[written_], bytes, size);
        written_ += size;
        ++n_characters_;
        const std::size_t most = std::min(cutting_.most_characters, n_characters_);
        for (std::size_t n = cutting_.least_characters; n <= most; ++n) {
            const std::size_t from = marks_[(n_characters_ - n) % MOST_GRAMS];
            if (!(n == 1 && size == 1 && *bytes == ' ')) push(&grams_[from], written_ - from, true);
        }
    }

    void push(const char* at, std::size_t size, bool gram) {
        queue_[queued_] = term_at(at, size, gram);
        if (++queued_ == QUEUE) flush();
    }

    void flush() {
        if (!queued_) return;
        if (cutting_.hash_bits) hash_terms();
        sink_(queue_.data(), queued_);
        queued_ = 0;
    }

    // Terms become numbers: #, and hexadecimal digits.
    void hash_terms() {
        const unsigned digits = (cutting_.hash_bits + 3) / 4;
        for (std::size_t i = 0; i < queued_; ++i) {
            std::uint64_t number = queue_[i].hash >> (64 - cutting_.hash_bits);
            char* const key = &keys_[24 * i];
            key[0] = '#';
            for (unsigned d = digits; d; --d, number >>= 4) key[d] = "0123456789abcdef"[number & 15];
            queue_[i] = term_at(key, digits + 1, false);
        }
    }

    // Shapes ---------------------------------------------------------------------------------------------------------

    // A word of digits: each becomes 0.
    void number() {
        for (std::size_t i = 0; i < size_; ++i)
            if (!((word_[i] >= '0' && word_[i] <= '9') || word_[i] == '.' || word_[i] == ',')) return;
        for (std::size_t i = 0; i < size_; ++i)
            if (word_[i] >= '1' && word_[i] <= '9') word_[i] = '0';
    }

    static bool same(const char* p, const char* end, const char* lower) {
        for (; *lower; ++p, ++lower)
            if (p >= end || (*p | (*lower >= 'a' ? 32 : 0)) != *lower) return false;
        return true;
    }

    static bool of_host(char c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '-' || c == '.'; }

    // Two terms, the shape and the shape with the host.
    void shaped(const char* name, const char* host, const char* end) {
        for (const bool with : {false, true}) {
            for (const char* c = name; *c; ++c) put(*c);
            if (with)
                for (const char* c = host; c < end; ++c) put(*c >= 'A' && *c <= 'Z' ? static_cast<char>(*c | 32) : *c);
            spell();
            if (cutting_.most_characters) character(' ');
            add_word();
            place_word();
        }
    }

    // Takes an address on the web up to the end of its host, or one of mail as a whole, if one begins at p.
    bool shape(const char*& p, const char* end) {
        constexpr std::size_t MOST_HOST = 100, MOST_NAME = 64;
        const bool web = same(p, end, "http://") || same(p, end, "https://");
        if (web || same(p, end, "www.")) {
            const char* host = web ? static_cast<const char*>(std::memchr(p, '/', end - p)) + 2 : p;
            const char* stop = host;
            while (stop < end && of_host(*stop) && stop <= host + MOST_HOST) ++stop;
            while (stop > host && stop[-1] == '.') --stop;
            if (stop == host || static_cast<std::size_t>(stop - host) > MOST_HOST) return false;
            shaped("url:", host, stop);
            p = stop;
            return true;
        }
        const char* at = p;
        const char* const last = p + std::min<std::size_t>(MOST_NAME, end - p);
        while (at < last && (of_host(*at) || *at == '_' || *at == '+' || *at == '%')) ++at;
        if (at == last || *at != '@') return false;
        const char* host = at + 1;
        const char* stop = host;
        bool dotted = false;
        while (stop < end && of_host(*stop) && stop <= host + MOST_HOST) ++stop;
        while (stop > host && (stop[-1] == '.' || stop[-1] == '-')) --stop;
        for (const char* c = host; c < stop; ++c) dotted |= *c == '.';
        if (!dotted || static_cast<std::size_t>(stop - host) > MOST_HOST) return false;
        shaped("address:", host, stop);
        p = stop;
        return true;
    }
};

}  // namespace deciban
