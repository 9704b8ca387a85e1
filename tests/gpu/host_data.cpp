// SPDX-License-Identifier: Apache-2.0
#include "host_data.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "core/error.hpp"
#include "dispatch/run.hpp"
#include "dispatch/select.hpp"
#include "engine/device_engine.hpp"
#include "flow/host_transfer.hpp"
#include "message/plan.hpp"
#include "oracle.hpp"
#include "tuning/tuning.hpp"

namespace {

using namespace warpcipher;
using conformance::random_bytes;

enum class Residence { pageable, pinned, registered };
constexpr const char* names[] = {"pageable", "pinned", "registered"};
constexpr auto not_supported = static_cast<cudaError_t>(801);  // cudaErrorNotSupported

// Host memory of a residence, filled at random.
class HostMemory {
 public:
  HostMemory(std::size_t size, Residence residence) : residence_(residence), size_(size) {
    void* memory = nullptr;
    if (residence == Residence::pinned) {
      if (cudaHostAlloc(&memory, size, cudaHostAllocPortable) != cudaSuccess) throw std::bad_alloc();
    } else {
      memory = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
      if (memory == nullptr) throw std::bad_alloc();
    }
    data_ = static_cast<std::uint8_t*>(memory);
    if (residence == Residence::registered) {
      const cudaError_t error = cudaHostRegister(memory, (size + 4095) / 4096 * 4096, cudaHostRegisterDefault);
      if (error == not_supported) {  // confidential computing: it stays pageable, and must do as well
        cudaGetLastError();
        residence_ = Residence::pageable;
      } else if (error != cudaSuccess) {
        std::free(memory);
        throw Error(Status::engine_failure, "cudaHostRegister");
      }
    }
    std::ranges::copy(random_bytes(size), data_);
  }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory() {
    if (residence_ == Residence::pinned) {
      cudaFreeHost(data_);
      return;
    }
    if (residence_ == Residence::registered) cudaHostUnregister(data_);
    std::free(data_);
  }

  std::uint8_t* data() { return data_; }
  std::vector<std::uint8_t> bytes() const { return {data_, data_ + size_}; }

