// Bins of a float histogram: integer keys in the order of the numbers, with low bits dropped until at most `cap` are
// distinct.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "matrix.hpp"

namespace deciban {

inline std::int64_t ordered_key(double x) {
    if (x == 0.0) x = 0.0;  // -0.0 becomes 0.0
    std::int64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits ^ ((bits >> 63) & 0x7fffffffffffffff);
}

// A set of at most `cap` keys, with open addressing.
class KeySet {
public:
    explicit KeySet(std::size_t cap) : cap_(cap) {
        std::size_t size = 64;
        while (size < 4 * (cap + 1)) size *= 2;
        slots_.assign(size, 0);
        filled_.assign(size, 0);
        mask_ = size - 1;
    }
    int level() const { return level_; }
    void insert(std::int64_t key) {
        put(key >> level_);
        while (keys_.size() > cap_ && level_ < 63) coarsen();  // at level 63 only the sign is left
    }
    std::vector<std::int64_t> sorted() const {
        auto keys = keys_;
        std::sort(keys.begin(), keys.end());
        return keys;
    }

private:
    std::size_t slot_of(std::int64_t key) const {
        const std::uint64_t hash = static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15u;
        std::size_t slot = (hash >> 32) & mask_;
        while (filled_[slot] && slots_[slot] != key) slot = (slot + 1) & mask_;
        return slot;
    }
    void put(std::int64_t key) {
        const std::size_t slot = slot_of(key);
        if (filled_[slot]) return;
        filled_[slot] = 1, slots_[slot] = key;
        keys_.push_back(key);
    }
    void coarsen() {
        ++level_;
        const auto keys = std::move(keys_);
        keys_.clear();
        std::fill(filled_.begin(), filled_.end(), 0);
        for (const auto key : keys) put(key >> 1);
    }
    std::size_t cap_, mask_ = 0;
    int level_ = 0;
    std::vector<std::int64_t> slots_, keys_;
    std::vector<unsigned char> filled_;
};

// Finds the level and keys of one column, and the index of every row's key (-1 for NaN).
template <class T>
int histogram_column(const Matrix<T>& x, std::size_t column, std::size_t cap, std::vector<std::int64_t>& keys,
                     std::int32_t* codes) {
    KeySet set(cap);
    for (std::size_t i = 0; i < x.rows; ++i) {
        const double value = static_cast<double>(x.at(i, column));
        if (value == value) set.insert(ordered_key(value));
    }
    keys = set.sorted();
    for (std::size_t i = 0; i < x.rows; ++i) {
        const double value = static_cast<double>(x.at(i, column));
        if (value != value) {
            codes[i] = -1;
            continue;
        }
        const auto slot = std::lower_bound(keys.begin(), keys.end(), ordered_key(value) >> set.level());
        codes[i] = static_cast<std::int32_t>(slot - keys.begin());
    }
    return set.level();
}

}  // namespace deciban
