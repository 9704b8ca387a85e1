// SPDX-License-Identifier: Apache-2.0
// A device engine's offers in addition to running plans: memory and streams, so that src/flow can bring host
// data to any kind of device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.hpp"
#include "message/message.hpp"
#include "message/pieces.hpp"
#include "mode/algorithm.hpp"

namespace warpcipher {

// A device's kernels for a batch, and why: for people. Running a batch does not use it.

// A batch of messages of one length, in device memory at multiples of 16, in columns and without AAD.
struct BatchShape {
  const Algorithm& algorithm;
  Direction direction = Direction::encrypt;
  std::uint64_t messages = 1;
  std::uint64_t size = 0;  // bytes of text each
  std::uint64_t keys = 1;  // keys that the messages share
};

struct Candidate {
  std::string_view name;
  std::string_view description;
  bool is_chosen;
  std::string reason;  // why it is chosen, or why not
};

// One question, and its candidates in the order of preference; one of them is chosen.
struct Decision {
  std::string_view subject;
  std::vector<Candidate> candidates;
};

// Lists of copies between device memory and page-locked memory.

// An entry of a list. A device performs the copy, and reads this layout; or the cores of the host do.
struct DeviceCopy {
  void* to;
  const void* from;
  std::size_t len;
};

// How much of the link a kernel uses that performs the copies of a list.
enum class Pace : std::uint8_t {
  full,
  gentle,  // leaves most of the link to a copy engine that moves texts the other way at the same time
};

// A choice between ways to compute the same result. The tuner (src/tuning/tuner.hpp) may make it by measurement.
struct Policy {
  std::string_view name;
  std::vector<std::string_view> values;  // that can run here, the shipped default first
  std::string_view value;                // in use
  std::string reason;                    // why that one
  std::string_view algorithm;            // the best value is the one with which it is fastest
};

// A range of memory, by its addresses; may be empty.
struct AddressRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  bool holds(const void* memory, std::size_t len) const {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    return address >= begin && address <= end && len <= end - address;
  }
};

// All functions throw Error{engine_failure, out_of_memory}. Copies, clears and frees are ordered on their stream.
// Streams and device memory belong to the device that was current for the calling thread when they were made; it is
// current again when they are used.
class DeviceEngine : public Engine {
 public:
  Memory memory() const final { return Memory::device; }

  // The devices among which large host data are divided, the calling thread's current device first. Throws
  // Error{invalid_argument} when the user's choice of devices cannot be read.
  virtual std::vector<int> devices_for_host_data() const = 0;

  // The current device of the calling thread. The other function makes another device current, and returns the former
  // one.
  virtual int current_device() const = 0;
  virtual int select_device(int device) = 0;

  // The policies of a device; and the choice of a value, for runs that begin later. An empty value restores the
  // default; an unknown device, name or value changes nothing. From any thread.
  virtual std::vector<Policy> policies(int device) const = 0;
  virtual void choose_policy(int device, std::string_view name, std::string_view value) = 0;

  // Which kernels a batch of that shape would run on a device, and why. Throws Error{invalid_argument} for a shape that
  // no batch has, Error{engine_unavailable} if the engine cannot run.
  virtual std::vector<Decision> explain(const BatchShape& shape, int device) const = 0;

  virtual Stream create_stream() = 0;
  virtual void destroy_stream(Stream stream) noexcept = 0;
  virtual void wait(Stream stream) = 0;
  virtual bool is_done(Stream stream) = 0;  // whether wait() would return at once

  Status run_one(const Message& message, Stream stream) override = 0;  // without a plan

  // As run(), for messages in memory of allocate() on the current device: it does not look up where they lie.
  virtual void run_allocated(const Plan& plan, std::span<Status> statuses, Stream stream) = 0;

  // Runs `count` data units of XTS of one key and length in memory of allocate(); `first` is the first. They follow
  // each other without gaps, and so do their IVs in host memory, which must stay until the stream has passed.
  virtual void run_sectors(const Message& first, std::size_t count, Stream stream) = 0;