 private:
  Residence residence_;
  std::size_t size_;
  std::uint8_t* data_ = nullptr;
};

void run_on_host(Engine& engine, std::span<const Message> messages, std::span<Status> statuses) {
  engine.run(make_plan(messages, engine.tile_units()), statuses, nullptr);
}

struct Case {
  const Algorithm* algorithm;
  Direction direction;
  std::size_t len;
  Residence residence;
  bool in_place;
  bool bad_tag;
  bool shared;  // half of it is done by the CPU
};

// Runs a case and two short messages with it; true when all came out as from the oracle.
bool run_case(const Case& c, const TransferSettings& settings, Engine& expected_of) {
  constexpr std::size_t shift = 3;  // from any alignment
  const std::size_t room = c.len + 64;
  HostMemory memory(2 * room + 64, c.residence);
  const Key key(*c.algorithm, random_bytes(c.algorithm->key_len()));
  const std::vector<std::uint8_t> aad = random_bytes(c.algorithm->is_aead() ? 21 : 0);
  std::vector<std::vector<std::uint8_t>> ivs;
  const auto messages_in = [&](std::uint8_t* base) {
    std::vector<Message> messages;
    const std::size_t lens[] = {c.len - 512, 160, 96};
    std::size_t at = shift;
    for (std::size_t i = 0; i < 3; ++i) {
      if (ivs.size() <= i) {
        ivs.push_back(random_bytes(c.algorithm->iv_len));
        if (c.algorithm->mode.id == Mode::stream) ivs.back()[3] &= 0x7f;  // a counter with blocks left
      }
      Message m;
      m.key = &key;
      m.direction = c.direction;
      m.in = base + at;
      m.in_len = m.out_len = lens[i];
      m.out = c.in_place ? base + at : base + room + at;
      m.iv = ivs[i].data();
      m.iv_len = ivs[i].size();
      m.aad = aad.data();
      m.aad_len = aad.size();
      if (c.algorithm->is_aead()) {
        m.tag = base + 2 * room + 16 * i;
        m.tag_len = 16;
      }
      messages.push_back(m);
      at += lens[i] + 17;
    }
    return messages;
  };
  std::vector<Message> messages = messages_in(memory.data());
  if (c.algorithm->is_aead() && c.direction == Direction::decrypt) {  // tags that match, but one
    for (Message m : messages) {
      std::vector<std::uint8_t> ciphertext(m.in_len);
      m.direction = Direction::encrypt;
      m.out = ciphertext.data();
      Status status = Status::ok;
      run_on_host(expected_of, {&m, 1}, {&status, 1});
      std::memcpy(const_cast<std::uint8_t*>(m.in), ciphertext.data(), m.in_len);
    }
    if (c.bad_tag) messages[0].tag[15] ^= 0x80;
  }
  std::vector<std::uint8_t> expected = memory.bytes();
  std::vector<Status> expected_statuses(3, Status::ok), statuses(3, Status::ok);
  run_on_host(expected_of, messages_in(expected.data()), expected_statuses);
  if (c.shared) {
    run_on_both(cuda_engine(), expected_of, messages, statuses, c.len / 2);
  } else {
    run_through_device(cuda_engine(), messages, statuses, settings);
  }
  if (memory.bytes() == expected && statuses == expected_statuses) return true;
  const std::vector<std::uint8_t> got = memory.bytes();
  std::size_t first = 0;
  while (first < got.size() && got[first] == expected[first]) ++first;
  std::printf("  DIFFERS %s %s %zu bytes, %s%s%s%s: byte %zu, status %d\n", std::string(c.algorithm->name).c_str(),
              c.direction == Direction::encrypt ? "encrypt" : "decrypt", c.len, names[static_cast<int>(c.residence)],
              c.in_place ? ", in place" : "", c.bad_tag ? ", bad tag" : "", c.shared ? ", shared" : "", first,
              static_cast<int>(statuses[0]));
  return false;
}

// Which sectors are alike: contiguous ones come to the device without a list, others one by one.
enum class Sectors { all_alike, of_two_keys_in_turn, of_two_keys, with_a_short_one, ivs_in_any_order };

// Sectors one after the other: they travel together, and the device makes their tweaks.
bool run_sectors(const char* name, Direction direction, Residence residence, std::size_t sector, std::size_t count,
                 bool in_place, const TransferSettings& settings) {
  HostMemory memory(2 * count * sector, residence);
  const Algorithm& algorithm = find_algorithm(name);
  const Key keys[] = {Key(algorithm, random_bytes(algorithm.key_len())),
                      Key(algorithm, random_bytes(algorithm.key_len()))};
  const std::vector<std::uint8_t> ivs = random_bytes(16 * count);
  for (const Sectors kind : {Sectors::all_alike, Sectors::of_two_keys_in_turn, Sectors::of_two_keys,
                             Sectors::with_a_short_one, Sectors::ivs_in_any_order}) {
    const auto messages_in = [&](std::uint8_t* base) {
      std::vector<Message> messages(count);
      std::size_t at = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const bool second = kind == Sectors::of_two_keys_in_turn ? i % 2 == 1 : kind == Sectors::of_two_keys && i >= 70;
        Message& m = messages[i];
        m.key = &keys[second ? 1 : 0];
        m.direction = direction;
        m.in = base + at;
        m.in_len = m.out_len = kind == Sectors::with_a_short_one && i == count / 2 ? sector - 15 : sector;
        m.out = base + (in_place ? 0 : count * sector) + at;
        m.iv = &ivs[16 * (kind == Sectors::ivs_in_any_order ? count - 1 - i : i)];
        m.iv_len = 16;
        at += m.in_len;
      }
      return messages;
    };
    std::vector<std::uint8_t> expected = memory.bytes();
    std::vector<Status> statuses(count, Status::ok);
    run_on_host(oracle(), messages_in(expected.data()), statuses);
    run_through_device(cuda_engine(), messages_in(memory.data()), statuses, settings);
    if (memory.bytes() == expected) continue;
    std::printf("  DIFFERS %s %s, %zu sectors of %zu bytes, kind %d, %s%s\n", name,
                direction == Direction::encrypt ? "encrypt" : "decrypt", count, sector, static_cast<int>(kind),
                names[static_cast<int>(residence)], in_place ? ", in place" : "");
    return false;
  }
  return true;
}

