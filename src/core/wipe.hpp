// SPDX-License-Identifier: Apache-2.0
// Wiping of secrets: a store that the compiler may not remove, and containers that wipe their content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace warpcipher {

// Overwrites `size` bytes with zeros. The empty assembly statement makes the stores visible to the compiler, so
// that dead-store elimination keeps them.
inline void secure_wipe(void* data, std::size_t size) noexcept {
  if (size == 0) return;
  std::memset(data, 0, size);
  __asm__ __volatile__("" : : "r"(data) : "memory");
}

// A plain struct (key schedule, tweak, ...) that is wiped when it goes out of scope.
template <class T>
class Secret {
  static_assert(std::is_trivially_copyable_v<T>, "only plain data can be wiped byte by byte");

 public:
  Secret() = default;
  explicit Secret(const T& value) : value_(value) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret() { secure_wipe(&value_, sizeof value_); }

  T& operator*() noexcept { return value_; }
  const T& operator*() const noexcept { return value_; }
  T* operator->() noexcept { return &value_; }
  const T* operator->() const noexcept { return &value_; }

 private:
  T value_{};
};

// Bytes on the heap, of a size fixed at construction, wiped when freed.
class SecretBytes {
 public:
  SecretBytes() = default;
  explicit SecretBytes(std::size_t size) : bytes_(size) {}
  explicit SecretBytes(std::span<const std::uint8_t> bytes) : bytes_(bytes.begin(), bytes.end()) {}
  SecretBytes(const SecretBytes&) = delete;
  SecretBytes& operator=(const SecretBytes&) = delete;
  SecretBytes(SecretBytes&&) noexcept = default;
  SecretBytes& operator=(SecretBytes&& other) noexcept {
    wipe();
    bytes_ = std::move(other.bytes_);
    return *this;
  }
  ~SecretBytes() { wipe(); }

  std::uint8_t* data() noexcept { return bytes_.data(); }
  const std::uint8_t* data() const noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return bytes_.size(); }

 private:
  void wipe() noexcept { secure_wipe(bytes_.data(), bytes_.size()); }

  std::vector<std::uint8_t> bytes_;
};

}  // namespace warpcipher
