// Runs every kernel on fixed pseudo-random input and prints a hash of the bits of its results, one line per kernel.
// The hashes are the same on every platform, compiler and number of threads; bits.txt holds them. Kernels that call
// the C library's log or exp have (libm) in their line, as their last bits depend on that library.
//
//     bits [threads]
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "../kernels/boosting.hpp"
#include "../kernels/centre.hpp"
#include "../kernels/density.hpp"
#include "../kernels/forest.hpp"
#include "../kernels/histogram.hpp"
#include "../kernels/leave_one_out.hpp"
#include "../kernels/leaves.hpp"
#include "../kernels/merge.hpp"
#include "../kernels/moments.hpp"
#include "../kernels/pair_gains.hpp"
#include "../kernels/records.hpp"
#include "../kernels/row_keys.hpp"
#include "../kernels/scatter.hpp"
#include "../kernels/sparse_linear.hpp"
#include "../kernels/tokens.hpp"
#include "../kernels/triangle.hpp"
#include "../kernels/weight_solver.hpp"

using namespace deciban;

namespace {

class Hash {  // FNV-1a
public:
    void add(double x) {
        if (x != x) x = std::numeric_limits<double>::quiet_NaN();  // the sign of a NaN differs between processors
        std::uint64_t bits;
        std::memcpy(&bits, &x, sizeof bits);
        add_bits(bits);
    }
    template <class T>
    void add(const T* values, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            if constexpr (std::is_floating_point_v<T>) add(static_cast<double>(values[i]));
            else if constexpr (std::is_same_v<T, char>) add_bits(static_cast<unsigned char>(values[i]));
            else add_bits(static_cast<std::uint64_t>(values[i]));
        }
    }
    template <class Values>
    void add(const Values& values) {
        add(values.data(), values.size());
    }
    void add(ExactSums& sums) {
        const std::size_t words = sums.canonicalise();
        for (std::size_t w = 0; w < words; ++w)
            for (std::size_t k = 0; k < sums.cells(); ++k) add(sums.word(k, w));
    }
    void add(Moments& sums) { add(sums.count), add(sums.sum_x), add(sums.sum_xx); }
    void print(const char* name) {
        std::printf("%016" PRIx64 "  %s\n", value_, name);
        value_ = start;
    }

private:
    void add_bits(std::uint64_t bits) {
        for (int i = 0; i < 8; ++i, bits >>= 8) value_ = (value_ ^ (bits & 255)) * 0x100000001b3;
    }
    static constexpr std::uint64_t start = 0xcbf29ce484222325;
    std::uint64_t value_ = start;
};

// Draws without the C library: uniform in [0, 1), and a bell-shaped sum of four.
struct Draws : RandomDraws {
    explicit Draws(std::uint64_t seed) : RandomDraws{seed} {}
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
    double bell() {
        double sum = -2.0;
        for (int i = 0; i < 4; ++i) sum += uniform();
        return sum;
    }
    template <class T>
    std::vector<T> codes(std::size_t n, std::size_t below_this) {
        std::vector<T> out(n);
        for (auto& code : out) code = static_cast<T>(below(below_this));
        return out;
    }
    std::vector<double> bells(std::size_t n) {
        std::vector<double> out(n);
        for (auto& x : out) x = bell();
        return out;
    }
};

constexpr std::size_t rows = 20011, columns = 7, classes = 3;

// Numbers of many sizes, with some missing.
std::vector<double> cells(Draws& draws) {
    auto x = draws.bells(rows * columns);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t kind = draws.below(40);
        if (kind == 0) x[i] = std::numeric_limits<double>::quiet_NaN();
        else if (kind == 1) x[i] = 0.0;
        else if (kind == 2) x[i] = std::ldexp(x[i], static_cast<int>(draws.below(400)) - 200);
        else x[i] = x[i] * static_cast<double>(1 + i % columns) + 3.0;
    }
    return x;
}

struct Table {
    std::vector<double> x;
    std::vector<float> floats;
    std::vector<std::int32_t> labels;
    std::vector<double> weights;
    explicit Table(Draws& draws)
        : x(cells(draws)), floats(x.begin(), x.end()), labels(draws.codes<std::int32_t>(rows, classes)), weights(rows) {
        for (auto& w : weights) w = draws.uniform() + 0.25;
    }
    Matrix<double> by_row() const { return {x.data(), rows, columns, columns, 1}; }
    Matrix<double> by_column() const { return {x.data(), rows, columns, 1, rows}; }
    Matrix<float> single() const { return {floats.data(), rows, columns, columns, 1}; }
};