  // Runs a columnar batch whose text lies in device memory, checked and planned on the device, and fills in the
  // results. Returns ok, invalid_tag or invalid_padding for the batch. Returns nothing if the caller must run() the
  // messages instead: because that is as fast, because it cannot run such a batch, or because it found an error. Then
  // nothing has been written. The caller has checked the number of entries in each column. Throws
  // Error{invalid_argument} for arrays that are not in the kind of memory that the caller says.
  virtual std::optional<Status> run_columns(const Columns&, std::span<Result>, Stream) { return std::nullopt; }

  // Runs messages of AES-GCM or ChaCha20-Poly1305, of one algorithm and direction, whose texts lie in pieces; `in` and
  // `out` are the ciphertext. All lies in memory of the current device, which is not looked up. Waits for nothing.
  // verdicts: of decryption, a word for each message: 1, or 0 where its tag is wrong; then its pieces are zeros or what
  // they were.
  virtual void run_pieces(std::span<const Message>, const Pieces&, std::uint32_t* /*verdicts*/, Stream) {
    throw Error(Status::engine_unavailable, "engine '", name(), "' takes no texts in pieces");
  }

  // From this many messages on, run_columns() of columns in host memory is faster than run() of the messages.
  virtual std::size_t least_columns() const { return SIZE_MAX; }

  // Removes PKCS#7 padding from decrypted messages in device memory, all at once. Sets lengths[i] to the bytes of
  // padding of message i, or to 0 if it is wrong: then its text is wiped. Waits for the stream.
  virtual void take_padding_off(std::span<const Message* const> messages, std::span<std::uint32_t> lengths,
                                Stream stream) = 0;

  // Device memory. deallocate takes the size that was allocated, and wipes the first `used` bytes.
  virtual void* allocate(std::size_t size, Stream stream) = 0;
  virtual void deallocate(void* memory, std::size_t size, std::size_t used, Stream stream) noexcept = 0;

  // Page-locked host memory: copies from and to it overlap with kernels. free_pinned takes the size that was allocated,
  // and wipes the first `used` bytes.
  virtual void* allocate_pinned(std::size_t size) = 0;
  virtual void free_pinned(void* memory, std::size_t size, std::size_t used) noexcept = 0;

  // True if the host memory at `memory` is page-locked, by whatever code, so that copies need no help from the cores.
  virtual bool is_pinned(const void* memory, std::size_t size) const = 0;

  // The page-locked range around `memory` that the device can write to at the host's address.
  virtual AddressRange find_page_locked(const void* memory) const = 0;

  virtual void copy_to_device(void* device, const void* host, std::size_t size, Stream stream) = 0;
  virtual void copy_to_host(void* host, const void* device, std::size_t size, Stream stream) = 0;
  // The first `len` bytes of each of `count` rows, which begin `step` bytes apart, to a range of find_page_locked().
  virtual void copy_rows_to_host(void* host, const void* rows, std::size_t step, std::size_t len, std::size_t count,
                                 Stream stream) = 0;
  // Between ranges of device memory that do not overlap.
  virtual void copy_on_device(void* to, const void* from, std::size_t size, Stream stream) = 0;
  // Copies from or to page-locked memory, in any order: one call for many is cheaper for the device. No copy is empty.
  virtual void copy_all_to_device(std::span<const DeviceCopy> copies, Stream stream) = 0;
  virtual void copy_all_to_host(std::span<const DeviceCopy> copies, Stream stream) = 0;
  // Many short copies at once, between device memory and ranges of find_page_locked(), in either direction. The list is
  // in device memory.
  virtual void copy_many(const DeviceCopy* copies, std::size_t count, Pace pace, Stream stream) = 0;
  virtual void clear(void* device, std::size_t size, Stream stream) = 0;
};

// Makes a device current for this thread until the end of the scope.
class SelectedDevice {
 public:
  SelectedDevice(DeviceEngine& engine, int device) : engine_(engine), former_(engine.select_device(device)) {}
  SelectedDevice(const SelectedDevice&) = delete;
  SelectedDevice& operator=(const SelectedDevice&) = delete;
  ~SelectedDevice() {
    try {
      engine_.select_device(former_);
    } catch (const Error&) {  // the driver is gone: no device can be restored
    }
  }

 private:
  DeviceEngine& engine_;
  int former_;
};

// The engine of NVIDIA GPUs, in a build with CUDA.
DeviceEngine& cuda_engine();

}  // namespace warpcipher
