// Non-negative weights of evidence, by a convex fit: projected Newton with conjugate gradients.
#pragma once
#include "weight_problem.hpp"

namespace deciban {

namespace weight_solver {

constexpr int rounds = 12;            // of clipping weights that would become negative, within a step
constexpr int inner = 100;            // conjugate gradient iterations of a round at most
constexpr int stale = 16;             // passes of a step from which a new preconditioner is worth its cost
constexpr double first_forcing = 0.1;  // relative tolerance of a Newton step, at first
constexpr double share = 0.01;  // of the decrease without bounds: if clipping achieves less, steps are smaller
constexpr double small = 1e-3;  // of the largest weight: those below are treated as 0
constexpr double enough = 1e-4;  // Armijo: the share of the predicted decrease that a step must achieve
constexpr int halvings = 40;  // of a step at most
constexpr int quarters = 12;  // of a clipped step at most: each tries a quarter of the last
constexpr int shrinks = 10;  // halvings of the weights before the first step at most
constexpr double rounding = 1e-13;  // of J: changes below it are rounding
constexpr double lowest_decrease = 1e-8;  // of J: if no step decreases J, and none this large is predicted, it is least
constexpr double infinity = std::numeric_limits<double>::infinity();

using Mask = std::vector<unsigned char>;

DECIBAN_CLONES inline double dot(const double* a, const double* b, std::size_t n) {
    v4 first = splat(0.0), second = splat(0.0);
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        first = fma(load(a + i), load(b + i), first);
        second = fma(load(a + i + 4), load(b + i + 4), second);
    }
    double total = sum(first + second);
    for (; i < n; ++i) total += a[i] * b[i];
    return total;
}
inline double dot(const Doubles& a, const Doubles& b) { return dot(a.data(), b.data(), a.size()); }

inline Doubles plus(const Doubles& a, double factor, const Doubles& b) {
    Doubles out(a);
    for (std::size_t j = 0; j < out.size(); ++j) out[j] += factor * b[j];
    return out;
}

// About the inverse of the second derivative for the free weights: exact within a score column, or of the diagonal.
class Preconditioner {
public:
    Doubles diagonal;
    double stretch = 1.0;  // the largest ratio of its curvature to the second derivative that was seen

    Preconditioner(const WeightProblem& problem, const Doubles& p, std::size_t wide) : problem_(problem) {
        free_.assign(problem.size(), 2);
        if (problem.pieces > wide) {
            diagonal = problem.diagonal(p);
            return;
        }
        diagonal.assign(problem.size(), 0.0);
        factors_.resize(problem.scores);
        for (std::size_t c = 0; c < problem.scores; ++c) {
            blocks_.push_back(problem.block(c, p));
            for (std::size_t j = 0; j <= problem.pieces; ++j)
                diagonal[c * problem.width + j] = blocks_[c][j * problem.width + j];
        }
    }

    // Restricts it to the free weights; the others do not move.
    void restrict_to(const Mask& free) {
        for (std::size_t c = 0; c < factors_.size(); ++c) {
            const std::size_t at = c * problem_.width;
            if (!std::equal(free.begin() + at, free.begin() + at + problem_.width, free_.begin() + at))
                factors_[c].factorise(blocks_[c], problem_.width, free.data() + at);
        }
        free_ = free;
    }

    Doubles operator()(const Doubles& residual) const {
        const std::size_t width = problem_.width, bias = problem_.pieces;
        Doubles out(residual.size(), 0.0);
        if (factors_.empty()) {
            for (std::size_t j = 0; j < out.size(); ++j) out[j] = free_[j] ? residual[j] / diagonal[j] : 0.0;
        } else {
            for (std::size_t c = 0; c < factors_.size(); ++c)
                factors_[c].solve(residual.data() + c * width, out.data() + c * width);
        }
        if (problem_.scores > 1) {  // a common change of biases changes no probability: their sum stays 0
            double mean = 0.0;
            for (std::size_t c = 0; c < problem_.scores; ++c) mean += out[c * width + bias];
            mean /= static_cast<double>(problem_.scores);
            for (std::size_t c = 0; c < problem_.scores; ++c) out[c * width + bias] -= mean;
        }
        return out;
    }

private:
    // Cholesky's factor of the free rows and columns of a block.
    struct Factor {
        std::vector<std::size_t> index;
        Doubles lower, transposed;  // (n, n)