void sums(const Table& t, Hash& hash) {
    BadCell bad;
    Moments plain = moments(t.by_row(), t.labels.data(), nullptr, classes, bad);
    hash.add(plain), hash.print("moments");
    Moments other = moments(t.by_column(), t.labels.data(), nullptr, classes, bad);
    hash.add(other), hash.print("moments by column");
    Moments single = moments(t.single(), t.labels.data(), nullptr, classes, bad);
    hash.add(single), hash.print("moments of float");
    Moments weighted = moments(t.by_row(), t.labels.data(), t.weights.data(), classes, bad);
    hash.add(weighted), hash.print("weighted moments");
    std::vector<double> few(rows);
    for (std::size_t i = 0; i < rows; ++i) few[i] = i % 3 ? 0.3 : 7.0;
    Moments grouped = moments(t.by_row(), t.labels.data(), few.data(), classes, bad);
    hash.add(grouped), hash.print("moments with few weights");

    for (std::size_t k = 0; k < classes * columns; ++k) {
        std::vector<double> words[3];
        for (std::size_t w = 0; w < 8; ++w) {
            words[0].push_back(plain.count.word(k, w));
            words[1].push_back(plain.sum_x.word(k, w));
            words[2].push_back(plain.sum_xx.word(k, w));
        }
        double mean, squares;
        centre({words[0].data(), 8, 1}, {words[1].data(), 8, 1}, {words[2].data(), 8, 1}, mean, squares);
        hash.add(mean), hash.add(squares);
    }
    hash.print("centre");
}

void scatters(const Table& t, Draws& draws, Hash& hash) {
    const auto origin = draws.bells(classes * columns);
    const unsigned threads = thread_limit().exchange(1);  // products are added by thread, to rounding
    for (const bool shared : {false, true})
        for (const double* weights : {static_cast<const double*>(nullptr), t.weights.data()}) {
            Scatter s = scatter(t.by_row(), t.labels.data(), weights, origin.data(), classes, shared);
            hash.add(s.count), hash.add(s.skipped), hash.add(s.sum), hash.add(s.products);
        }
    thread_limit().store(threads);
    hash.print("scatter");
}

void densities(const Table& t, Draws& draws, Hash& hash) {
    const auto mean = draws.bells(classes * columns), constant = draws.bells(classes * columns);
    auto factor = draws.bells(classes * columns);
    std::vector<double> out(rows * classes, 0.0);
    add_log_density<true>(t.by_row(), mean.data(), factor.data(), constant.data(), classes, out.data());
    hash.add(out), hash.print("quadratic densities");
    add_log_density<false>(t.by_row(), mean.data(), factor.data(), constant.data(), classes, out.data());
    factor[1] = -std::numeric_limits<double>::infinity();
    add_log_density<false>(t.single(), nullptr, factor.data(), constant.data(), classes, out.data());
    hash.add(out), hash.print("linear densities");
    std::vector<double> own(rows);
    const std::unique_ptr<bool[]> flags(new bool[rows]);
    std::vector<double> scale(classes * columns, 0x1p-9);
    leave_one_out_densities(t.by_row(), t.labels.data(), mean.data(), scale.data(), mean.data(), constant.data(),
                            classes, own.data(), flags.get());
    hash.add(flags.get(), rows), hash.print("unsafe rows to leave out");
    hash.add(own), hash.print("leave-one-out densities (libm)");
    rows_with_nan(t.by_row(), flags.get());
    hash.add(flags.get(), rows), hash.print("rows with NaN");

    const auto lower = draws.bells(columns * columns);
    const std::vector<Triangle> triangles(2, Triangle(columns, lower.data(), mean.data()));
    std::vector<double> squares(rows), z(rows * columns);
    whiten(t.by_row(), triangles, true,
           [&](std::size_t, std::size_t first, std::size_t n, const double* lengths, const double* coordinates) {
               for (std::size_t i = 0; i < n; ++i) {
                   squares[first + i] = lengths[i];
                   for (std::size_t j = 0; j < columns; ++j)
                       z[(first + i) * columns + j] = coordinates[j * Triangle::rows + i];
               }
           });
    hash.add(squares), hash.add(z), hash.print("whitening");
}

