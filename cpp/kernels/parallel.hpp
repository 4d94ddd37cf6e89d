// Threads are joined before return, so a fork is always safe.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace deciban {

inline std::atomic<unsigned>& thread_limit() {
    static std::atomic<unsigned> limit{0};  // 0: all cores
    return limit;
}

inline unsigned thread_count(std::size_t work, std::size_t min_work_per_thread) {
    unsigned most = thread_limit().load();
    if (most == 0) most = std::max(1u, std::thread::hardware_concurrency());
    const std::size_t useful = std::max<std::size_t>(1, work / std::max<std::size_t>(1, min_work_per_thread));
    return static_cast<unsigned>(std::min<std::size_t>(most, useful));
}

// Calls body(part, begin, end) for `parts` contiguous ranges of [0, n); rethrows the first exception.
template <class Body>
void parallel(std::size_t n, unsigned parts, const Body& body) {
    if (parts <= 1) {
        body(0u, std::size_t{0}, n);
        return;
    }
    std::vector<std::exception_ptr> errors(parts);
    const auto run = [&](unsigned part) {
        try {
            body(part, n * part / parts, n * (part + 1) / parts);
        } catch (...) {
            errors[part] = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(parts - 1);
    for (unsigned part = 1; part < parts; ++part) threads.emplace_back(run, part);
    run(0);
    for (auto& thread : threads) thread.join();
    for (const auto& error : errors)
        if (error) std::rethrow_exception(error);
}

}  // namespace deciban
