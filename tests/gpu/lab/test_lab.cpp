// SPDX-License-Identifier: Apache-2.0
// Every variant of the lab against the plain cipher: on a GPU, or on the emulated one (see ../CMakeLists.txt).
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "core/error.hpp"
#include "lab_test.hpp"

namespace warpcipher::lab::test {
namespace {

constexpr std::size_t guard = 64;
std::mt19937 generator(20221214);
int cases = 0;
int failures = 0;

void must(cudaError_t error) {
  if (error != cudaSuccess) throw Error(Status::engine_failure, cudaGetErrorString(error));
}

// Bytes with a guard before and after, on the GPU or not.
class Guarded {
 public:
  Guarded(const Bytes& content, bool on_gpu) : on_gpu_(on_gpu), host_(content.size() + 2 * guard, 0x5a) {
    std::copy(content.begin(), content.end(), host_.begin() + guard);
    if (!on_gpu_) return;
    must(cudaMalloc(&device_, host_.size()));
    must(cudaMemcpy(device_, host_.data(), host_.size(), cudaMemcpyHostToDevice));
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() {
    if (on_gpu_) cudaFree(device_);
  }

  std::uint8_t* data() { return (on_gpu_ ? static_cast<std::uint8_t*>(device_) : host_.data()) + guard; }

  Bytes content() {
    if (on_gpu_) must(cudaMemcpy(host_.data(), device_, host_.size(), cudaMemcpyDeviceToHost));
    const auto clean = [](std::uint8_t byte) { return byte == 0x5a; };
    if (!std::all_of(host_.begin(), host_.begin() + guard, clean) ||
        !std::all_of(host_.end() - guard, host_.end(), clean)) {
      throw Error(Status::engine_failure, "wrote outside of its memory");
    }
    return {host_.begin() + guard, host_.end() - guard};
  }

 private:
  bool on_gpu_;
  Bytes host_;
  void* device_ = nullptr;
};

const Variant& find(const Call& call) {
  for (const Variant& variant : find_paper(call.paper).variants) {
    if (variant.name == call.variant) return variant;
  }
  throw Error(Status::invalid_argument, "no such variant");
}

void report(bool passed, const std::string& what, const std::string& why) {
  ++cases;
  if (passed) return;
  ++failures;
  std::printf("FAILED %s: %s\n", what.c_str(), why.c_str());
}

}  // namespace

Bytes random_bytes(std::size_t len) {
  Bytes bytes(len);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(generator());
  return bytes;
}

Bytes run(const Call& call, const Bytes& in, std::size_t out_len) {
  const bool on_gpu = find(call).needs_gpu;
  Parameters parameters(call.parameters);
  const Job job = make_job(call.paper, call.variant, {call.key, call.iv, parameters, 0});
  Guarded source(in, on_gpu);
  Guarded target(Bytes(out_len, 0xc3), on_gpu);
  job.run({source.data(), in.size(), target.data(), out_len}, nullptr);
  if (on_gpu) must(cudaDeviceSynchronize());
  if (source.content() != in) throw Error(Status::engine_failure, "changed its input");
  if (on_gpu && job.facts().empty()) throw Error(Status::engine_failure, "gives no facts");
  return target.content();
}

void expect_equal(const Bytes& expected, const Bytes& got, const std::string& what) {
  const auto at = std::mismatch(expected.begin(), expected.end(), got.begin(), got.end()).first - expected.begin();
  report(expected == got, what, "differs at byte " + std::to_string(at));
}

void expect_refusal(const Call& call, const Bytes& in, std::size_t out_len, const std::string& what) {
  try {
    run(call, in, out_len);
  } catch (const Error& error) {
    report(error.status() == Status::invalid_argument, what, error.what());
    return;
  }
  report(false, what, "was not refused");
}

bool can_run(const Variant& variant) { return static_cast<bool>(variant.make); }

}  // namespace warpcipher::lab::test

int main() {
  using namespace warpcipher::lab::test;
  try {
    test_billava2022();
    test_harrison2008();
    test_iwai2012();
    test_key_stream();
    test_quirem2013();
    test_yang2007();
  } catch (const std::exception& error) {
    std::printf("FAILED: %s\n", error.what());
    return 1;
  }
  std::printf("%d cases, %d failed\n", cases, failures);
  return failures == 0 ? 0 : 1;
}