        void factorise(const Doubles& block, std::size_t width, const unsigned char* free) {
            index.clear();
            for (std::size_t j = 0; j < width; ++j)
                if (free[j]) index.push_back(j);
            const std::size_t n = index.size();
            lower.assign(n * n, 0.0);
            transposed.assign(n * n, 0.0);
            for (std::size_t a = 0; a < n; ++a)
                for (std::size_t b = 0; b <= a; ++b) {
                    const double value = block[index[a] * width + index[b]];
                    const double rest = value - dot(lower.data() + a * n, lower.data() + b * n, b);
                    lower[a * n + b] =
                        a == b ? std::sqrt(std::max(rest, 1e-16 * value + 1e-300)) : rest / lower[b * n + b];
                    transposed[b * n + a] = lower[a * n + b];
                }
        }
        void solve(const double* right, double* out) const {
            const std::size_t n = index.size();
            std::vector<double> x(n);
            for (std::size_t a = 0; a < n; ++a)
                x[a] = (right[index[a]] - dot(lower.data() + a * n, x.data(), a)) / lower[a * n + a];
            for (std::size_t a = n; a-- > 0;) {
                x[a] -= dot(transposed.data() + a * n + a + 1, x.data() + a + 1, n - a - 1);
                x[a] /= lower[a * n + a];
            }
            for (std::size_t a = 0; a < n; ++a) out[index[a]] = x[a];
        }
    };

    const WeightProblem& problem_;
    std::vector<Doubles> blocks_;
    std::vector<Factor> factors_;
    Mask free_;
};

struct Move {
    Doubles direction;
    int passes;  // over the evidence, forward and back
    double remaining;  // about twice the decrease that remains after it
};

// q(d) = gradient . d + d . curvature d / 2, about theta.
class QuadraticModel {
public:
    QuadraticModel(const WeightProblem& problem, Preconditioner& metric, const Doubles& theta, const Doubles& p)
        : gradient(problem.gradient(theta, p)), problem_(problem), metric_(metric), theta_(theta), p_(p) {}

    const Doubles gradient;

    // About the minimum of q over weights >= 0: until the residual falls by forcing^2 or to the goal.
    //
    // A round solves for the free weights. Those that would become negative are fixed at 0, and the next round solves
    // for the others. If pieces almost repeat each other this may end higher than it began; then rounds take shorter
    // steps, so that q decreases in each.
    Move minimum(double forcing, double goal) {
        const Result bold = descend(forcing, goal, true);
        if (!(bold.value > share * bold.unbounded)) return bold.move;
        Result careful = descend(forcing, goal, false);
        careful.move.passes += bold.move.passes;
        return careful.move;
    }

private:
    struct Result {
        double value, unbounded;  // q where the rounds end, and where the first would if weights could be negative
        Move move;
    };
    struct Step {
        Doubles change, curved;
        int passes;
    };

