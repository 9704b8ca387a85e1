// SPDX-License-Identifier: Apache-2.0
#include "dispatch/self_test.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <iterator>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "engine/device_engine.hpp"

namespace warpcipher {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes from_hex(std::string_view text) {
  const auto digit = [](char c) { return static_cast<std::uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
  Bytes bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
  }
  return bytes;
}

// A known answer with buffers to run it in; the tag follows the text.
struct Case {
  explicit Case(const KnownAnswer& answer)
      : key(find_algorithm(answer.algorithm), from_hex(answer.key)),
        iv(from_hex(answer.iv)),
        aad(from_hex(answer.aad)),
        text(from_hex(known_answer_text)),
        ciphertext(from_hex(answer.ciphertext)) {
    text.resize(answer.text_len);
  }

  // The message that turns `in` (text, or ciphertext and tag) into `out`.
  Message message(Direction direction, Bytes& in, Bytes& out) const {
    const std::size_t tag_len = ciphertext.size() - text.size();
    const bool encrypting = direction == Direction::encrypt;
    out.assign(encrypting ? ciphertext.size() : text.size(), 0);
    Message m;
    m.key = &key;
    m.direction = direction;
    m.in = in.data();
    m.in_len = text.size();
    m.out = out.data();
    m.out_len = text.size();
    m.iv = iv.data();
    m.iv_len = iv.size();
    m.aad = aad.data();
    m.aad_len = aad.size();
    m.tag = tag_len == 0 ? nullptr : (encrypting ? out : in).data() + text.size();
    m.tag_len = tag_len;
    return m;
  }

  Key key;
  Bytes iv, aad, text, ciphertext;
  Bytes encrypted, decrypted;
};

// Runs messages of host memory in device memory, with everything in one block of it.
void run_on_device(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses) {
  constexpr std::size_t room = 256;  // of a text, or of a tag
  const std::size_t size = 3 * room * messages.size();
  Stream stream = engine.create_stream();
  std::uint8_t* memory = nullptr;
  const auto release = [&] {
    if (memory != nullptr) engine.deallocate(memory, size, size, stream);
    engine.destroy_stream(stream);
  };
  try {
    memory = static_cast<std::uint8_t*>(engine.allocate(size, stream));
    std::vector<Message> moved(messages.begin(), messages.end());
    for (std::size_t i = 0; i < moved.size(); ++i) {
      Message& m = moved[i];
      std::uint8_t* const place = memory + 3 * room * i;
      engine.copy_to_device(place, m.in, m.in_len, stream);
      if (m.tag_len != 0) engine.copy_to_device(place + 2 * room, m.tag, m.tag_len, stream);
      m.memory = Memory::device;
      m.in = place;
      m.out = place + room;
      m.tag = m.tag_len == 0 ? nullptr : place + 2 * room;
    }
    engine.run(make_plan(moved, engine.tile_units()), statuses, stream);
    for (std::size_t i = 0; i < moved.size(); ++i) {
      const Message& m = messages[i];
      engine.copy_to_host(m.out, moved[i].out, m.in_len, stream);
      if (m.tag_len != 0) engine.copy_to_host(m.tag, moved[i].tag, m.tag_len, stream);
    }
    engine.wait(stream);
  } catch (...) {
    release();
    throw;
  }
  release();
}

void run_on(Engine& engine, std::span<const Message> messages, std::span<Status> statuses) {
  if (engine.memory() == Memory::device) {
    run_on_device(static_cast<DeviceEngine&>(engine), messages, statuses);
  } else {
    engine.run(make_plan(messages, engine.tile_units()), statuses, nullptr);
  }
}

// The name of the first wrong result, or nothing.
std::string find_wrong_answer(Engine& engine) {
  std::deque<Case> cases;
  for (const Algorithm& algorithm : algorithms()) {
    if (!engine.offers(algorithm)) continue;
    const auto* const answer = std::find_if(std::begin(known_answers), std::end(known_answers),
                                            [&](const KnownAnswer& a) { return a.algorithm == algorithm.name; });
    if (answer == std::end(known_answers)) return std::string(algorithm.name) + ", which has no known answer";
    cases.emplace_back(*answer);
  }

  std::vector<Message> messages;
  messages.reserve(2 * cases.size());
  for (Case& c : cases) messages.push_back(c.message(Direction::encrypt, c.text, c.encrypted));
  for (Case& c : cases) messages.push_back(c.message(Direction::decrypt, c.ciphertext, c.decrypted));
  std::vector<Status> statuses(messages.size(), Status::ok);
  run_on(engine, messages, statuses);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const std::string name(c.key.algorithm().name);
    if (c.encrypted != c.ciphertext) return name + " encryption";
    if (c.decrypted != c.text || statuses[cases.size() + i] != Status::ok) return name + " decryption";
  }

  for (Case& c : cases) {
    if (!c.key.algorithm().is_aead()) continue;
    Bytes forged = c.ciphertext;
    forged.back() ^= 1;
    const Message m = c.message(Direction::decrypt, forged, c.decrypted);
    Status status = Status::ok;
    run_on(engine, {&m, 1}, {&status, 1});
    if (status != Status::invalid_tag || c.decrypted != Bytes(c.text.size(), 0)) {
      return std::string(c.key.algorithm().name) + " refusal of a forged tag";
    }
  }
  return {};
}

}  // namespace

void require_self_test(Engine& engine) {
  struct Outcome {
    const Engine* engine;
    std::string wrong;
  };
  static constinit std::array<FirstUse<Outcome>, engine_count> outcomes{};
  const Outcome& outcome =
      outcomes[static_cast<std::size_t>(engine.id())].get([&] { return Outcome{&engine, find_wrong_answer(engine)}; });
  // Tests make several engines with one id: an outcome belongs to the engine that was tested.
  const std::string wrong = outcome.engine == &engine ? outcome.wrong : find_wrong_answer(engine);
  if (!wrong.empty()) {
    throw Error(Status::engine_unavailable, "engine '", engine.name(), "' failed its known-answer self-test (", wrong,
                ") and is disabled");
  }
}

}  // namespace warpcipher