void posteriors(Draws& draws, Hash& hash) {
    constexpr std::size_t many = 5;
    auto joint = draws.bells(rows * many);
    for (auto& x : joint) x *= 300.0;
    const double never = -std::numeric_limits<double>::infinity();
    std::fill_n(joint.begin() + 15, many, never);
    const double fallback[many] = {never, 0.0, never, never, never};
    std::vector<std::int64_t> chosen(rows);
    most_probable(joint.data(), rows, many, fallback, chosen.data());
    hash.add(chosen), hash.print("most probable classes");
    auto logs = joint;
    normalise(joint.data(), rows, many, fallback, false);
    hash.add(joint), hash.print("posteriors");
    normalise(logs.data(), rows, many, fallback, true);
    hash.add(logs), hash.print("log-posteriors (libm)");
}

void linear(Draws& draws, Hash& hash) {
    for (const std::size_t m : {1, 2, 7}) {
        constexpr std::size_t d = 13;
        const auto x = draws.bells(rows * d), w = draws.bells(m * d), constant = draws.bells(m),
                   origin = draws.bells(d);
        const auto labels = draws.codes<std::int32_t>(rows, m + 1);
        const Matrix<double> matrix{x.data(), rows, d, d, 1};
        const Predictors p(m, d, w.data(), constant.data(), origin.data());
        std::vector<double> eta(rows * m), weights(rows);
        for (auto& weight : weights) weight = draws.uniform();
        predictors(matrix, p, eta.data());
        hash.add(eta), hash.print("predictors");
        const Pass plain = softmax_pass(matrix, p, labels.data(), nullptr);
        const Pass weighted = softmax_pass(matrix, p, labels.data(), weights.data());
        hash.add(plain.sums), hash.add(plain.residuals), hash.add(weighted.sums), hash.print("softmax gradient");
        hash.add(plain.loss), hash.add(weighted.loss), hash.print("softmax loss (libm)");
        hash.add(residual_sums(matrix, p, eta.data()).sums), hash.print("residual sums");
        hash.add(column_sums(matrix, p, weights.data()).sums), hash.print("column sums");
    }
}

void sparse(Draws& draws, Hash& hash) {
    constexpr std::size_t width = 50;
    std::vector<double> counts, reals;
    std::vector<std::int32_t> where, starts{0};
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = draws.below(4); j < width; j += 1 + draws.below(9)) {
            where.push_back(static_cast<std::int32_t>(j));
            counts.push_back(static_cast<double>(draws.below(5)));
            reals.push_back(draws.uniform());
        }
        starts.push_back(static_cast<std::int32_t>(where.size()));
    }
    const auto labels = draws.codes<std::int32_t>(rows, classes);
    const auto table = draws.bells(width * padded(classes)), w = draws.bells(width * 2), constant = draws.bells(2);
    for (const auto* values : {&counts, &reals}) {
        const SparseRows<std::int32_t> x{values->data(), where.data(), starts.data(), rows, width, where.size()};
        bool valid;
        ExactSums totals = sum_sparse(x, labels.data(), nullptr, classes, valid);
        hash.add(totals), hash.print("sparse sums");
        std::vector<double> out(rows * classes, 0.0), eta(rows * 2);
        add_sparse(x, table.data(), classes, out.data());
        hash.add(out), hash.print("sparse scores");
        std::vector<std::uint64_t> keys(rows, 1);
        add_sparse_keys(x, keys.data());
        hash.add(keys), hash.print("sparse row keys");
        predictors(x, 2, w.data(), constant.data(), eta.data());
        hash.add(eta), hash.add(softmax_pass(x, 2, w.data(), constant.data(), labels.data(), nullptr).sums);
        hash.add(residual_sums(x, 2, eta.data()).sums), hash.print("sparse predictors and gradient");
    }
}