    Result descend(double forcing, double goal, bool bold) {
        const std::size_t size = problem_.size(), width = problem_.width;
        Doubles lowest(size);
        double largest = 0.0;
        for (std::size_t j = 0; j < size; ++j) {
            lowest[j] = j % width == problem_.pieces ? -infinity : -theta_[j];
            if (j % width < problem_.pieces) largest = std::max(largest, theta_[j]);
        }
        Mask free(size);
        Doubles moved(size, 0.0), curved(size, 0.0);  // d, and the second derivative times d
        bool any_moved = false;
        for (std::size_t j = 0; j < size; ++j) {
            // at 0, or so close that its own diagonal step would end there
            free[j] = !(theta_[j] * metric_.diagonal[j] <= gradient[j] && lowest[j] >= -small * largest);
            if (!free[j]) moved[j] = -theta_[j];
            any_moved |= moved[j] != 0.0;
        }
        int passes = 0;
        if (any_moved) curved = problem_.curvature(moved, p_), passes = 1;
        double relative = 0.0, unbounded = 0.0, remaining = 0.0;
        for (int round = 0; round < rounds; ++round) {
            const Doubles slope = plus(gradient, 1.0, curved);
            metric_.restrict_to(free);
            const double energy = dot(slope, metric_(slope));
            if (round == 0) relative = forcing * forcing * energy;
            if (energy <= (round ? relative : 0.0)) break;
            const Step step = conjugate_gradients(free, slope, relative, goal);
            passes += step.passes;
            Doubles all = plus(moved, 1.0, step.change), all_curved = plus(curved, 1.0, step.curved);
            if (round == 0) unbounded = value(all, all_curved);
            bool inside = true;
            for (std::size_t j = 0; j < size; ++j) inside &= all[j] >= lowest[j];
            if (inside) {
                moved.swap(all), curved.swap(all_curved);
                break;
            }
            const double before = bold ? infinity : value(moved, curved);
            int tries = 0;
            double factor = 1.0;
            bool lower = false;
            while (tries < quarters && !lower) {
                Doubles next = plus(moved, factor, step.change);
                for (std::size_t j = 0; j < size; ++j) next[j] = std::max(next[j], lowest[j]);
                Doubles next_curved = problem_.curvature(next, p_);
                ++tries;
                factor *= 0.25;
                lower = value(next, next_curved) < before;
                if (lower) moved.swap(next), curved.swap(next_curved);
            }
            passes += tries;
            if (!lower) {
                remaining = energy;
                break;
            }
            for (std::size_t j = 0; j < size; ++j) free[j] = free[j] && moved[j] != lowest[j];
        }
        for (std::size_t j = 0; j < size; ++j) {
            const double slope = gradient[j] + curved[j];
            if (!free[j] && slope < 0.0) remaining += slope * slope / metric_.diagonal[j];
        }
        const double reached = value(moved, curved);
        return {reached, unbounded, {std::move(moved), passes, metric_.stretch * remaining}};
    }

    // The step of the free weights to where the slope vanishes, and the second derivative times it.
    Step conjugate_gradients(const Mask& free, const Doubles& slope, double relative, double goal) {
        const std::size_t size = problem_.size();
        Step step{Doubles(size, 0.0), Doubles(size, 0.0), 0};
        Doubles residual(size);
        for (std::size_t j = 0; j < size; ++j) residual[j] = free[j] ? -slope[j] : 0.0;
        Doubles direction = metric_(residual);
        double energy = dot(residual, direction);
        while (step.passes < inner) {
            ++step.passes;
            const Doubles curved = problem_.curvature(direction, p_);
            const double length = energy / dot(direction, curved);
            metric_.stretch = std::max(metric_.stretch, length);
            for (std::size_t j = 0; j < size; ++j) {
                step.change[j] += length * direction[j];
                step.curved[j] += length * curved[j];
                if (free[j]) residual[j] -= length * curved[j];
            }
            const Doubles preconditioned = metric_(residual);
            const double before = energy;
            energy = dot(residual, preconditioned);
            if (energy <= relative || energy * metric_.stretch <= goal) break;
            direction = plus(preconditioned, energy / before, direction);
        }
        return step;
    }

    double value(const Doubles& moved, const Doubles& curved) const {
        return dot(moved, gradient) + 0.5 * dot(moved, curved);
    }

