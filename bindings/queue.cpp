// SPDX-License-Identifier: Apache-2.0
// The queue for Python: jobs that hold the Python objects they borrow, and futures that the queue's workers settle.
//
// Workers take the GIL once for each payload, to settle all its futures, and never hold the queue's lock meanwhile. So
// a thread that holds the GIL may take that lock.
#include "queue/queue.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "bind.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "operand.hpp"
#include "run_one.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// The objects that a job borrows from Python until it is settled. Made and released with the GIL held.
struct Held : Operands {
  Held(nb::handle key_object, nb::handle data, nb::handle out_object, nb::handle iv_object, nb::handle aad_object)
      : Operands(data, out_object, iv_object, aad_object), key(nb::borrow(key_object)) {}

  nb::object key;
  nb::object future;
  nb::object bytes;   // made for the result without an `out`
  nb::object finish;  // with `out`: makes the result of the number of bytes written
};

class PythonJob final : public Job {
 public:
  PythonJob(const Message& message, std::unique_ptr<Held> held) : Job(message), held_(std::move(held)) {}

  // Objects are still held only in the child of a fork, where no worker settles the job. They are not released: the
  // thread may not hold the GIL.
  ~PythonJob() override { static_cast<void>(held_.release()); }

  // Releases all objects, and settles the future. The GIL is held.
  void settle() {
    const nb::object future = std::move(held_->future);
    Status status = result().status;
    std::string text = failure();
    nb::object result, error;
    if (state() == State::done && status == Status::ok) {
      // The library of the caller's `out` makes the result. If it raises anything, that is the outcome.
      try {
        result = make_result();
      } catch (const nb::python_error& raised) {
        error = nb::borrow(raised.value());
      } catch (const std::bad_alloc& thrown) {
        status = Status::out_of_memory;
        text = thrown.what();
      } catch (const std::exception& thrown) {
        status = Status::engine_failure;
        text = thrown.what();
      }
    }
    held_.reset();
    const bool told = tell([&] {
      if (state() == State::cancelled) {
        future.attr("_take_back")();
      } else if (error.is_valid()) {
        future.attr("_break")(error);
      } else if (status != Status::ok) {
        future.attr("_fail")(status, text);
      } else {
        future.attr("set_result")(result);
      }
    });
    if (!told) tell([&] { future.attr("_ended_before")(); });
  }

  // Releases all objects. The GIL is held.
  void drop() { held_.reset(); }

 private:
  // False if the future refused, because its user has already settled it.
  template <class Call>
  static bool tell(const Call& call) {
    try {
      sheltered(call);
      return true;
    } catch (nb::python_error& raised) {
      raised.discard_as_unraisable("a future of warpcipher.Queue");
      return false;
    }
  }

  nb::object make_result() {
    const std::size_t tag_len = message().direction == Direction::encrypt ? message().tag_len : 0;
    const std::size_t written = result().written + tag_len;
    if (held_->finish.is_none()) return shortened(std::move(held_->bytes), written);
    return sheltered([&] { return held_->finish(written); });
  }

  std::unique_ptr<Held> held_;
};

// The object by which Python holds a job.
struct JobHandle {
  std::shared_ptr<PythonJob> job;
};

[[noreturn]] void throw_full_error(std::size_t limit) {
  const nb::object full = nb::module_::import_("queue").attr("Full");
  PyErr_SetString(
      full.ptr(),
      ("the queue's memory limit of " + std::to_string(limit) + " bytes left no room for the message in time").c_str());
  throw nb::python_error();
}

[[noreturn]] void throw_closed() {
  PyErr_SetString(PyExc_RuntimeError, "the queue is closed: make a new one for more messages");
  throw nb::python_error();
}

class PythonQueue {
 public:
  PythonQueue(const std::string& engine, std::size_t max_bytes, std::size_t max_messages, std::int64_t max_delay_us,
              std::size_t memory_limit, std::size_t max_in_flight)
      : queue_(make(engine,
                    {max_bytes, max_messages, std::chrono::microseconds(max_delay_us), memory_limit, max_in_flight})) {}

  PythonQueue(const PythonQueue&) = delete;
  PythonQueue& operator=(const PythonQueue&) = delete;
  ~PythonQueue() {
    if (!queue_.ended() && !queue_.is_worker()) close(false);
  }

  // timeout_us < 0: for ever.
  JobHandle submit(nb::handle future, nb::handle_t<Key> key_object, bool decrypt, bool padded, nb::handle data,
                   nb::handle out, nb::handle iv, nb::handle aad, nb::handle tag_length, nb::handle finish,
                   nb::handle submitter, std::int64_t timeout_us) {
    const Key& key = nb::cast<const Key&>(key_object);
    const Request request = make_request(key, decrypt, padded, tag_length);
    auto held = std::make_unique<Held>(key_object, data, out, iv, aad);
    held->future = nb::borrow(future);
    held->finish = nb::borrow(finish);
    std::uint8_t* text = held->out.data();
    std::size_t size = held->out.size();
    if (out.is_none()) {
      size = output_len(request, held->in.size());
      held->bytes = new_bytes(size);
      text = bytes_of(held->bytes);
    }
    const Message message = make_message(request, held->in, text, size, held->iv, held->aad);
    const auto job = std::make_shared<PythonJob>(message, std::move(held));
    try {
      hand_over(job, submitter.is_none() ? this_thread() : nb::cast<std::uint64_t>(submitter), timeout_us);
    } catch (...) {
      job->drop();
      throw;
    }
    return {job};
  }