// Two clients' texts with tags after them, each in a place of its own: in few ranges where the places lie close
// together, else each by itself. One tag is wrong.
bool run_rings(Direction direction, Residence residence, std::size_t place, bool in_place,
               const TransferSettings& settings) {
  constexpr std::size_t clients = 2, count = 40, len = 1100, tag_len = 16;
  const Algorithm& algorithm = find_algorithm("aes-128-gcm");
  const Key key(algorithm, random_bytes(algorithm.key_len()));
  const std::vector<std::uint8_t> ivs = random_bytes(12 * clients * count);
  const std::size_t ring = count * place;
  HostMemory first(2 * ring, residence), second(2 * ring, residence);
  const auto messages_in = [&](std::uint8_t* a, std::uint8_t* b) {
    std::vector<Message> messages(clients * count);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      Message& m = messages[i];
      std::uint8_t* const at = (i % clients == 0 ? a : b) + i / clients * place;
      m.key = &key;
      m.direction = direction;
      m.in = at;
      m.out = in_place ? at : at + ring;
      m.in_len = m.out_len = len;
      m.iv = &ivs[12 * i];
      m.iv_len = 12;
      m.tag = m.out + len;
      m.tag_len = tag_len;
    }
    return messages;
  };
  std::vector<Message> messages = messages_in(first.data(), second.data());
  std::vector<Status> statuses(messages.size(), Status::ok), expected_statuses = statuses;
  if (direction == Direction::decrypt) {
    for (Message m : messages) {
      std::uint8_t sealed[len];
      m.direction = Direction::encrypt;
      m.out = sealed;
      Status status = Status::ok;
      run_on_host(oracle(), {&m, 1}, {&status, 1});
      std::memcpy(const_cast<std::uint8_t*>(m.in), sealed, len);
    }
    messages[5].tag[3] ^= 1;
  }
  std::vector<std::uint8_t> a = first.bytes(), b = second.bytes();
  run_on_host(oracle(), messages_in(a.data(), b.data()), expected_statuses);
  run_through_device(cuda_engine(), messages, statuses, settings);
  if (first.bytes() == a && second.bytes() == b && statuses == expected_statuses) return true;
  std::printf("  DIFFERS %zu places of %zu bytes, %s, %s%s\n", count, place, names[static_cast<int>(residence)],
              direction == Direction::encrypt ? "encrypt" : "decrypt", in_place ? ", in place" : "");
  return false;
}

// A thread's first question about page-locked memory is answered as later ones are: its first payload goes straight
// from and to it, too.
int run_new_thread() {
  HostMemory memory(4096, Residence::pinned);
  bool found = false;
  std::thread([&] { found = cuda_engine().find_page_locked(memory.data()).holds(memory.data(), 4096); }).join();
  if (found) return 0;
  std::printf("  DIFFERS page-locked memory, from a new thread\n");
  return 1;
}

// `auto`, with rates by which both engines at once are the fastest.
int run_auto() {
  const Cost cost{0, 0, 0, 0, {{1e9, 0.1}}};
  constexpr std::size_t len = least_shared_len + 17;
  int failures = 0;
  for (const char* name : {"aes-128-ctr", "aes-256-gcm"}) {
    const Algorithm& algorithm = find_algorithm(name);
    Tuning tuning;
    tuning.rates.emplace().at(algorithm, Direction::encrypt) = {cost, cost, cost, {1, 1}, {1, 1}};
    use_tuning(std::move(tuning));
    HostMemory memory(2 * len + 16, Residence::pinned);
    const Key key(algorithm, random_bytes(algorithm.key_len()));
    const std::vector<std::uint8_t> iv = random_bytes(algorithm.is_aead() ? 12 : 16);
    const auto message_in = [&](std::uint8_t* base) {
      Message m;
      m.key = &key;
      m.in = base;
      m.out = base + len;
      m.in_len = m.out_len = len;
      m.iv = iv.data();
      m.iv_len = iv.size();
      m.tag = algorithm.is_aead() ? base + 2 * len : nullptr;
      m.tag_len = algorithm.is_aead() ? 16 : 0;
      return m;
    };
    std::vector<std::uint8_t> expected = memory.bytes();
    const Message m = message_in(memory.data()), other = message_in(expected.data());
    Status status = Status::ok;
    run_on_host(oracle(), {&other, 1}, {&status, 1});
    const Selection selection = select_engines("auto", {&m, 1});
    Result result;
    run("auto", {&m, 1}, {&result, 1});
    if (selection.cpu != nullptr && result.status == Status::ok && memory.bytes() == expected) continue;
    std::printf("  DIFFERS %s by auto%s\n", name, selection.cpu == nullptr ? ": not shared" : "");
    ++failures;
  }
  use_tuning({});
  return failures;
}