    const WeightProblem& problem_;
    Preconditioner& metric_;
    const Doubles& theta_;
    const Doubles& p_;
};

// Where the search is: weights, their scores, and J.
struct Point {
    Doubles theta, z;  // (scores, width) and (scores, stride)
    double value;
};

inline Point point_at(const WeightProblem& problem, Doubles theta, Doubles z) {
    const double value = problem.loss(z, nullptr) + problem.ridge(theta);
    return {std::move(theta), std::move(z), value};
}

// z = offset + factor * evidence
inline Doubles scores_of(const WeightProblem& problem, double factor, const Doubles& evidence) {
    Doubles z(evidence.size(), 0.0);
    for (std::size_t c = 0; c < problem.scores; ++c)
        for (std::size_t i = 0; i < problem.rows; ++i)
            z[c * problem.stride + i] =
                problem.offset[c * problem.rows + i] + factor * evidence[c * problem.stride + i];
    return z;
}

// All weights at t, or at t/2, t/4, ... while J decreases: correlated pieces are overconfident together, and if every p
// is 0 or 1 there is no curvature.
inline Point first_point(const WeightProblem& problem) {
    Doubles theta(problem.size(), 0.0), evidence(problem.scores * problem.stride, 0.0);
    for (std::size_t c = 0; c < problem.scores; ++c)
        std::fill_n(theta.begin() + static_cast<std::ptrdiff_t>(c * problem.width), problem.pieces, problem.target);
    problem.forward(theta, evidence);
    Point best = point_at(problem, theta, scores_of(problem, 1.0, evidence));
    double factor = 1.0;
    for (int i = 0; i < shrinks; ++i) {
        factor *= 0.5;
        Doubles smaller(theta);
        for (double& weight : smaller) weight *= factor;
        Point next = point_at(problem, std::move(smaller), scores_of(problem, factor, evidence));
        if (!(next.value < best.value)) break;
        best = std::move(next);
    }
    return best;
}

// Moves along a direction, as far as achieves enough of the predicted decrease; false if there is no such step. Scores
// are linear: no trial needs a pass over the evidence.
inline bool line_search(const WeightProblem& problem, Point& at, const Doubles& direction, double decrease) {
    Doubles moved(at.z.size(), 0.0);
    problem.forward(direction, moved);
    double step = 1.0;
    for (int i = 0; i < halvings; ++i) {
        Doubles theta = plus(at.theta, step, direction);
        for (std::size_t j = 0; j < theta.size(); ++j)
            if (j % problem.width < problem.pieces) theta[j] = std::max(theta[j], 0.0);  // rounding
        Point next = point_at(problem, std::move(theta), plus(at.z, step, moved));
        if (next.value <= at.value - enough * step * decrease + rounding * at.value) {
            at = std::move(next);
            return true;
        }
        // the minimum of the parabola through both values and the slope
        const double least = step * step * decrease / (2.0 * (next.value - at.value + step * decrease));
        step = std::isfinite(least) ? std::min(std::max(least, 0.1 * step), 0.5 * step) : 0.1 * step;
    }
    return false;
}

}  // namespace weight_solver

struct WeightSolution {
    Doubles theta;  // (scores, width)
    double value;
    int steps;  // Newton steps
    bool converged;
};

// J ends within tol (1 + J) of its minimum. Each step minimises the quadratic model of J over weights >= 0; a line
// search follows. start: (scores, width), or empty. before_step() may throw, to end the search.
template <class BeforeStep>
WeightSolution solve_weights(const WeightProblem& problem, const Doubles& start, double tol, int most_steps,
                             std::size_t wide, const BeforeStep& before_step) {
    using namespace weight_solver;
    Point at;
    if (start.empty()) {
        at = first_point(problem);
    } else {
        Doubles evidence(problem.scores * problem.stride, 0.0);
        problem.forward(start, evidence);
        at = point_at(problem, start, scores_of(problem, 1.0, evidence));
    }
    std::vector<Preconditioner> metric;  // none at first
    Doubles p(at.z.size(), 0.0);
    bool converged = false;
    int steps = 0, passes = 0;
    double forcing = first_forcing;
    const double finest = std::sqrt(std::max(tol, rounding));  // relative tolerance of the last Newton steps
    while (steps < most_steps && !converged) {
        before_step();
        problem.loss(at.z, p.data());
        if (metric.empty() || passes > stale) {
            metric.clear();
            metric.emplace_back(problem, p, wide);
        }
        QuadraticModel model(problem, metric[0], at.theta, p);
        const double near = std::max(tol, rounding) * (1.0 + at.value);
        const Move move = model.minimum(forcing, finest * finest * near);
        const double decrease = -dot(model.gradient, move.direction);
        passes = move.passes;
        // a small decrease is no proof of convergence if the step was solved roughly
        converged = decrease + move.remaining <= near && forcing * forcing * decrease <= finest * finest * near;
        if (!(decrease > 0.0) || !line_search(problem, at, move.direction, decrease)) {
            converged = decrease + move.remaining <= std::max(near, lowest_decrease * (1.0 + at.value));
            break;
        }
        // Newton is fast only when exact
        forcing = std::min(first_forcing, std::max(finest, std::sqrt(decrease / (1.0 + at.value))));
        ++steps;
    }
    return {std::move(at.theta), at.value, steps, converged};
}

}  // namespace deciban