void tables(const Table& t, Draws& draws, Hash& hash) {
    constexpr std::size_t d = 4;
    const std::int64_t offsets[d + 1] = {0, 5, 9, 209, 210};
    auto codes = draws.codes<std::int32_t>(rows * d, 12);
    for (auto& code : codes) code -= 1;  // some codes are out of range
    const Matrix<std::int32_t> matrix{codes.data(), rows, d, d, 1};
    for (const double* weights : {static_cast<const double*>(nullptr), t.weights.data()}) {
        ExactSums counts = count_codes(matrix, offsets, t.labels.data(), weights, classes);
        hash.add(counts);
    }
    hash.add(count_labels(t.labels.data(), rows, classes)), hash.print("counts of codes");
    for (const std::size_t k : {classes, std::size_t{21}}) {
        const auto table = draws.bells(210 * padded(k));
        std::vector<double> out(rows * k, 0.0);
        add_table(matrix, offsets, table.data(), k, out.data());
        hash.add(out);
    }
    hash.print("table scores");
    std::int64_t low[d], high[d];
    integer_range(matrix, low, high);
    const auto lut = draws.codes<std::int32_t>(210, 1000);
    std::vector<std::int32_t> encoded(rows * d);
    encode_integers(matrix, low, offsets, lut.data(), -7, encoded.data());
    hash.add(low, d), hash.add(high, d), hash.add(encoded), hash.print("encoded integers");

    std::vector<double> counts(210 * classes), class_rows(classes, rows);
    for (auto& count : counts) count = static_cast<double>(draws.below(50));
    std::vector<double> evidence(rows * d * classes), mean(rows * classes);
    const CellEvidence evidence_of(matrix, offsets, counts.data(), class_rows.data(), classes, 0.5, t.labels.data(),
                                   t.weights.data());
    cell_evidence(evidence_of, evidence.data()), mean_cell_evidence(evidence_of, nullptr, mean.data());
    hash.add(evidence), hash.add(mean), hash.print("cell evidence (libm)");

    std::vector<std::uint64_t> salts, keys(rows, 1);
    for (std::size_t j = 0; j < columns; ++j) salts.push_back(draws.next());
    mix_keys(t.by_row(), salts.data(), keys.data());
    hash.add(keys), hash.print("row keys");
    std::vector<std::int64_t> bins;
    std::vector<std::int32_t> bin_codes(rows);
    const int level = histogram_column(t.by_row(), 2, 300, bins, bin_codes.data());
    hash.add(&level, 1), hash.add(bins), hash.add(bin_codes), hash.print("histogram");
    auto a = draws.bells(rows), b = draws.bells(rows);
    std::copy_n(a.begin(), 100, b.begin());
    std::sort(a.begin(), a.end()), std::sort(b.begin(), b.end());
    std::vector<double> merged(2 * rows);
    std::vector<std::int64_t> count_a(2 * rows), count_b(2 * rows);
    merged.resize(merge_sorted(a.data(), rows, b.data(), rows, merged.data(), count_a.data(), count_b.data()));
    hash.add(merged), hash.add(count_a.data(), merged.size()), hash.add(count_b.data(), merged.size());
    hash.print("merged values");
}

void forests(const Table& t, Draws& draws, Hash& hash) {
    constexpr std::size_t n = 3001, d = 6, trees = 8;
    const std::int32_t sizes[d] = {2, 3, 8, 40, 256, 20}, pairs[] = {0, 1, 2, 3, 4, 5};
    const bool ordered[d] = {true, false, true, true, true, false};
    std::vector<std::uint8_t> codes(n * d);
    std::vector<std::int32_t> labels(n);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < d; ++j)
            codes[i * d + j] = static_cast<std::uint8_t>(draws.below(static_cast<std::size_t>(sizes[j])));
        labels[i] = static_cast<std::int32_t>((codes[i * d + 2] / 3u + draws.below(2)) % classes);
    }
    const Matrix<std::uint8_t> matrix{codes.data(), n, d, d, 1};
    const std::unique_ptr<bool[]> flags(new bool[n * trees]);
    mark_bags(ByteRows(matrix), trees, 0.6, 5, flags.get());
    hash.add(flags.get(), n * trees), hash.print("bags");
    for (const double* weights : {static_cast<const double*>(nullptr), t.weights.data()}) {
        const auto forest =
            grow_forest(matrix, sizes, ordered, labels.data(), weights, {classes, trees, 3, 12, 0.6, 5, 5});
        std::vector<std::int64_t> starts{0};
        std::vector<std::int32_t> column, code, left, leaves(n * trees);
        for (const auto& tree : forest) {
            column.insert(column.end(), tree.column.begin(), tree.column.end());
            code.insert(code.end(), tree.code.begin(), tree.code.end());
            left.insert(left.end(), tree.left.begin(), tree.left.end());
            starts.push_back(static_cast<std::int64_t>(column.size()));
        }
        ForestWalk walk;
        if (const char* error =
                walk.load(trees, starts.data(), column.data(), code.data(), left.data(), ordered, d, column.size()))
            std::printf("%s\n", error);
        walk.find(matrix, leaves.data());
        hash.add(starts), hash.add(column), hash.add(code), hash.add(left), hash.add(leaves), hash.print("forest");
        const auto scores = draws.bells(column.size() * classes);
        std::vector<double> counts(scores.size()), shares(n * d * classes, 0.0), pooled(trees * n * classes);
        for (auto& count : counts) count = static_cast<double>(draws.below(90));
        walk.add_contributions(matrix, scores.data(), classes, shares.data());
        const std::unique_ptr<bool[]> hidden(new bool[n * d]);
        for (std::size_t i = 0; i < n * d; ++i) hidden[i] = i % 11 == 0;
        const Matrix<bool> unknown{hidden.get(), n, d, d, 1};
        walk.pooled_leaf_counts(matrix, unknown, counts.data(), classes, flags.get(), pooled.data());
        hash.add(shares), hash.add(pooled), hash.print("tree contributions");
        const double prior[classes] = {0.5, 0.25, 0.25};
        walk.add_pooled_contributions(matrix, unknown, counts.data(), prior, classes, 1.0, shares.data());
        hash.add(shares), hash.print("pooled contributions (libm)");
        double gains[3];
        PairGains(matrix, sizes, labels.data(), weights, classes, 1.0).compute(pairs, 3, gains);
        hash.add(gains, 3), hash.print("pair gains (libm)");
    }
}

