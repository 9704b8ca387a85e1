// SPDX-License-Identifier: Apache-2.0
// An engine runs plans. Also the list of engines, in the order of preference for host data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/stream.hpp"
#include "message/plan.hpp"

namespace warpcipher {

class Engine {
 public:
  virtual ~Engine() = default;

  virtual EngineId id() const = 0;
  virtual std::string_view name() const = 0;
  virtual std::string_view description() const = 0;

  // The kind of memory in which its messages must lie.
  virtual Memory memory() const = 0;

  // False if the time of this algorithm may depend on keys or data on this engine: then `auto` never uses it.
  virtual bool constant_time(const Algorithm& algorithm) const = 0;

  // False for an algorithm that this engine cannot run, at all or here; run() then throws Error{engine_unavailable} and
  // names the missing part. Dispatch gives a device engine no message of it.
  virtual bool offers(const Algorithm&) const = 0;

  // Empty when the engine can run here, else why it cannot and what to do about it. Checks once; later calls are cheap.
  virtual const std::string& unavailable_reason() const = 0;

  // The devices it runs on, one line each: name, memory, driver. Empty when it cannot run.
  virtual std::vector<std::string> devices() const = 0;

  // The tile size of its plans, in units.
  virtual std::uint32_t tile_units() const = 0;

  // Runs a plan whose messages lie in memory(). Writes out (and tag when encrypting an AEAD), never IV, AAD or in
  // (unless in == out). A message whose tag does not match gets status invalid_tag and in_len zeros at out; other
  // messages of the batch are not affected. Encryption adds PKCS#7 padding; after decryption the caller removes it. A
  // message may be empty. A host engine returns when the work is done. A device engine enqueues it on `stream`, and
  // waits only if the plan has AEAD decryption, whose status the host must know. Throws Error{engine_failure,
  // engine_unavailable, out_of_memory}. Safe from any thread.
  virtual void run(const Plan& plan, std::span<Status> statuses, Stream stream) = 0;

  // run() of one message, whose status it returns. An engine that needs no plan for it makes none.
  virtual Status run_one(const Message& message, Stream stream) {
    Status status = Status::ok;
    run(make_plan({&message, 1}, tile_units()), {&status, 1}, stream);
    return status;
  }
};

// Every engine of this build, whether it can run here or not.
std::span<Engine* const> engines();

// The engine of that name; throws Error{engine_unavailable} when it is unknown or cannot run here, and says why.
Engine& find_engine(std::string_view name);

// How an engine does work of other kinds, such as random arrays and trees.
enum class Way : std::uint8_t { threads, definition, device };

// Of an engine by its name, or "auto", for arrays in that memory. Throws Error{invalid_argument} for one that has none.
Way find_way(std::string_view engine, Memory memory);

// The engine of NVIDIA GPUs. In a build without CUDA (absent.cpp) it says why it cannot run; find_engine() gives no
// such engine, and all that it gives with device memory are DeviceEngines.
Engine& listed_cuda_engine();

// The CPU engine: AES by libcrypto or own code, whichever is faster, and bitsliced DES, over all cores.
Engine& cpu_engine();

// The reference engine: the standards' text, one block after the other. The oracle of every test; slow, and not
// constant in time (its S-boxes are tables), so `auto` never takes it.
Engine& reference_engine();

}  // namespace warpcipher
