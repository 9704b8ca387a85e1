// SPDX-License-Identifier: Apache-2.0
// The child of a process that has used a GPU. The driver does not work there: the engine says so, and frees what the
// child inherited without it.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "dispatch/run.hpp"
#include "engine/device_engine.hpp"

namespace warpcipher {
namespace {

#define REQUIRE(condition)                                                           \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::_Exit(1);                                                                 \
    }                                                                                \
  } while (false)

std::vector<std::uint8_t> encrypt(std::string_view engine) {
  const std::vector<std::uint8_t> key_bytes(16, 1), iv(16, 2), text(std::size_t{5} << 20, 3);
  std::vector<std::uint8_t> out(text.size());
  const Key key(find_algorithm("aes-128-ctr"), key_bytes);
  Message m;
  m.key = &key;
  m.in = text.data();
  m.in_len = m.out_len = text.size();
  m.out = out.data();
  m.iv = iv.data();
  m.iv_len = iv.size();
  Result result;
  run(engine, {&m, 1}, {&result, 1});
  REQUIRE(result.status == Status::ok);
  return out;
}

int test() {
  DeviceEngine& engine = cuda_engine();
  REQUIRE(engine.unavailable_reason().empty());
  const std::vector<std::uint8_t> expected = encrypt("cuda");
  const Stream stream = engine.create_stream();
  void* const pinned = engine.allocate_pinned(100);
  void* const memory = engine.allocate(100, stream);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    REQUIRE(engine.unavailable_reason().find("forked") != std::string::npos);
    REQUIRE(engine.devices().empty());
    try {
      static_cast<void>(encrypt("cuda"));
      REQUIRE(false);
    } catch (const Error& error) {
      REQUIRE(error.status() == Status::engine_unavailable);
    }
    REQUIRE(encrypt("auto") == expected);
    engine.deallocate(memory, 100, 100, stream);
    engine.free_pinned(pinned, 100, 100);
    engine.destroy_stream(stream);
    std::_Exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  REQUIRE(status == 0);
  REQUIRE(encrypt("cuda") == expected);
  engine.deallocate(memory, 100, 100, stream);
  engine.free_pinned(pinned, 100, 100);
  engine.destroy_stream(stream);
  return 0;
}

}  // namespace
}  // namespace warpcipher

int main() { return warpcipher::test(); }
