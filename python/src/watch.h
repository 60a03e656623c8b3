#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace attsvm::python {

namespace nb = nanobind;

/// Connects long work with Python: calls the user's callback, updates the progress bar, and checks for Ctrl-C.
/// Constructed and destroyed with the GIL held; used without it, by the thread that constructed it.
class Watch {
 public:
  /// `callback` is called every time and stops the work by returning true; `bar` is called occasionally. Either may be
  /// None.
  Watch(nb::object callback, nb::object bar) : callback_(std::move(callback)), bar_(std::move(bar)) {}

  /// Whether to stop. state() makes the Python tuple that callback and bar are called with.
  template <class State>
  bool stop(State&& state) {
    const bool due = is_due();
    if ((callback_.is_none() && !due) || stopped_) return stopped_;
    return ask([&] {
      if (due) {
        look_for_signals();
        if (!bar_.is_none()) bar_(*state());
      }
      if (!callback_.is_none() && nb::cast<bool>(nb::bool_(callback_(*state())))) stopped_ = true;
    });
  }

  /// Whether to stop, without calling callback or bar: for checks between two calls of stop().
  bool interrupt() {
    return stopped_ || !is_due() ? stopped_ : ask([&] { look_for_signals(); });
  }

  /// Runs the work on its own thread and watches from this one, for work that uses several threads: work(stop) checks
  /// the flag. state() as above.
  template <class Work, class State>
  void beside(Work&& work, State&& state) {
    std::atomic<bool> flag = false;
    bool done = false;
    std::mutex mutex;
    std::condition_variable finished;
    std::exception_ptr error;
    std::jthread worker([&] {
      try {
        work(flag);
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      done = true;
      finished.notify_one();
    });
    for (std::unique_lock lock(mutex); !finished.wait_for(lock, kPause, [&] { return done; });) {
      lock.unlock();
      flag = stop(state);
      lock.lock();
    }
    worker.join();
    if (error) std::rethrow_exception(error);
  }

  bool stopped() const { return stopped_; }
  bool interrupted() const { return interrupted_; }  ///< by Ctrl-C
  /// Rethrows an exception of the callback.
  void finish() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static constexpr std::chrono::milliseconds kPause{50};

  bool is_due() const { return std::chrono::steady_clock::now() >= next_; }
  void look_for_signals() {
    next_ = std::chrono::steady_clock::now() + kPause;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  template <class Question>
  bool ask(Question&& question) {
    const nb::gil_scoped_acquire lock;
    try {
      question();
    } catch (nb::python_error& error) {
      stopped_ = true;
      interrupted_ = error.matches(PyExc_KeyboardInterrupt);
      if (!interrupted_) error_ = std::current_exception();
    }
    return stopped_;
  }

  nb::object callback_, bar_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + kPause;
  bool stopped_ = false, interrupted_ = false;
  std::exception_ptr error_;
};

}  // namespace attsvm::python