// Words of ASCII and other letters, numbers, addresses and broken UTF-8.
std::string document(Draws& draws, std::size_t words) {
    static const char* const others[] = {"na\xC3\xAFve",
                                         "\xCE\xA3\xCE\xBF\xCF\x86\xCE\xAF\xCE\xB1",
                                         "don't",
                                         "3.14",
                                         "ex@mail.org.",
                                         "HTTP://www.Example.com/a",
                                         "\xE6\x97\xA5\xE6\x9C\xAC",
                                         "\xFF\xC3",
                                         "$100,000",
                                         "_x_"};
    std::string text;
    for (std::size_t i = 0; i < words; ++i) {
        if (draws.below(12) == 0) text += others[draws.below(10)];
        else
            for (std::size_t length = 1 + draws.below(i % 100 ? 5 : 300); length--;)
                text += "abcdefABCDEF"[draws.below(12)];
        text += draws.below(9) ? " " : ", ";
    }
    return text;
}

void texts(Draws& draws, Hash& hash) {
    constexpr std::size_t n = 200;
    std::string buffer;
    std::vector<std::int64_t> spans;
    for (std::size_t i = 0; i < n; ++i) {
        const std::string text = document(draws, i == 7 ? 30000 : 300);
        spans.insert(spans.end(),
                     {0, static_cast<std::int64_t>(buffer.size()), static_cast<std::int64_t>(text.size())});
        buffer += text;
    }
    const char* const buffers[] = {buffer.data()};
    const Documents documents{buffers, spans.data(), n, 1};
    const auto labels = draws.codes<std::int32_t>(n, classes);
    const TokenizerOptions all[] = {
        {1, 1, 1, 0, false, 0}, {1, 2, 1, 0, true, 0}, {1, 0, 2, 4, false, 0}, {1, 3, 3, 3, true, 18}};
    for (const auto& options : all) {
        const TermCounts counts = count_terms(documents, options, labels.data(), classes, options.shapes);
        std::string terms;
        std::vector<std::int64_t> ends;
        for (const auto id : sorted_ids(counts.table)) {
            terms.append(counts.table.begin(id), counts.table.length(id));
            ends.push_back(static_cast<std::int64_t>(terms.size()));
            hash.add(counts.of(id), classes);
        }
        hash.add(terms), hash.add(ends), hash.print("terms");
        const Vocabulary vocabulary(terms.data(), ends.data(), ends.size());
        const auto evidence = draws.bells(ends.size() * 4);
        std::vector<double> scores(n * classes, 0.0);
        add_terms(documents, options, vocabulary.table(), evidence.data(), 4, classes, options.shapes, scores.data());
        for (const auto& row : term_rows(documents, options, vocabulary.table()))
            for (const auto& [id, count] : row) hash.add(static_cast<double>(id) + count * 0x1p-20);
        hash.add(scores), hash.print("term scores");
    }
    for (const char quote : {'"', 'a'})
        for (const std::size_t size : {buffer.size(), std::size_t{17}, std::size_t{5}}) {
            std::replace(buffer.begin(), buffer.end(), '$', '\n');
            const std::size_t end = last_record_end(buffer.data(), size, ',', quote, 0);
            hash.add(&end, 1);
        }
    hash.print("ends of records");
}

