// SPDX-License-Identifier: Apache-2.0
// A device engine whose devices are the host: the reference engine after copies, so that what brings data to a device
// can be tested without one. Work on a stream waits until the stream is waited for, so that a buffer that is read,
// changed or freed too early shows. It checks that memory is freed with the size it was allocated with, and counts.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "engine/device_engine.hpp"
#include "engine/engine.hpp"

namespace warpcipher::test {

class HostDeviceEngine final : public DeviceEngine {
 public:
  EngineId id() const override { return EngineId::cuda; }
  std::string_view name() const override { return "host-device"; }
  std::string_view description() const override { return "a device made of host memory"; }
  bool constant_time(const Algorithm&) const override { return false; }
  bool offers(const Algorithm& algorithm) const override { return algorithm.name != lacks; }
  const std::string& unavailable_reason() const override {
    ++asked;
    return reason;
  }
  std::vector<std::string> devices() const override { return {}; }
  std::uint32_t tile_units() const override { return 256; }

  void run(const Plan& plan, std::span<Status> statuses, Stream stream) override {
    ++runs;
    most_messages = std::max(most_messages, plan.messages.size());
    for (const Message& m : plan.messages) {
      if (m.memory != Memory::device) throw Error(Status::engine_failure, "a host message reached the device");
    }
    if (fail_on_run == runs) throw Error(Status::engine_failure, "planted failure");
    ++runs_of_device[queue(stream).device];
    const bool verdicts = std::any_of(plan.messages.begin(), plan.messages.end(), [](const Message& m) {
      return m.algorithm().is_aead() && m.direction == Direction::decrypt && !m.compute_tag;
    });
    // An engine reads IVs and AAD before it returns.
    auto messages = std::make_shared<std::vector<Message>>(plan.messages.begin(), plan.messages.end());
    auto bytes = std::make_shared<std::vector<std::vector<std::uint8_t>>>();
    for (Message& m : *messages) {
      m.iv = bytes->emplace_back(m.iv, m.iv + m.iv_len).data();
      m.aad = bytes->emplace_back(m.aad, m.aad + m.aad_len).data();
    }
    if (verdicts) {
      wait(stream);
      run_now(*messages, statuses);
      return;
    }
    queue(stream).work.push_back([messages, bytes] {
      std::vector<Status> ignored(messages->size());
      run_now(*messages, ignored);
    });
  }

  std::vector<int> devices_for_host_data() const override {
    std::vector<int> all;
    for (int i = 0; i < device_count; ++i) all.push_back(i);
    return all;
  }
  int current_device() const override { return current_; }
  int select_device(int device) override { return std::exchange(current_, device); }

  std::vector<Decision> explain(const BatchShape&, int) const override { return {}; }
  std::vector<Policy> policies(int) const override {
    return {{"form", {"plain", "other"}, form.empty() ? std::string_view("plain") : form, "for tests", "aes-128-ctr"}};
  }
  void choose_policy(int, std::string_view name, std::string_view value) override {
    if (name == "form") form = value == "other" ? "other" : value == "plain" ? "plain" : "";
  }

  Stream create_stream() override {
    ++streams;
    return new Queue{current_, {}};
  }
  void destroy_stream(Stream stream) noexcept override {
    --streams;
    wait(stream);
    delete static_cast<Queue*>(stream);
  }
  void wait(Stream stream) override {
    std::vector<std::function<void()>> work;
    work.swap(queue(stream).work);
    for (const auto& piece : work) piece();
  }
  // Things happen when they are asked for: one at a time, so that several questions have the answer no.
  bool is_done(Stream stream) override {
    std::vector<std::function<void()>>& work = queue(stream).work;
    if (work.empty()) return true;
    const std::function<void()> first = std::move(work.front());
    work.erase(work.begin());
    first();
    return false;
  }
  Status run_one(const Message& message, Stream stream) override {
    Status status = Status::ok;
    run(make_plan({&message, 1}, tile_units()), {&status, 1}, stream);
    return status;
  }
  void run_allocated(const Plan& plan, std::span<Status> statuses, Stream stream) override {
    run(plan, statuses, stream);
  }
  void run_sectors(const Message& first, std::size_t count, Stream stream) override {
    sectors += count;
    std::vector<Message> messages(count, first);
    for (std::size_t i = 0; i < count; ++i) {
      messages[i].in += i * first.in_len;
      messages[i].out += i * first.in_len;
      messages[i].iv += i * first.iv_len;
    }
    std::vector<Status> statuses(count);
    run(make_plan(messages, tile_units()), statuses, stream);
  }
  void take_padding_off(std::span<const Message* const>, std::span<std::uint32_t>, Stream) override {
    throw Error(Status::engine_failure, "a message in host memory was taken for one of the device");
  }
  void* allocate(std::size_t size, Stream stream) override {
    wrong_device_ |= queue(stream).device != current_;
    return take(size);
  }
  void deallocate(void* memory, std::size_t size, std::size_t used, Stream stream) noexcept override {
    wait(stream);
    wipe_and_give(memory, size, used);
  }
  void* allocate_pinned(std::size_t size) override { return take(size); }
  void free_pinned(void* memory, std::size_t size, std::size_t used) noexcept override {
    wipe_and_give(memory, size, used);
  }
  bool is_pinned(const void*, std::size_t) const override { return all_pinned; }
  AddressRange find_page_locked(const void* memory) const override {
    if (!all_pinned) return {};
    for (const AddressRange& range : reached) {
      if (range.holds(memory, 1)) return range;
    }
    return {};
  }
  void copy_many(const DeviceCopy* copies, std::size_t count, Pace pace, Stream stream) override {
    ++lists;
    gentle_lists += pace == Pace::gentle ? 1 : 0;
    queue(stream).work.push_back([=, this] {
      for (std::size_t i = 0; i < count; ++i) {
        copy(copies[i].to, copies[i].from, copies[i].len);
        listed_bytes += copies[i].len;
      }
    });
  }
  void copy_all_to_device(std::span<const DeviceCopy> copies, Stream stream) override {
    for (const DeviceCopy& c : copies) copy_to_device(c.to, c.from, c.len, stream);
  }
  void copy_all_to_host(std::span<const DeviceCopy> copies, Stream stream) override {
    for (const DeviceCopy& c : copies) copy_to_host(c.to, c.from, c.len, stream);
  }
  void copy_to_device(void* device, const void* host, std::size_t size, Stream stream) override {
    ++copies_to_device;
    queue(stream).work.push_back([=] { copy(device, host, size); });
  }
  void copy_to_host(void* host, const void* device, std::size_t size, Stream stream) override {
    queue(stream).work.push_back([=] { copy(host, device, size); });
  }
  void copy_rows_to_host(void* host, const void* rows, std::size_t step, std::size_t len, std::size_t count,
                         Stream stream) override {
    for (std::size_t i = 0; i < count; ++i) {
      copy_to_host(static_cast<char*>(host) + len * i, static_cast<const char*>(rows) + step * i, len, stream);
    }
  }
  void copy_on_device(void* to, const void* from, std::size_t size, Stream stream) override {
    queue(stream).work.push_back([=] { copy(to, from, size); });
  }
  void clear(void* device, std::size_t size, Stream stream) override {
    queue(stream).work.push_back([=] { std::memset(device, 0, size); });
  }

