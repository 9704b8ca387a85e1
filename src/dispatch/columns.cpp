// SPDX-License-Identifier: Apache-2.0
#include "dispatch/columns.hpp"

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/wipe.hpp"
#include "dispatch/select.hpp"
#include "engine/device_engine.hpp"

namespace warpcipher {
namespace {

void check_count(const char* what, std::size_t got, std::size_t count) {
  if (got != count) {
    refuse(std::string(what) + " has " + std::to_string(got) + " entries, expected one for each of " +
           std::to_string(count) + " messages");
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
      refuse("the keys of " + std::string(c.algorithm->name) + " have " + std::to_string(c.algorithm->key_len()) +
             " bytes each, got " + std::to_string(c.key_bytes.size()) + " bytes in all");
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
      refuse("all keys of a columnar batch have one algorithm: got " + std::string(algorithm.name) + " and " +
             std::string(key->algorithm().name));
    }
  }
  if (c.iv_len != 0 ? c.ivs.size() / c.iv_len != c.count || c.ivs.size() % c.iv_len != 0 : !c.ivs.empty()) {
    refuse("ivs has " + std::to_string(c.ivs.size()) + " bytes, expected " + std::to_string(c.count) + " times " +
           std::to_string(c.iv_len));
  }
}

template <class Byte>
Byte* slice(std::span<Byte> buffer, std::uint64_t offset, std::uint64_t len, const char* what, std::size_t index) {
  if (offset > buffer.size() || len > buffer.size() - offset) {
    refuse("message " + std::to_string(index) + ": " + what + " range of " + std::to_string(len) + " bytes at " +
           std::to_string(offset) + " leaves the buffer of " + std::to_string(buffer.size()) + " bytes");
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
      refuse("message " + std::to_string(i) + ": key index " + std::to_string(key) + " of " +
             std::to_string(c.keys.size()) + " keys");
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
      refuse("message " + std::to_string(i) + " has " + std::to_string(in_len) + " bytes, too short for a tag of " +
             std::to_string(c.tag_len));
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

void run_pieces(std::span<const Message> messages, const Pieces& pieces, std::span<Status> statuses, Stream stream) {
  if (messages.empty()) return;
  const Algorithm& algorithm = messages[0].algorithm();
  if (algorithm.name != "chacha20-poly1305" && algorithm.mode.id != Mode::gcm) {
    refuse("texts in pieces are for AES-GCM and chacha20-poly1305, not " + std::string(algorithm.name));
  }
  check_message_count(messages.size());
  check_count("blocks", pieces.blocks.size(), messages.size());
  check_count("statuses", statuses.size(), messages.size());
  if (pieces.len % Pieces::multiple != 0 || pieces.text_len() == 0) {
    refuse("a text has " + std::to_string(pieces.places.size()) + " pieces of " + std::to_string(pieces.len) +
           " bytes: expected some of a multiple of " + std::to_string(Pieces::multiple));
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
  device.run_pieces(messages, pieces, statuses, stream);
}

}  // namespace warpcipher
