// SPDX-License-Identifier: Apache-2.0
#include "dispatch/run.hpp"

#include <optional>
#include <vector>

#include "core/error.hpp"
#include "core/thread_pool.hpp"
#include "core/wipe.hpp"
#include "dispatch/select.hpp"
#include "engine/device_engine.hpp"
#include "flow/host_transfer.hpp"
#include "flow/share.hpp"
#include "message/to_columns.hpp"

namespace warpcipher {
namespace {

// Results that a core fills in at a time. For fewer, waking another core would take longer than the work.
constexpr std::size_t results_at_once = 16384;

// The number of padding bytes at the end of a block (RFC 5652, section 6.3), or 0 when it is not padding. It reads all
// bytes of the block, so the time does not reveal where they differ.
std::size_t padding_len(const std::uint8_t* block, std::size_t block_len) {
  const std::uint32_t n = block[block_len - 1];
  std::uint32_t bad = n == 0 || n > block_len;
  for (std::size_t i = 0; i < block_len; ++i) {
    const auto in_padding = static_cast<std::uint32_t>(i + n >= block_len);
    bad |= in_padding * static_cast<std::uint32_t>(block[i] ^ n);
  }
  return bad == 0 ? n : 0;
}

bool takes_padding_off(const Message& message) {
  return message.padding == Padding::pkcs7 && message.direction == Direction::decrypt;
}

// The result of a message with this many bytes of padding; 0: its padding is wrong.
Result without_padding(const Message& message, std::size_t padding) {
  if (padding == 0) return {Status::invalid_padding, 0};
  return {Status::ok, message.in_len - padding};
}

// Checks the padding in the last decrypted block; wipes the text when the padding is wrong.
Result take_padding_off(const Message& message) {
  const std::size_t block_len = message.algorithm().block_len();
  const std::size_t padding = padding_len(message.out + message.in_len - block_len, block_len);
  if (padding == 0) secure_wipe(message.out, message.in_len);
  return without_padding(message, padding);
}

// The same for messages in device memory, those that are padded and did not fail.
void take_padding_off(DeviceEngine& device, std::span<const Message> messages, std::span<Result> results,
                      Stream stream) {
  std::vector<const Message*> padded;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (takes_padding_off(messages[i]) && results[i].status == Status::ok) padded.push_back(&messages[i]);
  }
  if (padded.empty()) return;
  std::vector<std::uint32_t> lengths(padded.size());
  device.take_padding_off(padded, lengths, stream);
  for (std::size_t k = 0; k < padded.size(); ++k) {
    results[static_cast<std::size_t>(padded[k] - messages.data())] = without_padding(*padded[k], lengths[k]);
  }
}

// Runs many messages in device memory as columns, which the device checks and plans. False: the host must run them;
// nothing has been written then.
bool run_as_columns(std::string_view engine_name, std::span<const Message> messages, std::span<Result> results,
                    Stream stream) {
  if (messages.size() < 2 || messages[0].memory != Memory::device) return false;
  DeviceEngine& device = select_device_engine(engine_name);
  if (messages.size() < device.least_columns()) return false;
  const std::optional<MessageColumns> made = MessageColumns::make(messages);
  if (!made) return false;
  require_offered(device, messages[0].algorithm());
  const Columns columns = made->columns();
  const std::span<const std::uint32_t> order = made->order();
  std::vector<Result> column_results(order.size());
  const std::span<Result> outcome = order.empty() ? results : std::span<Result>(column_results);
  try {
    if (!device.run_columns(columns, outcome, stream)) return false;
  } catch (const Error& error) {
    if (error.status() == Status::invalid_argument) return false;  // the host names the message
    throw;
  }
  const std::size_t tag_len = columns.direction == Direction::encrypt ? columns.tag_len : 0;
  for (std::size_t i = 0; i < outcome.size(); ++i) {
    if (outcome[i].status == Status::ok) outcome[i].written -= tag_len;
    if (!order.empty()) results[order[i]] = outcome[i];
  }
  return true;
}

// One message where it lies, without the arrays of a batch.
Result run_one(Engine& engine, const Message& message, Stream stream) {
  Result result{engine.run_one(message, stream), 0};
  if (result.status != Status::ok) return result;
  result.written = message.output_len();
  if (!takes_padding_off(message)) return result;
  if (message.memory == Memory::host) return take_padding_off(message);
  take_padding_off(static_cast<DeviceEngine&>(engine), {&message, 1}, {&result, 1}, stream);
  return result;
}

}  // namespace

void run(std::string_view engine_name, std::span<const Message> messages, std::span<Result> results, Stream stream) {
  if (messages.size() != results.size()) {
    throw Error(Status::invalid_argument, "one result is needed for each message: got " +
                                              std::to_string(results.size()) + " for " +
                                              std::to_string(messages.size()));
  }
  if (run_as_columns(engine_name, messages, results, stream)) return;
  check_messages(messages);
  const Selection selection = select_engines(engine_name, messages);
  Engine& engine = *selection.engine;
  if (messages.empty()) return;
  if (messages.size() == 1 && messages[0].memory == engine.memory() && selection.cpu == nullptr) {
    results[0] = run_one(engine, messages[0], stream);
    return;
  }
  std::vector<Status> statuses(messages.size(), Status::ok);
  if (selection.cpu != nullptr) {
    auto& device = static_cast<DeviceEngine&>(engine);
    run_on_both(device, *selection.cpu, messages, statuses, device_len(messages, selection.cpu_share));
  } else if (engine.memory() == Memory::device && messages[0].memory == Memory::host) {
    run_through_device(static_cast<DeviceEngine&>(engine), messages, statuses);
  } else {
    engine.run(make_plan(messages, engine.tile_units()), statuses, stream);
  }
  const bool on_device = messages[0].memory == Memory::device;
  ThreadPool::instance().parallel_for(messages.size(), results_at_once, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Message& message = messages[i];
      if (statuses[i] != Status::ok) {
        results[i] = {statuses[i], 0};
      } else if (takes_padding_off(message) && !on_device) {
        results[i] = take_padding_off(message);
      } else {
        results[i] = {Status::ok, message.output_len()};
      }
    }
  });
  if (on_device) take_padding_off(static_cast<DeviceEngine&>(engine), messages, results, stream);
}

Status first_failure(std::span<const Result> results) {
  for (const Result& result : results) {
    if (result.status != Status::ok) return result.status;
  }
  return Status::ok;
}

}  // namespace warpcipher