  bool cancel(const JobHandle& handle) {
    if (!queue_.cancel(*handle.job)) return false;
    handle.job->drop();
    return true;
  }

  std::size_t max_in_flight() const { return queue_.limits().max_in_flight; }

  void flush() { queue_.flush(); }
  void stop() { queue_.stop(); }
  bool ended() const { return queue_.ended(); }

  void close(bool cancel_waiting) {
    const GilReleased released;  // the workers need it to settle
    queue_.close(cancel_waiting);
  }

  nb::dict statistics() const {
    const QueueStatistics now = queue_.statistics();
    nb::dict all, reasons;
    for (std::size_t i = 0; i < flush_reason_count; ++i) {
      const std::string_view name = flush_reason_names[i];
      reasons[nb::str(name.data(), name.size())] = now.reasons[i];
    }
    all["payloads"] = now.payloads;
    all["messages"] = now.messages;
    all["bytes"] = now.bytes;
    all["failed"] = now.failed_jobs;
    all["cancelled"] = now.cancelled_jobs;
    all["refused"] = refused_;
    all["reasons"] = reasons;
    all["waiting"] = now.waiting_jobs;
    all["memory_used"] = now.memory_used;
    all["most_memory_used"] = now.most_memory_used;
    return all;
  }

 private:
  static Queue make(const std::string& engine, const QueueLimits& limits) {
    const GilReleased released;  // a driver may have to start
    return Queue(engine, limits, [](std::span<const std::shared_ptr<Job>> jobs) {
      const GilHeld held;
      for (const auto& job : jobs) static_cast<PythonJob&>(*job).settle();
    });
  }

  static std::uint64_t this_thread() { return static_cast<std::uint64_t>(pthread_self()); }

  // Most calls find room at once, and keep the GIL. A call that waits checks for signals regularly, so that an
  // interrupt ends it.
  void hand_over(const std::shared_ptr<PythonJob>& job, std::uint64_t submitter, std::int64_t timeout_us) {
    using std::chrono::microseconds;
    constexpr std::int64_t signal_interval_us = 500'000;
    Queue::Admission admission = queue_.submit(job, submitter, microseconds(0));
    const auto start = std::chrono::steady_clock::now();
    while (admission == Queue::Admission::full) {
      std::int64_t slice = signal_interval_us;
      if (timeout_us >= 0) {
        const auto waited = std::chrono::steady_clock::now() - start;
        slice = std::min(slice, timeout_us - std::chrono::duration_cast<microseconds>(waited).count());
      }
      if (slice <= 0 || queue_.is_worker()) {
        ++refused_;
        throw_full_error(queue_.limits().memory_limit);
      }
      {
        const GilReleased released;
        admission = queue_.submit(job, submitter, microseconds(slice));
      }
      if (admission == Queue::Admission::full && PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    if (admission == Queue::Admission::closed) throw_closed();
  }

  std::uint64_t refused_ = 0;  // counted here: one call of submit may try more than once
  Queue queue_;
};

// Raises the exception for a status and its text.
void raise_failure(Status status, const std::string& text) {
  if (text.empty()) throw_status(status, "");
  throw Error(status, text);
}

}  // namespace

void bind_queue(nb::module_& m) {
  nb::class_<JobHandle>(m, "QueueJob", "A message in a queue.")
      .def_prop_ro(
          "launched", [](const JobHandle& self) { return self.job->state() != Job::State::waiting; },
          "Whether it has been launched, or cancelled.");
  nb::class_<PythonQueue>(m, "Queue", "Combines messages into payloads. python/warpcipher/queue.py is the public face.")
      .def(nb::init<std::string, std::size_t, std::size_t, std::int64_t, std::size_t, std::size_t>(), nb::arg("engine"),
           nb::arg("max_bytes"), nb::arg("max_messages"), nb::arg("max_delay_us"), nb::arg("memory_limit"),
           nb::arg("max_in_flight"))
      .def("submit", &PythonQueue::submit, nb::arg("future"), nb::arg("key"), nb::arg("decrypt"), nb::arg("padded"),
           nb::arg("data"), nb::arg("out").none(), nb::arg("iv").none(), nb::arg("aad").none(),
           nb::arg("tag_length").none(), nb::arg("finish").none(), nb::arg("submitter").none(), nb::arg("timeout_us"),
           nb::sig("def submit(self, future: object, key: Key, decrypt: bool, padded: bool, data: object, out: object, "
                   "iv: object, aad: object, tag_length: int, finish: object, submitter: int | None, timeout_us: int) "
                   "-> QueueJob"),
           "Hands a message over; a negative timeout waits for ever.")
      .def("cancel", &PythonQueue::cancel, nb::arg("job"), "Takes a message back; false when it has been launched.")
      .def("flush", &PythonQueue::flush, "Launches the waiting messages.")
      .def("stop", &PythonQueue::stop, "Takes no more messages; does not wait.")
      .def("close", &PythonQueue::close, nb::arg("cancel_waiting"), "Stops, and waits until all is done.")
      .def_prop_ro("max_in_flight", &PythonQueue::max_in_flight, "Payloads running at once.")
      .def_prop_ro("ended", &PythonQueue::ended, "Whether all is done and the workers have ended.")
      .def("statistics", &PythonQueue::statistics, nb::sig("def statistics(self) -> dict[str, typing.Any]"),
           "Counts of the queue's work.");
  m.def("raise_failure", &raise_failure, nb::arg("status"), nb::arg("text"),
        nb::sig("def raise_failure(status: Status, text: str) -> typing.NoReturn"),
        "Raises the exception that a job's status stands for.");
}

}  // namespace warpcipher::python