void evidence_weights(Draws& draws, Hash& hash) {
    constexpr std::size_t pieces = 6, n = 2000;
    for (const std::size_t scores : {1, 3}) {
        const auto labels = draws.codes<std::int32_t>(n, std::max<std::size_t>(2, scores));
        auto values = draws.bells(scores * n * pieces);
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t own = scores == 1 ? 0 : static_cast<std::size_t>(labels[i]);
            for (std::size_t p = 0; p < pieces; ++p)
                values[(own * n + i) * pieces + p] += scores == 1 && labels[i] == 0 ? -0.5 : 0.5;
        }
        std::vector<double> offset(scores * n, 0.0), omega(n);
        for (auto& weight : omega) weight = draws.uniform();
        const std::int32_t groups[pieces] = {0, 0, 1, 1, 1, 2};
        const WeightProblem problem(scores, n, pieces, values.data(), offset.data(), labels.data(), omega.data(),
                                    groups, 3.0, 1.0, 0.3, 0.4);
        for (const std::size_t wide : {0, 400}) {
            const WeightSolution solution = solve_weights(problem, {}, 1e-9, 50, wide, [] {});
            hash.add(solution.theta), hash.add(solution.value), hash.print("weights of evidence (libm)");
        }
    }
}

void boosting(const Table& t, Draws& draws, Hash& hash) {
    constexpr std::size_t n = 3001, d = 4;
    const std::int32_t sizes[d] = {2, 9, 200, 20};
    const bool ordered[d] = {true, false, true, false};
    std::vector<std::uint8_t> codes(n * d);
    std::vector<std::int32_t> labels(n);
    const std::unique_ptr<bool[]> hidden(new bool[n * d]);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < d; ++j)
            codes[i * d + j] = static_cast<std::uint8_t>(draws.below(static_cast<std::size_t>(sizes[j])));
        labels[i] = static_cast<std::int32_t>((codes[i * d + 2] / 30u + codes[i * d + 1] + draws.below(2)) % classes);
    }
    for (std::size_t i = 0; i < n * d; ++i) hidden[i] = i % 11 == 0;
    const Matrix<std::uint8_t> matrix{codes.data(), n, d, d, 1};
    const Matrix<bool> unknown{hidden.get(), n, d, d, 1};
    for (const double* weights : {static_cast<const double*>(nullptr), t.weights.data()}) {
        const Ensembles boosted =
            boost(matrix, sizes, ordered, labels.data(), weights, {classes, 4, 30, 5, 0.2, 1, 0.8, 0.5, 5}, [] {});
        const SymmetricTrees& grown = boosted.trees;
        hash.add(boosted.starts), hash.add(grown.column), hash.add(grown.code), hash.add(grown.rows);
        hash.add(grown.value), hash.print("boosted trees (libm)");
        const std::size_t trees = grown.trees(), nodes = trees * 2 * grown.leaves();
        const auto mean = draws.bells(nodes * classes);
        std::vector<double> rows_of_node(nodes), values(n * classes, 0.0), shares(n * d * classes, 0.0);
        for (auto& count : rows_of_node) count = static_cast<double>(1 + draws.below(90));
        const std::vector<std::int32_t> whole(trees, 0);
        const SymmetricWalk walk(trees, grown.depth, classes, grown.column.data(), grown.code.data(), ordered,
                                 mean.data(), rows_of_node.data());
        walk.add_values(matrix, &unknown, whole.data(), 1, nullptr, whole.data(), values.data());
        walk.add_contributions(matrix, &unknown, shares.data());
        hash.add(values), hash.add(shares), hash.print("values of boosted trees");
    }
}

}  // namespace

int main(int count, char** arguments) {
    thread_limit().store(count > 1 ? static_cast<unsigned>(std::atoi(arguments[1])) : 4);
    Draws draws(22);
    Hash hash;
    const Table table(draws);
    sums(table, hash);
    scatters(table, draws, hash);
    densities(table, draws, hash);
    posteriors(draws, hash);
    linear(draws, hash);
    sparse(draws, hash);
    tables(table, draws, hash);
    forests(table, draws, hash);
    texts(draws, hash);
    evidence_weights(draws, hash);
    boosting(table, draws, hash);
}
