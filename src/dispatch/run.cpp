// SPDX-License-Identifier: Apache-2.0
#include "dispatch/run.hpp"

#include <deque>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "core/thread_pool.hpp"
#include "core/wipe.hpp"
#include "dispatch/select.hpp"
#include "engine/device_engine.hpp"
#include "flow/host_transfer.hpp"
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
    refuse("one result is needed for each message: got ", results.size(), " for ", messages.size());
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

namespace {

void check_count(const char* what, std::size_t got, std::size_t count) {
  if (got != count) {
    refuse(what, " has ", got, " entries, expected one for each of ", count, " messages");
  }
}

// A column that may be left out.
void check_column(const char* what, std::size_t got, std::size_t count) {
  if (got != 0) check_count(what, got, count);
}

void check_columns(const Columns& c) {
  check_message_count(c.count);
  check_buffer_len("in", c.in.size());
  check_buffer_len("out", c.out.size());
  check_buffer_len("ivs", c.ivs.size());
  check_buffer_len("an IV", c.iv_len);
  check_buffer_len("aad", c.aad.size());
  check_buffer_len("a tag", c.tag_len);
  check_buffer_len("key_bytes", c.key_bytes.size());
  if (c.key_count() == 0) refuse("no key given");
  if (c.algorithm != nullptr) {
    if (!c.keys.empty()) refuse("keys are given twice: as objects and as bytes");
    if (c.key_bytes.size() % c.algorithm->key_len() != 0) {
      refuse("the keys of ", c.algorithm->name, " have ", c.algorithm->key_len(), " bytes each, got ",
             c.key_bytes.size(), " bytes in all");
    }
  }
  if (c.columns_memory == Memory::device && c.memory == Memory::host) {
    refuse("columns in device memory describe text in device memory, but the text lies on the host");
  }
  check_count("in_lengths", c.in_lengths.size(), c.count);
  check_column("in_offsets", c.in_offsets.size(), c.count);
  check_column("out_offsets", c.out_offsets.size(), c.count);
  check_column("key_index", c.key_index.size(), c.count);
  check_column("aad_offsets", c.aad_offsets.size(), c.count);
  if (c.aad_offsets.size() != c.aad_lengths.size()) refuse("aad_offsets and aad_lengths go together");
  const Algorithm& algorithm = c.algorithm_of_all();
  for (const Key* key : c.keys) {
    if (&key->algorithm() != &algorithm) {
      refuse("all keys of a columnar batch have one algorithm: got ", algorithm.name, " and ", key->algorithm().name);
    }
  }
  if (c.iv_len != 0 ? c.ivs.size() / c.iv_len != c.count || c.ivs.size() % c.iv_len != 0 : !c.ivs.empty()) {
    refuse("ivs has ", c.ivs.size(), " bytes, expected ", c.count, " times ", c.iv_len);
  }
}

template <class Byte>
Byte* slice(std::span<Byte> buffer, std::uint64_t offset, std::uint64_t len, const char* what, std::size_t index) {
  if (offset > buffer.size() || len > buffer.size() - offset) {
    refuse("message ", index, ": ", what, " range of ", len, " bytes at ", offset, " leaves the buffer of ",
           buffer.size(), " bytes");
  }
  return buffer.data() + offset;
}

std::vector<Message> to_messages(const Columns& c) {
  std::vector<Message> messages(c.count);
  const bool encrypting = c.direction == Direction::encrypt;
  std::uint64_t next_in = 0, next_out = 0;
  for (std::size_t i = 0; i < c.count; ++i) {
    const std::uint32_t key = c.key_index.empty() ? 0 : c.key_index[i];
    if (key >= c.keys.size()) {
      refuse("message ", i, ": key index ", key, " of ", c.keys.size(), " keys");
    }
    Message& m = messages[i];
    m.key = c.keys[key];
    m.direction = c.direction;
    m.padding = c.padding;
    m.memory = c.memory;
    const std::uint64_t in_offset = c.in_offsets.empty() ? next_in : c.in_offsets[i];
    const std::uint64_t in_len = c.in_lengths[i];
    m.in = slice(c.in, in_offset, in_len, "in", i);
    next_in = in_offset + in_len;
    if (!encrypting && in_len < c.tag_len) {
      refuse("message ", i, " has ", in_len, " bytes, too short for a tag of ", c.tag_len);
    }
    m.in_len = encrypting ? in_len : in_len - c.tag_len;
    const std::uint64_t out_offset = c.out_offsets.empty() ? next_out : c.out_offsets[i];
    const std::uint64_t out_len = m.output_len() + (encrypting ? c.tag_len : 0);
    m.out = slice(c.out, out_offset, out_len, "out", i);
    m.out_len = m.output_len();
    next_out = out_offset + out_len;
    m.tag_len = c.tag_len;
    if (m.tag_len != 0) {
      // Only the engine's encryption writes through tag.
      m.tag = encrypting ? m.out + m.output_len() : const_cast<std::uint8_t*>(m.in) + m.in_len;
    }
    m.iv = c.iv_len != 0 ? c.ivs.data() + i * c.iv_len : nullptr;
    m.iv_len = c.iv_len;
    const std::uint64_t aad_offset = c.aad_offsets.empty() ? 0 : c.aad_offsets[i];
    m.aad_len = c.aad_offsets.empty() ? c.aad.size() : c.aad_lengths[i];
    m.aad = slice(c.aad, aad_offset, m.aad_len, "aad", i);
  }
  return messages;
}

// Runs columns in host memory as messages.
void run_as_messages(std::string_view engine, Columns c, std::span<Result> results, Stream stream) {
  std::deque<Key> made;
  std::vector<const Key*> keys;
  if (c.algorithm != nullptr) {
    const std::size_t len = c.algorithm->key_len();
    for (std::size_t k = 0; k < c.key_count(); ++k) {
      keys.push_back(&made.emplace_back(*c.algorithm, c.key_bytes.subspan(k * len, len)));
    }
    c.algorithm = nullptr;
    c.keys = keys;
  }
  run(engine, to_messages(c), results, stream);
  if (c.direction == Direction::encrypt) {
    for (Result& result : results) result.written += c.tag_len;
  }
  // The keys end here, but work on the stream may still read their schedules.
  if (!made.empty() && c.memory == Memory::device) select_device_engine(engine).wait(stream);
}

// A copy on the host of columns in device memory.
class HostColumns {
 public:
  HostColumns(const Columns& columns, DeviceEngine& engine, Stream stream)
      : columns_(columns), key_bytes_(columns.key_bytes.size()) {
    const auto fetch = [&](auto& copy, auto& column) {
      copy.resize(column.size());
      if (!column.empty()) engine.copy_to_host(copy.data(), column.data(), column.size_bytes(), stream);
      column = copy;
    };
    if (!columns.key_bytes.empty()) {
      engine.copy_to_host(key_bytes_.data(), columns.key_bytes.data(), key_bytes_.size(), stream);
    }
    columns_.key_bytes = {key_bytes_.data(), key_bytes_.size()};
    fetch(key_index_, columns_.key_index);
    fetch(in_offsets_, columns_.in_offsets);
    fetch(in_lengths_, columns_.in_lengths);
    fetch(out_offsets_, columns_.out_offsets);
    fetch(ivs_, columns_.ivs);
    fetch(aad_, columns_.aad);
    fetch(aad_offsets_, columns_.aad_offsets);
    fetch(aad_lengths_, columns_.aad_lengths);
    engine.wait(stream);
    columns_.columns_memory = Memory::host;
  }

