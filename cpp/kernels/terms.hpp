// The tokenizer: case-folded words of any script, n-grams of words and of characters, and shapes.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "simd.hpp"
#include "unicode.hpp"

namespace deciban {

constexpr std::size_t MAX_WORD_BYTES = 128;  // longer words are dropped, but their character n-grams count
constexpr std::size_t MAX_NGRAM = 32;  // words or characters
constexpr std::size_t BUFFER_BYTES = 1 << 16;  // of folded text
constexpr std::size_t QUEUE = 64;  // terms looked up together, so that their memory can be prefetched

struct TokenizerOptions {
    std::size_t min_words, max_words;  // of word n-grams; maximum 0: none
    std::size_t min_characters, max_characters;
    bool shapes;  // replace numbers, URLs and mail addresses by their shapes
    unsigned hash_bits;  // 0: no hashing
};

struct Term {
    const char* at;
    std::uint32_t size;
    bool gram;  // a character n-gram, which is stored with a leading ~
    std::uint64_t head;  // its first eight bytes
    std::uint64_t hash;
};

// The term at `at`; eight bytes beyond its end must be readable. The hash must never change: models with hash_bits
// store it.
inline Term term_at(const char* at, std::size_t size, bool gram) {
    std::uint64_t head, word;
    std::memcpy(&head, at, 8);
    if (size < 8) head &= (std::uint64_t{1} << (8 * size)) - 1;
    std::uint64_t hash =
        mix_product(((gram ? 0x9E3779B97F4A7C15u : 0xD6E8FEB86659FD93u) + size) ^ head, 0xA0761D6478BD642Fu);
    for (std::size_t i = 8; i < size; i += 8) {
        std::memcpy(&word, at + i, 8);
        if (size - i < 8) word &= (std::uint64_t{1} << (8 * (size - i))) - 1;
        hash = mix_product(hash ^ word, 0xE7037ED1A0B428DBu);
    }
    return {at, static_cast<std::uint32_t>(size), gram, head, hash ^ hash >> 32};
}

// The kind and case folding of each character.
class Characters {
public:
    static const Characters& all() {
        static const Characters characters;
        return characters;
    }

    unicode::Kind kind(std::uint32_t code) const {
        return static_cast<unicode::Kind>(pages_[page_index_[code >> 8]][code & 255]);
    }

    // Writes a folded character of up to twelve bytes and returns its end.
    char* write(std::uint32_t code, char* out) const {
        const std::size_t page = code >> 8;
        if (folds_[page])
            for (std::size_t i = fold_begins_[page]; i < fold_begins_[page] + folds_[page]; ++i)
                if (unicode::FOLDS[i].from == code) {
                    for (const std::uint32_t to : unicode::FOLDS[i].to)
                        if (to) out = encode(to, out);
                    return out;
                }
        return encode(code, out);
    }

    // A folded ASCII letter or digit, or 0.
    char ascii(char byte) const { return ascii_[static_cast<unsigned char>(byte)]; }

private:
    static constexpr std::size_t PAGES = 0x110000 >> 8;
    std::vector<std::array<std::uint8_t, 256>> pages_;
    std::array<std::uint16_t, PAGES> page_index_{};
    std::array<std::uint16_t, PAGES> fold_begins_{}, folds_{};
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
            page_index_[page] = static_cast<std::uint16_t>(pages_.size() - 1);
        }
        std::size_t at = 0;
        for (const auto& fold : unicode::FOLDS) {
            const std::size_t page = fold.from >> 8;
            if (!folds_[page]++) fold_begins_[page] = static_cast<std::uint16_t>(at);
            ++at;
        }
        for (int byte = 0; byte < 128; ++byte) {
            const auto kind_of_byte = kind(byte);
            if (kind_of_byte == unicode::LETTER || kind_of_byte == unicode::DIGIT) write(byte, &ascii_[byte]);
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

// Decodes the character at p < end and its length in bytes. An invalid byte is NUL, a separator.
inline std::uint32_t decode(const char* p, const char* end, std::size_t& length) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(p[i]); };
    const std::uint32_t first = byte(0);
    length = 1;
    if (first < 0x80) return first;
    const std::size_t size = first >= 0xC2 && first < 0xE0   ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
    if (!size || static_cast<std::size_t>(end - p) < size) return 0;
    std::uint32_t code = first & (0xFF >> (size + 1));
    for (std::size_t i = 1; i < size; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return 0;
        code = code << 6 | (byte(i) & 63);
    }
    constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[size] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return 0;
    length = size;
    return code;
}