// Whatever the tuner may choose, the results are the same; and it is in use, and gone when it is taken back.
int run_policies(const TransferSettings& settings) {
  DeviceEngine& engine = cuda_engine();
  const int device = engine.devices_for_host_data()[0];
  int failures = 0;
  for (const Policy& policy : engine.policies(device)) {
    for (const std::string_view value : policy.values) {
      engine.choose_policy(device, policy.name, value);
      for (const Policy& now : engine.policies(device)) {
        if (now.name == policy.name && now.value != value) ++failures;
      }
      const Algorithm& algorithm = find_algorithm(policy.algorithm);
      const std::size_t rest = algorithm.mode.whole_blocks ? algorithm.block_len() : 5;
      const Case c{&algorithm, Direction::encrypt, 9 * settings.piece_len + rest, Residence::pageable, false, false,
                   false};
      failures += run_case(c, settings, oracle()) ? 0 : 1;
    }
    engine.choose_policy(device, policy.name, "");
    for (const Policy& now : engine.policies(device)) {
      if (now.name == policy.name && now.value != policy.values[0]) ++failures;
    }
  }
  return failures;
}

}  // namespace

int test_host_data(bool quick, const std::string& only, const std::function<bool()>& is_mine) {
  constexpr const char* few[] = {"aes-128-ctr", "aes-256-cbc",       "aes-128-cfb",
                                 "aes-128-gcm", "aes-256-gcm-siv",   "aes-256-xts",
                                 "des-ecb",     "chacha20-poly1305", "xchacha20-poly1305"};
  const TransferSettings settings{quick ? std::size_t{2048} : std::size_t{65536}, 3, 2, 1024, 3};
  setenv("WARPCIPHER_DEVICES", "all", 1);
  int failures = 0;
  int count = 0;
  const auto run = [&](const Case& c) {
    ++count;
    failures += run_case(c, settings, oracle()) ? 0 : 1;
  };
  for (const Algorithm& algorithm : algorithms()) {
    if (!cuda_engine().offers(algorithm)) continue;
    const bool is_one_of_few =
        std::any_of(std::begin(few), std::end(few), [&](const char* name) { return algorithm.name == name; });
    if (only.empty() ? quick && !is_one_of_few : algorithm.name != only) continue;
    if (!is_mine()) continue;
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      // A text that is not cut is one piece, however long; and it is slow on both sides.
      const bool cut = algorithm.parallel(direction) && algorithm.mode.id != Mode::cfb8;
      const std::size_t len = (cut ? 9 : 2) * settings.piece_len + (algorithm.mode.whole_blocks ? 0 : 5);
      for (const Residence residence : {Residence::pageable, Residence::pinned, Residence::registered}) {
        const bool in_place = quick ? count % 2 == 0 : false;
        const bool shared = residence == Residence::registered;
        run({&algorithm, direction, len, residence, in_place, false, quick && shared});
        if (!quick) run({&algorithm, direction, len, residence, true, false, false});
        if (!quick) run({&algorithm, direction, len, residence, count % 2 == 0, false, true});
        if (algorithm.is_aead() && direction == Direction::decrypt) {
          run({&algorithm, direction, len, residence, in_place, true, shared});
        }
      }
    }
  }
  for (const char* name : {"aes-128-xts", "aes-256-xts"}) {
    if ((!only.empty() && only != name) || !is_mine()) continue;
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      for (const Residence residence : {Residence::pageable, Residence::pinned}) {
        TransferSettings with_rows = settings;
        with_rows.piece_len = 32768;
        // Of one, parts of one, and several tiles; the last leaves a rest of a slot that holds too few for a row.
        const std::pair<std::size_t, std::size_t> sizes[] = {{96, 40}, {128, 300}, {512, 150}, {4160, 9}};
        for (const auto& [sector, number] : sizes) {
          ++count;
          failures += run_sectors(name, direction, residence, sector, number, count % 2 == 0, with_rows) ? 0 : 1;
        }
      }
    }
  }
  for (const std::size_t place : {std::size_t{1120}, std::size_t{1232}, std::size_t{1133}, std::size_t{4096}}) {
    if ((!only.empty() && only != "aes-128-gcm") || !is_mine()) continue;
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      for (const Residence residence : {Residence::pinned, Residence::registered}) {
        TransferSettings with_ranges = settings;
        with_ranges.piece_len = 16384;
        with_ranges.range_len = 4096;
        ++count;
        failures += run_rings(direction, residence, place, count % 2 == 0, with_ranges) ? 0 : 1;
      }
    }
  }
  if (only.empty() && is_mine()) failures += run_policies(settings) + run_new_thread();
  if (only.empty() && !quick && is_mine()) failures += run_auto();
  unsetenv("WARPCIPHER_DEVICES");
  if (count != 0) std::printf("%-16s %4d cases %s\n", "host data", count, failures == 0 ? "ok" : "FAILED");
  return failures;
}