  const Columns& columns() const { return columns_; }

 private:
  Columns columns_;
  SecretBytes key_bytes_;
  std::vector<std::uint32_t> key_index_;
  std::vector<std::uint64_t> in_offsets_, in_lengths_, out_offsets_, aad_offsets_, aad_lengths_;
  std::vector<std::uint8_t> ivs_, aad_;
};

}  // namespace

Status run_columns(std::string_view engine, const Columns& columns, std::span<Result> results, Stream stream) {
  check_columns(columns);
  check_count("results", results.size(), columns.count);
  if (columns.memory == Memory::device && columns.count != 0) {
    DeviceEngine& device = select_device_engine(engine);
    require_offered(device, columns.algorithm_of_all());
    if (const std::optional<Status> status = device.run_columns(columns, results, stream)) return *status;
    if (columns.columns_memory == Memory::device) {
      const HostColumns host(columns, device, stream);
      std::vector<Result> outcome(columns.count);
      run_as_messages(engine, host.columns(), outcome, stream);
      device.copy_to_device(results.data(), outcome.data(), results.size_bytes(), stream);
      device.wait(stream);
      return first_failure(outcome);
    }
  }
  run_as_messages(engine, columns, results, stream);
  return first_failure(results);
}

void run_pieces(std::span<const Message> messages, const Pieces& pieces, std::uint32_t* verdicts, Stream stream) {
  if (messages.empty()) return;
  const Algorithm& algorithm = messages[0].algorithm();
  if (algorithm.name != "chacha20-poly1305" && algorithm.mode.id != Mode::gcm) {
    refuse("texts in pieces are for AES-GCM and chacha20-poly1305, not ", algorithm.name);
  }
  check_message_count(messages.size());
  check_count("blocks", pieces.blocks.size(), messages.size());
  if ((messages[0].direction == Direction::decrypt) != (verdicts != nullptr)) {
    refuse("decryption has verdicts, encryption has none");
  }
  if (pieces.len % Pieces::multiple != 0 || pieces.text_len() == 0) {
    refuse("a text has ", pieces.places.size(), " pieces of ", pieces.len, " bytes: expected some of a multiple of ",
           Pieces::multiple);
  }
  for (const Message& m : messages) {
    const bool fits = &m.algorithm() == &algorithm && m.direction == messages[0].direction && m.in == m.out &&
                      m.in_len == pieces.text_len() && m.iv_len == gcm_plain_iv_len && m.tag_len == full_tag_len;
    if (!fits) refuse("a message does not fit its pieces or the other messages");
    check_buffer_len("aad", m.aad_len);
  }
  if (pieces.text_len() > algorithm.mode.most_text_len_with(gcm_plain_iv_len)) refuse("a text is too long");
  DeviceEngine& device = select_device_engine("auto");
  require_offered(device, algorithm);
  device.run_pieces(messages, pieces, verdicts, stream);
}

}  // namespace warpcipher