// Splits texts into terms and passes them to sink(Term*, count) in batches. Memory does not grow with the text.
template <class Sink>
class Tokenizer {
public:
    Tokenizer(const TokenizerOptions& options, Sink& sink)
        : options_(options), sink_(sink), characters_(Characters::all()),
          words_(BUFFER_BYTES + 2 * MAX_WORD_BYTES + 64), grams_(BUFFER_BYTES + 2 * MAX_WORD_BYTES + 64) {}

    // One column of a document; n-grams do not cross columns.
    void add_text(const char* p, const char* end) {
        begin();
        if (options_.shapes) read_text(p, end);
        else
            while (p < end) {
                p = read_window(p, end);
                flush();  // terms point into the window
            }
        flush();
    }

private:
    // Reads character by character.
    void read_text(const char* p, const char* end) {
        while (p < end) {
            if (const char folded = characters_.ascii(*p)) {
                if (size_ == 0 && !overlong_ && options_.shapes && shape(p, end)) continue;
                put(folded);
                last_ = *p >= '0' && *p <= '9' ? unicode::DIGIT : unicode::LETTER;
                ++p;
                if (size_ <= MAX_WORD_BYTES) {
                    const char* stop = p + std::min<std::size_t>(MAX_WORD_BYTES, end - p);
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
                        if (size_ > MAX_WORD_BYTES) drop_overlong();
                    }
                }
                continue;
            }
            std::size_t size;
            const std::uint32_t code = decode(p, end, size);
            const unicode::Kind kind = characters_.kind(code);
            switch (kind) {
                case unicode::LETTER:
                case unicode::DIGIT: {
                    char* const stop = characters_.write(code, word_ + size_);
                    size_ = stop - word_;
                    last_ = kind;
                    if (size_ > MAX_WORD_BYTES) drop_overlong();
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
                case unicode::APOSTROPHE: join_or_finish('\'', unicode::LETTER, p + size, end); break;
                case unicode::POINT: join_or_finish(static_cast<char>(code), unicode::DIGIT, p + size, end); break;
                default: finish();
            }
            p += size;
        }
        finish();
    }

