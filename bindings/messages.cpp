// SPDX-License-Identifier: Apache-2.0
// A batch under construction: messages with the buffers they borrow, and one run for all of them, here or in the
// background.
#include <nanobind/stl/shared_ptr.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bind.hpp"
#include "dispatch/batch.hpp"
#include "dispatch/run.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "operand.hpp"
#include "run_one.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// The objects that one message borrows. Held until the run is over.
struct Entry : Operands {
  Entry(nb::handle_t<Key> key, nb::handle data, nb::handle out_object, nb::handle iv_object, nb::handle aad_object)
      : Operands(data, out_object, iv_object, aad_object),
        objects{nb::borrow(key), nb::borrow(data), nb::borrow(out_object), nb::borrow(iv_object),
                nb::borrow(aad_object)} {}

  std::vector<nb::object> objects;
};

// One (status, bytes written) for each message.
nb::list outcomes_of(const std::vector<Message>& messages, const std::vector<Result>& results) {
  nb::list list;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const bool sealed = results[i].status == Status::ok && messages[i].direction == Direction::encrypt;
    list.append(nb::make_tuple(results[i].status, results[i].written + (sealed ? messages[i].tag_len : 0)));
  }
  return list;
}

// A batch in the background. Its thread keeps it alive, and takes the GIL once: to release what the messages borrow,
// and to call `ended`.
class StartedBatch {
 public:
  StartedBatch(std::string_view engine, std::deque<Entry> entries, std::vector<Message> messages, nb::object ended)
      : entries_(std::move(entries)),
        messages_(std::move(messages)),
        ended_(std::move(ended)),
        batch_(std::string(engine)) {
    for (const Message& message : messages_) batch_.add(message);
  }
  StartedBatch(const StartedBatch&) = delete;
  StartedBatch& operator=(const StartedBatch&) = delete;

  static void start(const std::shared_ptr<StartedBatch>& self, Stream stream) {
    const int device = self->entries_.empty() ? host_device : self->entries_.front().in.device();
    const GilReleased released;  // a driver may have to start
    const DeviceScope scope(device);
    self->batch_.start(stream, [self](const std::vector<Result>* results) { self->tell(results); });
  }

  // Throws the error of the run. The status of a message is not an error here.
  void wait() {
    const GilReleased released;
    batch_.wait();
  }
  bool is_done() const { return batch_.is_done(); }
  bool in_child() const { return batch_.in_child(); }

 private:
  void tell(const std::vector<Result>* results) noexcept {
    const GilHeld held;
    // Whatever fails, Python objects are released and waiting threads are notified here.
    std::deque<Entry> entries = std::move(entries_);
    const nb::object ended = std::move(ended_);
    nb::object outcomes = nb::none();
    try {
      if (results != nullptr) outcomes = outcomes_of(messages_, *results);
    } catch (nb::python_error& raised) {
      raised.discard_as_unraisable("the results of a warpcipher.BatchRun");
    }
    try {
      sheltered([&] {
        entries.clear();
        ended(outcomes);
      });
    } catch (nb::python_error& raised) {
      raised.discard_as_unraisable("the end of a warpcipher.BatchRun");
    }
  }

  std::deque<Entry> entries_;
  const std::vector<Message> messages_;
  nb::object ended_;
  Batch batch_;  // last: its destructor waits for the thread, which uses the others
};

class Messages {
 public:
  Messages() = default;
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  // Checks one message by itself, and adds it. Returns the object that will hold its text: `out`, or a new bytes object
  // whose content is undefined before the run.
  nb::object add(nb::handle_t<Key> key_object, bool decrypt, bool padded, nb::handle data, nb::handle out,
                 nb::handle iv, nb::handle aad, nb::handle tag_length) {
    const Key& key = nb::cast<const Key&>(key_object);
    const Request request = make_request(key, decrypt, padded, tag_length);
    entries_.emplace_back(key_object, data, out, iv, aad);
    try {
      return take_up(request, entries_.back(), out);
    } catch (...) {
      entries_.pop_back();
      throw;
    }
  }