  // The device reaches that many bytes of the caller's.
  void reach(const void* memory, std::size_t len) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    reached.push_back({begin, begin + len});
  }

  std::string reason;      // why it cannot run
  mutable int asked = 0;   // whether it can
  std::string_view lacks;  // an algorithm that it does not offer
  int device_count = 1;
  std::string_view form;              // chosen
  bool all_pinned = false;            // the caller's memory
  std::vector<AddressRange> reached;  // allocations of it that the device reaches itself
  int runs = 0;
  int fail_on_run = 0;
  int streams = 0;
  int copies_to_device = 0;
  int lists = 0;                 // calls of copy_many
  int gentle_lists = 0;          // of them at Pace::gentle
  std::size_t listed_bytes = 0;  // that those copied
  std::size_t sectors = 0;       // that came in rows
  std::map<int, int> runs_of_device;
  std::size_t most_messages = 0;
  std::size_t most_allocated = 0;
  std::size_t most_wiped = 0;  // of one buffer, by the engine
  bool balanced() const { return memory_.empty() && streams == 0 && !wrong_size_ && !wrong_device_ && !unwiped_; }

 private:
  static constexpr std::uint8_t fresh = 0xee;

  struct Queue {
    int device;
    std::vector<std::function<void()>> work;
  };

  static Queue& queue(Stream stream) { return *static_cast<Queue*>(stream); }

  // Unlike memcpy this takes null pointers, which come with sizes of 0.
  static void copy(void* to, const void* from, std::size_t size) {
    std::copy_n(static_cast<const std::uint8_t*>(from), size, static_cast<std::uint8_t*>(to));
  }

  static void run_now(std::span<const Message> messages, std::span<Status> statuses) {
    reference_engine().run(make_plan(messages, 256), statuses, nullptr);
  }

  void* take(std::size_t size) {
    std::vector<std::uint8_t> bytes(size, fresh);
    void* pointer = bytes.data();
    memory_.emplace(pointer, std::move(bytes));
    allocated_ += size;
    most_allocated = std::max(most_allocated, allocated_);
    return pointer;
  }
  // Memory that was not said to be used must be as it was, or wiped already.
  void wipe_and_give(void* memory, std::size_t size, std::size_t used) noexcept {
    std::memset(memory, 0, used);
    most_wiped = std::max(most_wiped, used);
    const auto* const bytes = static_cast<const std::uint8_t*>(memory);
    unwiped_ |= std::any_of(bytes, bytes + size, [](std::uint8_t byte) { return byte != 0 && byte != fresh; });
    give(memory, size);
  }
  void give(void* pointer, std::size_t size) noexcept {
    const auto found = memory_.find(pointer);
    if (found == memory_.end() || found->second.size() != size) {
      wrong_size_ = true;
      return;
    }
    allocated_ -= size;
    memory_.erase(found);
  }

  std::map<void*, std::vector<std::uint8_t>> memory_;
  std::size_t allocated_ = 0;
  int current_ = 0;
  bool wrong_size_ = false;
  bool wrong_device_ = false;
  bool unwiped_ = false;
};

}  // namespace warpcipher::test