    // Reads a window of bytes: a run of ASCII letters and digits is a word; other runs are read character by character.
    // Returns where to continue, as the last run may be incomplete.
    const char* read_window(const char* p, const char* end) {
        const std::size_t n = std::min<std::size_t>(WINDOW_BYTES, end - p);
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
                const b16 c = load_bytes(from + i), case_bit = bytes_of(0x20);
                const auto is = [&](char one) { return (b16)(c == bytes_of(static_cast<unsigned char>(one))); };
                const b16 letter = (b16)((c | case_bit) - bytes_of('a') < bytes_of(26));
                const b16 other = (b16)(c >= bytes_of(0x80)) | is('\'') | is('.') | is(',') | is('$');
                const b16 word = letter | (b16)(c - bytes_of('0') < bytes_of(10)) | is('_') | other;
                const b16 folded = c | (letter & case_bit);
                std::memcpy(&folded_[block + i], &folded, 16);
                within |= std::uint64_t{high_bits(word)} << i;
                others |= std::uint64_t{high_bits(other)} << i;
            }
            word_bits_[block / 64] = within;
            other_bits_[block / 64] = others;
        }
        word_bits_[n / 64] &= n % 64 ? (std::uint64_t{1} << n % 64) - 1 : 0;  // clears the bits beyond the window
        const bool last = p + n == end;
        std::size_t at = 0;
        for (;;) {
            std::size_t from = next(at, n, 0);
            if (from >= n) return p + n;
            std::size_t to = next(from, n, ~std::uint64_t{0});
            at = to;
            if (to >= n && !last) {
                if (from) return p + from;
                while (p + to < end && in_run(p[to])) ++to;  // the run fills the window
                read_text(p, p + to);
                return p + to;
            }
            if (any_other(from, to)) {
                while (to > from && is_trailing(folded_[to - 1])) --to;
                if (to > from && any_other(from, to)) {
                    read_text(p + from, p + to);
                    continue;
                }
            }
            const std::size_t size = to - from;
            if (size == 0) continue;
            if (size > MAX_WORD_BYTES || options_.max_words != 1 || options_.max_characters) {
                read_text(p + from, p + to);
                continue;
            }
            push(&folded_[from], size, false);
        }
    }

    // The first position from `at` on where a run begins (flip 0) or ends (flip all ones), or n.
    std::size_t next(std::size_t at, std::size_t n, std::uint64_t flip) const {
        std::size_t i = at / 64;
        std::uint64_t word = (word_bits_[i] ^ flip) >> at % 64 << at % 64;
        while (!word) {
            if (++i * 64 >= n) return n;
            word = word_bits_[i] ^ flip;
        }
        return std::min<std::size_t>(n, 64 * i + lowest_bit(word));
    }

    bool any_other(std::size_t from, std::size_t to) const {
        for (std::size_t i = from / 64; i <= (to - 1) / 64; ++i) {
            std::uint64_t word = other_bits_[i];
            if (i == from / 64) word = word >> from % 64 << from % 64;
            if (i == to / 64) word &= (std::uint64_t{1} << to % 64) - 1;
            if (word) return true;
        }
        return false;
    }

    static bool is_trailing(char c) { return c == '.' || c == ',' || c == '\''; }
    bool in_run(char c) const {
        return static_cast<signed char>(c) < 0 || is_trailing(c) || c == '$' || characters_.ascii(c);
    }

    const TokenizerOptions& options_;
    Sink& sink_;
    const Characters& characters_;
    std::vector<char> words_, grams_;  // folded words, each after a space; folded characters
    std::array<std::uint32_t, MAX_NGRAM> word_begins_{};  // the last words
    std::array<std::uint32_t, MAX_NGRAM> character_begins_{};  // the last characters
    static constexpr std::size_t WINDOW_BYTES = 4096;
    std::array<char, 64> raw_{};
    std::array<char, WINDOW_BYTES + 64> folded_{};
    std::array<std::uint64_t, WINDOW_BYTES / 64 + 1> word_bits_{}, other_bits_{};
    std::array<Term, QUEUE> queue_;
    std::array<char, QUEUE * 24> keys_;
    std::size_t queued_ = 0;
    std::size_t words_end_ = 8, grams_end_ = 0;  // in words_ and grams_
    std::size_t n_words_ = 0, n_characters_ = 0;
    char* word_ = nullptr;  // the current word, in words_
    std::size_t size_ = 0;
    bool overlong_ = false;  // the current word is too long
    unicode::Kind last_ = unicode::SEPARATOR;

    void begin() {
        words_end_ = 8;
        n_words_ = n_characters_ = 0;
        grams_end_ = 8;
        if (options_.max_characters) add_character(' ');
        start_word();
    }

    void start_word() {
        if (words_end_ > BUFFER_BYTES) {  // the last words move to the front
            flush();
            const std::size_t carried =
                std::min<std::size_t>(n_words_, options_.max_words ? options_.max_words - 1 : 0);
            const std::size_t from = carried ? word_begins_[(n_words_ - carried) % MAX_NGRAM] : words_end_;
            std::memmove(&words_[9], &words_[from], words_end_ - from);
            for (std::size_t i = n_words_ - carried; i < n_words_; ++i)
                word_begins_[i % MAX_NGRAM] -= static_cast<std::uint32_t>(from - 9);
            words_end_ -= from - 9;
        }
        words_[words_end_] = ' ';
        word_ = &words_[words_end_ + 1];
        size_ = 0;
        overlong_ = false;
        last_ = unicode::SEPARATOR;
    }

    void put(char folded) {
        word_[size_++] = folded;
        if (size_ > MAX_WORD_BYTES) drop_overlong();
    }

    // An apostrophe between letters or a point between digits is part of the word.
    void join_or_finish(char with, unicode::Kind among, const char* next, const char* end) {
        auto kind = unicode::SEPARATOR;
        for (std::size_t size; last_ == among && next < end; next += size) {
            kind = characters_.kind(decode(next, end, size));
            if (kind != unicode::IGNORED) break;
        }
        if (last_ == among && kind == among) put(with);
        else finish();
    }

    void drop_overlong() {
        add_characters();
        overlong_ = true;
        size_ = 0;
    }

    void finish() {
        if (size_ || overlong_) {
            if (options_.shapes && !overlong_) number();
            add_characters();
            if (options_.max_characters) add_character(' ');
            if (!overlong_) add_word();
            start_word();
        }
        last_ = unicode::SEPARATOR;
    }

    // Adds the current word, and the n-grams that end with it.
    void add_word() {
        if (!options_.max_words) return;
        const std::size_t end = words_end_ + 1 + size_;
        word_begins_[n_words_ % MAX_NGRAM] = static_cast<std::uint32_t>(words_end_ + 1);
        ++n_words_;
        const std::size_t max_n = std::min(options_.max_words, n_words_);
        for (std::size_t n = options_.min_words; n <= max_n; ++n) {
            const std::size_t from = word_begins_[(n_words_ - n) % MAX_NGRAM];
            push(&words_[from], end - from, false);
        }
        words_end_ = end;
    }

    // Adds the characters of the current word, or of a part of it, to the character n-grams.
    void add_characters() {
        if (!options_.max_characters) return;
        for (std::size_t i = 0; i < size_;) {
            std::size_t next = i + 1;
            while (next < size_ && (word_[next] & 0xC0) == 0x80) ++next;
            add_character(word_ + i, next - i);
            i = next;
        }
    }

    void add_character(char one) { add_character(&one, 1); }

    void add_character(const char* bytes, std::size_t size) {
        if (grams_end_ > BUFFER_BYTES) {
            flush();
            const std::size_t carried = std::min<std::size_t>(n_characters_, options_.max_characters - 1);
            const std::size_t from = carried ? character_begins_[(n_characters_ - carried) % MAX_NGRAM] : grams_end_;
            std::memmove(&grams_[8], &grams_[from], grams_end_ - from);
            for (std::size_t i = n_characters_ - carried; i < n_characters_; ++i)
                character_begins_[i % MAX_NGRAM] -= static_cast<std::uint32_t>(from - 8);
            grams_end_ -= from - 8;
        }
        character_begins_[n_characters_ % MAX_NGRAM] = static_cast<std::uint32_t>(grams_end_);
        std::memcpy(&grams_[grams_end_], bytes, size);
        grams_end_ += size;
        ++n_characters_;
        const std::size_t max_n = std::min(options_.max_characters, n_characters_);
        for (std::size_t n = options_.min_characters; n <= max_n; ++n) {
            const std::size_t from = character_begins_[(n_characters_ - n) % MAX_NGRAM];
            if (!(n == 1 && size == 1 && *bytes == ' ')) push(&grams_[from], grams_end_ - from, true);
        }
    }

    void push(const char* at, std::size_t size, bool gram) {
        queue_[queued_] = term_at(at, size, gram);
        if (++queued_ == QUEUE) flush();
    }

    void flush() {
        if (!queued_) return;
        if (options_.hash_bits) hash_terms();
        sink_(queue_.data(), queued_);
        queued_ = 0;
    }

    // Replaces terms by # and hexadecimal digits of their hash.
    void hash_terms() {
        const unsigned digits = (options_.hash_bits + 3) / 4;
        for (std::size_t i = 0; i < queued_; ++i) {
            std::uint64_t number = queue_[i].hash >> (64 - options_.hash_bits);
            char* const key = &keys_[24 * i];
            key[0] = '#';
            for (unsigned d = digits; d; --d, number >>= 4) key[d] = "0123456789abcdef"[number & 15];
            queue_[i] = term_at(key, digits + 1, false);
        }
    }

    // Shapes ---------------------------------------------------------------------------------------------------------

    // Replaces the digits of a number by 0.
    void number() {
        for (std::size_t i = 0; i < size_; ++i)
            if (!((word_[i] >= '0' && word_[i] <= '9') || word_[i] == '.' || word_[i] == ',')) return;
        for (std::size_t i = 0; i < size_; ++i)
            if (word_[i] >= '1' && word_[i] <= '9') word_[i] = '0';
    }

    static bool starts_with(const char* p, const char* end, const char* lower) {
        for (; *lower; ++p, ++lower)
            if (p >= end || (*p | (*lower >= 'a' ? 32 : 0)) != *lower) return false;
        return true;
    }

    static bool is_host_character(char c) {
        return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '-' || c == '.';
    }

    // The end of a host without trailing marks; its beginning if it is longer than MAX_HOST.
    template <class IsMark>
    static const char* host_end(const char* host, const char* end, IsMark is_mark) {
        constexpr std::size_t MAX_HOST = 100;
        const char* const limit = host + std::min<std::size_t>(MAX_HOST + 1, end - host);
        const char* next = host;
        while (next < limit && is_host_character(*next)) ++next;
        const char* stop = next;
        while (stop > host && is_mark(stop[-1])) --stop;
        while (next < end && is_mark(*next)) ++next;  // beyond the limit too: they are no part of the host
        const bool ended = next == end || !is_host_character(*next);
        return ended && static_cast<std::size_t>(stop - host) <= MAX_HOST ? stop : host;
    }

    // Adds two terms: the shape, and the shape with the host.
    void add_shape(const char* name, const char* host, const char* end) {
        for (const bool with : {false, true}) {
            for (const char* c = name; *c; ++c) put(*c);
            if (with)
                for (const char* c = host; c < end; ++c) put(*c >= 'A' && *c <= 'Z' ? static_cast<char>(*c | 32) : *c);
            add_characters();
            if (options_.max_characters) add_character(' ');
            add_word();
            start_word();
        }
    }

    // Consumes a URL up to the end of its host, or a mail address, if one begins at p.
    bool shape(const char*& p, const char* end) {
        constexpr std::size_t MAX_NAME = 64;
        const bool web = starts_with(p, end, "http://") || starts_with(p, end, "https://");
        if (web || starts_with(p, end, "www.")) {
            const char* host = web ? static_cast<const char*>(std::memchr(p, '/', end - p)) + 2 : p;
            const char* stop = host_end(host, end, [](char c) { return c == '.'; });
            if (stop == host) return false;
            add_shape("url:", host, stop);
            p = stop;
            return true;
        }
        const char* at = p;
        const char* const last = p + std::min<std::size_t>(MAX_NAME, end - p);
        while (at < last && (is_host_character(*at) || *at == '_' || *at == '+' || *at == '%')) ++at;
        if (at == last || *at != '@') return false;
        const char* host = at + 1;
        const char* stop = host_end(host, end, [](char c) { return c == '.' || c == '-'; });
        bool dotted = false;
        for (const char* c = host; c < stop; ++c) dotted |= *c == '.';
        if (!dotted) return false;
        add_shape("address:", host, stop);
        p = stop;
        return true;
    }
};

}  // namespace deciban