  nb::list run(std::string_view engine, std::uintptr_t stream) {
    std::vector<Result> results(messages_.size());
    const auto pointer = reinterpret_cast<Stream>(stream);
    const int device = entries_.empty() ? host_device : entries_.front().in.device();
    {
      const GilReleased released;
      const DeviceScope scope(device);
      warpcipher::run(engine, messages_, results, pointer);
    }
    if (device != host_device) keep(device, pointer);
    return outcomes_of(messages_, results);
  }

  // ended: called with the outcomes, or with None if no message was run. Afterwards there are no messages here.
  std::shared_ptr<StartedBatch> start(std::string_view engine, std::uintptr_t stream, nb::object ended) {
    auto batch = std::make_shared<StartedBatch>(engine, std::exchange(entries_, {}), std::exchange(messages_, {}),
                                                std::move(ended));
    StartedBatch::start(batch, reinterpret_cast<Stream>(stream));
    return batch;
  }

  std::size_t size() const { return messages_.size(); }

 private:
  nb::object take_up(const Request& request, Entry& entry, nb::handle out) {
    const Operand& first = entries_.front().in;
    if (entry.in.device() != first.device()) {
      refuse("data lies in ", place(entry.in), " and the first message's in ", place(first),
             ": run them in separate batches");
    }
    nb::object result = nb::borrow(out);
    std::uint8_t* data = entry.out.data();
    std::size_t size = entry.out.size();
    if (!out.is_none()) {
      check_places(entry.in, entry.out);
    } else if (entry.in.device() == host_device) {
      size = output_len(request, entry.in.size());
      result = new_bytes(size);
      data = bytes_of(result);
      entry.objects.push_back(result);
    } else {
      throw nb::value_error("out is needed for data on a GPU");
    }
    const Message message = make_message(request, entry.in, data, size, entry.iv, entry.aad);
    check_messages({&message, 1});
    messages_.push_back(message);
    return result;
  }

  void keep(int device, Stream stream) {
    std::vector<nb::object> all;
    for (Entry& entry : entries_) all.insert(all.end(), entry.objects.begin(), entry.objects.end());
    keep_until_done(std::move(all), device, stream);
  }

  std::deque<Entry> entries_;
  std::vector<Message> messages_;
};

}  // namespace

void bind_messages(nb::module_& m) {
  nb::class_<StartedBatch>(m, "StartedBatch",
                           "A batch in the background. python/warpcipher/batch_run.py is the public face.")
      .def("wait", &StartedBatch::wait, "Waits until it is done; raises the error of the run.")
      .def_prop_ro("done", &StartedBatch::is_done, "Whether it has ended.")
      .def_prop_ro("in_child", &StartedBatch::in_child, "Whether it was started before a fork, by the parent.");
  nb::class_<Messages>(m, "Messages", "Messages to be run together.")
      .def(nb::init<>())
      .def("add", &Messages::add, nb::arg("key"), nb::arg("decrypt"), nb::arg("padded"), nb::arg("data"),
           nb::arg("out").none(), nb::arg("iv").none(), nb::arg("aad").none(), nb::arg("tag_length").none(),
           nb::sig("def add(self, key: Key, decrypt: bool, padded: bool, data: object, out: object, iv: object, aad: "
                   "object, tag_length: int) -> typing.Any"),
           "Takes a message up; returns `out`, or the bytes object that will hold the text.")
      .def("run", &Messages::run, nb::arg("engine"), nb::arg("stream"),
           nb::sig("def run(self, engine: str, stream: int) -> list[tuple[Status, int]]"),
           "Runs them all; (status, bytes written) for each.")
      .def(
          "start", &Messages::start, nb::arg("engine"), nb::arg("stream"), nb::arg("ended"),
          nb::sig("def start(self, engine: str, stream: int, ended: collections.abc.Callable[[list[tuple[Status, int]] "
                  "| None], None]) -> StartedBatch"),
          "Runs them all on another thread, which calls `ended` with what `run` returns, or None where it fails.")
      .def("__len__", &Messages::size);
}

}  // namespace warpcipher::python
