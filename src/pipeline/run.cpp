// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run.hpp"

#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "core/wipe.hpp"
#include "engine/device_engine.hpp"
#include "pipeline/select.hpp"
#include "pipeline/share.hpp"
#include "pipeline/staging.hpp"

namespace warpcipher {
namespace {

// The number of padding bytes at the end of a block (RFC 5652, section 6.3), or 0 when it is not padding. All bytes of
// the block are looked at, so the time does not tell where they differ.
std::size_t padding_len(const std::uint8_t* block, std::size_t block_len) {
  const std::uint32_t n = block[block_len - 1];
  std::uint32_t bad = n == 0 || n > block_len;
  for (std::size_t i = 0; i < block_len; ++i) {
    const auto in_padding = static_cast<std::uint32_t>(i + n >= block_len);
    bad |= in_padding * static_cast<std::uint32_t>(block[i] ^ n);
  }
  return bad == 0 ? n : 0;
}

// Looks at the last decrypted block and tells how much of the text is left; wipes the text when it is not padded.
Result take_padding_off(const Message& message, Engine& engine, Stream stream) {
  const std::size_t block_len = message.algorithm().block_len();
  std::uint8_t last[16] = {};
  const std::uint8_t* end = message.out + message.in_len - block_len;
  DeviceEngine* device = message.memory == Memory::device ? static_cast<DeviceEngine*>(&engine) : nullptr;
  if (device != nullptr) {
    device->copy_to_host(last, end, block_len, stream);
    device->wait(stream);
  } else {
    std::memcpy(last, end, block_len);
  }
  const std::size_t padding = padding_len(last, block_len);
  secure_wipe(last, sizeof last);
  if (padding != 0) return {Status::ok, message.in_len - padding};
  if (device != nullptr) {
    device->clear(message.out, message.in_len, stream);
  } else {
    secure_wipe(message.out, message.in_len);
  }
  return {Status::invalid_padding, 0};
}

}  // namespace

void run(std::string_view engine_name, std::span<const Message> messages, std::span<Result> results, Stream stream) {
  if (messages.size() != results.size()) {
    throw Error(Status::invalid_argument, "one result is needed for each message: got " +
                                              std::to_string(results.size()) + " for " +
                                              std::to_string(messages.size()));
  }
  check_messages(messages);
  const Selection selection = select_engines(engine_name, messages);
  Engine& engine = *selection.engine;
  if (messages.empty()) return;
  std::vector<Status> statuses(messages.size(), Status::ok);
  if (selection.beside != nullptr) {
    auto& device = static_cast<DeviceEngine&>(engine);
    run_on_both(device, *selection.beside, messages, statuses, device_len(messages, selection.cpu_share));
  } else if (engine.memory() == Memory::device && messages[0].memory == Memory::host) {
    run_through_device(static_cast<DeviceEngine&>(engine), messages, statuses);
  } else {
    engine.run(make_plan(messages, engine.tile_units()), statuses, stream);
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    if (statuses[i] != Status::ok) {
      results[i] = {statuses[i], 0};
    } else if (message.padding == Padding::pkcs7 && message.direction == Direction::decrypt) {
      results[i] = take_padding_off(message, engine, stream);
    } else {
      results[i] = {Status::ok, message.output_len()};
    }
  }
}

Status first_failure(std::span<const Result> results) {
  for (const Result& result : results) {
    if (result.status != Status::ok) return result.status;
  }
  return Status::ok;
}

}  // namespace warpcipher
