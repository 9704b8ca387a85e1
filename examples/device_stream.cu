// SPDX-License-Identifier: Apache-2.0
//
// Data on a GPU, encrypted where it lies: a kernel writes it, AES-256-CTR encrypts it in place, another kernel works on
// the result, all on one stream. Nothing goes through host memory and the host waits once, at the end.
#include <cuda_runtime.h>
#include <warpcipher.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(EXIT_FAILURE);
}

static void check(wc_status status, const char* what) {
  if (status == WC_OK) return;
  std::fprintf(stderr, "%s: %s: %s\n", what, wc_status_text(status), wc_last_error());
  std::exit(EXIT_FAILURE);
}

__global__ void fill(std::uint32_t* words, std::size_t count) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) words[i] = static_cast<std::uint32_t>(i);
}

__global__ void count_equal(unsigned long long* equal, const std::uint32_t* words, std::size_t count) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count && words[i] == static_cast<std::uint32_t>(i)) atomicAdd(equal, 1ull);
}

// Counts on the stream the words that hold their own number.
static unsigned long long equal_words(const std::uint32_t* words, std::size_t count, unsigned long long* equal,
                                      cudaStream_t stream) {
  unsigned long long result = 0;
  check(cudaMemsetAsync(equal, 0, sizeof *equal, stream), "memset");
  count_equal<<<static_cast<unsigned>((count + 255) / 256), 256, 0, stream>>>(equal, words, count);
  check(cudaMemcpyAsync(&result, equal, sizeof result, cudaMemcpyDeviceToHost, stream), "copy");
  check(cudaStreamSynchronize(stream), "the stream");  // for the eight bytes of the answer
  return result;
}

int main() {
  const std::size_t count = std::size_t{16} << 20;  // 64 MiB
  std::uint32_t* words = nullptr;
  unsigned long long* equal = nullptr;
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  check(cudaMalloc(&words, count * sizeof *words), "memory");
  check(cudaMalloc(&equal, sizeof *equal), "memory");
  fill<<<static_cast<unsigned>((count + 255) / 256), 256, 0, stream>>>(words, count);
  check(cudaGetLastError(), "fill");

  // A fixed key and counter, only for the example.
  std::uint8_t key_bytes[32], counter[16] = {};
  for (std::uint8_t i = 0; i < 32; ++i) key_bytes[i] = i;
  wc_key* key = nullptr;
  check(wc_key_new(&key, "aes-256-ctr", key_bytes, sizeof key_bytes), "key");

  wc_message message = {};
  message.key = key;
  message.direction = WC_ENCRYPT;
  message.memory = WC_MEMORY_DEVICE;
  message.in = message.out = words;  // in place
  message.in_len = message.out_len = count * sizeof *words;
  message.iv = counter;
  message.iv_len = sizeof counter;
  wc_result result = {};
  check(wc_run("cuda", &result, &message, 1, stream), "encrypt");  // enqueued after `fill`, not waited for
  const unsigned long long hidden = equal_words(words, count, equal, stream);

  message.direction = WC_DECRYPT;
  check(wc_run("cuda", &result, &message, 1, stream), "decrypt");
  const unsigned long long back = equal_words(words, count, equal, stream);

  wc_key_free(key);  // after the stream is done with it: equal_words waited
  check(cudaFree(words), "free");
  check(cudaFree(equal), "free");
  check(cudaStreamDestroy(stream), "stream");
  std::printf("%zu words on the GPU: %llu unchanged after encryption, %llu after decryption\n", count, hidden, back);
  return hidden < 100 && back == count ? EXIT_SUCCESS : EXIT_FAILURE;
}
