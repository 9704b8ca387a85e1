// SPDX-License-Identifier: Apache-2.0
// Memory, streams and events of the emulated GPUs. Work on a stream is kept until something waits for it; then it runs,
// in order within a stream and in a random order between streams. Some runs earlier, at random. So code that reads a
// buffer too early, or changes or frees one that a copy has yet to read, gives a wrong result or an error of the
// sanitizer. As in CUDA, copies from pageable memory read it before they return, copies to it are waited for, and
// others run late.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

#include "cuda_runtime.h"

struct CUevent_st {
  unsigned recorded = 0;  // how often it was put on a stream
  unsigned happened = 0;
  bool destroyed = false;
};

struct CUstream_st {
  struct Work {
    std::function<void()> run;
    CUevent_st* waits_for;  // nullptr: nothing
    unsigned generation;    // of the event
  };

  int device = 0;
  std::deque<Work> work;

  bool ready() const {
    return !work.empty() &&
           (work.front().waits_for == nullptr || work.front().waits_for->happened >= work.front().generation);
  }
};

struct CUmemPool_st {
  int device;
};

// For tests: how many allocations of device memory succeed from now on; -1: all.
extern int emulated_allocations_left;
int emulated_allocations_left = -1;

namespace emulation {
namespace {

constexpr int device_count = 2;
constexpr std::size_t texture_alignment = 512;  // cudaDevAttrTextureAlignment

struct Range {
  std::size_t size;
  int device;
};

using Ranges = std::map<const char*, Range>;

std::recursive_mutex mutex;
// Never destroyed, so that what is kept to the end of the process does not count as leaked.
Ranges& device_memory = *new Ranges;
Ranges& pinned_memory = *new Ranges;
CUstream_st default_streams[device_count] = {{.device = 0, .work = {}}, {.device = 1, .work = {}}};
std::vector<std::unique_ptr<CUstream_st>>& streams = *new std::vector<std::unique_ptr<CUstream_st>>;
std::mt19937 random_order(2);
thread_local int current_device = 0;

const Range* find(const Ranges& ranges, const void* pointer) {
  const char* p = static_cast<const char*>(pointer);
  auto after = ranges.upper_bound(p);
  if (after == ranges.begin()) return nullptr;
  --after;
  return p < after->first + after->second.size ? &after->second : nullptr;
}

// Null, cudaStreamLegacy (1) and cudaStreamPerThread (2) all stand for the default stream here.
CUstream_st& resolve(cudaStream_t stream) {
  return reinterpret_cast<std::uintptr_t>(stream) <= 2 ? default_streams[current_device] : *stream;
}

// Runs the next work of one stream, picked at random. False if no stream has any that can run.
bool step() {
  std::vector<CUstream_st*> ready;
  for (CUstream_st& stream : default_streams) {
    if (stream.ready()) ready.push_back(&stream);
  }
  for (const auto& stream : streams) {
    if (stream->ready()) ready.push_back(stream.get());
  }
  if (ready.empty()) return false;
  CUstream_st& chosen = *ready[random_order() % ready.size()];
  const std::function<void()> run = std::move(chosen.work.front().run);
  chosen.work.pop_front();
  if (run) run();
  return true;
}

template <class Done>
void run_until(Done&& done) {
  while (!done()) {
    if (step()) continue;
    std::fprintf(stderr, "emulated GPU: streams wait for each other for ever\n");
    std::abort();
  }
}

void finish(const CUstream_st& stream) {
  run_until([&] { return stream.work.empty(); });
}

void add(CUstream_st& stream, CUstream_st::Work work) {
  stream.work.push_back(std::move(work));
  if (random_order() % 4 != 0) return;
  for (unsigned i = random_order() % 4; i > 0; --i) step();
}

void check_range(const Ranges& ranges, const void* pointer, std::size_t size, const char* what) {
  const Range* const range = find(ranges, pointer);
  if (size == 0 || (range != nullptr && find(ranges, static_cast<const char*>(pointer) + size - 1) == range)) return;
  std::fprintf(stderr, "emulated GPU: %s leaves its allocation\n", what);
  std::abort();
}

cudaError_t allocate(void** memory, std::size_t size, int device) {
  if (emulated_allocations_left == 0) return cudaErrorMemoryAllocation;
  if (emulated_allocations_left > 0) --emulated_allocations_left;
  *memory =
      std::aligned_alloc(texture_alignment, (size + texture_alignment - 1) / texture_alignment * texture_alignment);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*memory, 0xb6, size);
  device_memory[static_cast<const char*>(*memory)] = {size, device};
  return cudaSuccess;
}

void release(void* memory) {
  device_memory.erase(static_cast<const char*>(memory));
  std::free(memory);
}

}  // namespace

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  const std::lock_guard lock(mutex);
  CUstream_st& target = resolve(stream);
  if (target.device != current_device) return cudaErrorInvalidResourceHandle;
  add(target, {std::move(work), nullptr, 0});
  return cudaSuccess;
}

}  // namespace emulation

using namespace emulation;
using Lock = std::lock_guard<std::recursive_mutex>;

cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "emulated error"; }
const char* cudaGetErrorName(cudaError_t) { return "emulated"; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = device_count, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"emulated GPU", std::size_t{1} << 30, 9, 0, 3, 227 * 1024};
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { return *value = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = current_device, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= device_count) return cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const Lock lock(mutex);
  finish(default_streams[current_device]);
  for (const auto& stream : streams) {
    if (stream->device == current_device) finish(*stream);
  }
  return cudaSuccess;
}
// A GPU under NVIDIA's confidential computing, by the environment: the driver refuses to register host memory, and a
// copy from or to page-locked memory is over when the call returns. No managed memory is emulated at all.
bool is_confidential() {
  static const bool set = std::getenv("WARPCIPHER_EMULATE_CONFIDENTIAL") != nullptr;
  return set;
}
constexpr auto not_supported = static_cast<cudaError_t>(801);  // cudaErrorNotSupported

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  const Lock lock(mutex);
  void* const same = const_cast<void*>(pointer);
  if (const Range* const range = find(device_memory, pointer)) {
    *attributes = {cudaMemoryTypeDevice, range->device, same};
  } else if (find(pinned_memory, pointer) != nullptr) {
    *attributes = {cudaMemoryTypeHost, 0, same};
  } else {
    *attributes = {cudaMemoryTypeUnregistered, 0, nullptr};
  }
  return cudaSuccess;
}
// cuMemGetAddressRange is all of the driver that the project asks for by name. As there, a thread has no context before
// it makes something.
thread_local bool has_context = false;
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *function = reinterpret_cast<void*>(+[](unsigned long long* begin, std::size_t* size, unsigned long long address) {
    if (!has_context) return 201;  // CUDA_ERROR_INVALID_CONTEXT
    const Lock lock(mutex);
    const char* const pointer = reinterpret_cast<const char*>(address);
    const Ranges& ranges = find(device_memory, pointer) != nullptr ? device_memory : pinned_memory;
    const auto after = ranges.upper_bound(pointer);
    if (find(ranges, pointer) == nullptr) return 1;  // CUDA_ERROR_INVALID_VALUE
    *begin = reinterpret_cast<std::uintptr_t>(std::prev(after)->first);
    *size = std::prev(after)->second.size;
    return 0;
  });
  *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) { return *attributes = {}, cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, std::size_t) {
  return *blocks = 1, cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, std::size_t size) {
  const Lock lock(mutex);
  return allocate(memory, size, current_device);
}
cudaError_t cudaFree(void* memory) {
  const Lock lock(mutex);
  cudaDeviceSynchronize();
  return release(memory), cudaSuccess;
}
cudaError_t cudaMallocHost(void** memory, std::size_t size) {
  const Lock lock(mutex);
  *memory = std::calloc(size, 1);  // as from the system: nothing of the process's own
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  pinned_memory[static_cast<const char*>(*memory)] = {size, current_device};
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t size, unsigned) { return cudaMallocHost(memory, size); }
cudaError_t cudaFreeHost(void* memory) {
  const Lock lock(mutex);
  pinned_memory.erase(static_cast<const char*>(memory));
  return std::free(memory), cudaSuccess;
}
cudaError_t cudaHostRegister(void* memory, std::size_t size, unsigned) {
  if (is_confidential()) return not_supported;
  const Lock lock(mutex);
  pinned_memory[static_cast<const char*>(memory)] = {size, current_device};
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* memory) {
  const Lock lock(mutex);
  return pinned_memory.erase(static_cast<const char*>(memory)) == 1 ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  static CUmemPool_st pools[device_count] = {{0}, {1}};
  return *pool = &pools[properties->location.id], cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  const Lock lock(mutex);
  if (resolve(stream).device != pool->device) return cudaErrorInvalidValue;
  return allocate(memory, size, pool->device);
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  return enqueue(stream, [memory] { release(memory); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
  const Lock lock(mutex);
  if (size == 0) return cudaSuccess;
  CUstream_st& target = resolve(stream);
  const bool pageable = find(pinned_memory, kind == cudaMemcpyHostToDevice ? from : to) == nullptr;
  if (kind == cudaMemcpyHostToDevice) check_range(device_memory, to, size, "a copy to the device");
  if (kind == cudaMemcpyDeviceToHost) check_range(device_memory, from, size, "a copy from the device");
  if (kind == cudaMemcpyHostToDevice && pageable) {
    const auto* const bytes = static_cast<const char*>(from);
    auto staged = std::make_shared<std::vector<char>>(bytes, bytes + size);
    add(target, {[to, staged] { std::memcpy(to, staged->data(), staged->size()); }, nullptr, 0});
    return cudaSuccess;
  }
  add(target, {[to, from, size] { std::memmove(to, from, size); }, nullptr, 0});
  const bool waits = pageable ? kind == cudaMemcpyDeviceToHost : is_confidential();
  if (waits && kind != cudaMemcpyDeviceToDevice) finish(target);
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t size,
                                cudaStream_t stream) {
  const Lock lock(mutex);
  if (size == 0) return cudaSuccess;
  check_range(device_memory, to, size, "a copy to another device");
  check_range(device_memory, from, size, "a copy from another device");
  if (find(device_memory, to)->device != to_device) return cudaErrorInvalidDevice;
  if (find(device_memory, from)->device != from_device) return cudaErrorInvalidDevice;
  return enqueue(stream, [=] { std::memmove(to, from, size); });
}
// As in CUDA: of a copy from pageable memory to a device only the reading is over when it returns, and streams of the
// library's own do not wait for the default one, on which it is.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
  const Lock lock(mutex);
  CUstream_st& stream = default_streams[current_device];
  finish(stream);
  const cudaError_t error = cudaMemcpyAsync(to, from, size, kind, nullptr);
  if (kind != cudaMemcpyHostToDevice || find(pinned_memory, from) != nullptr) finish(stream);
  return error;
}
// In any order, each within an allocation on either side. Pageable memory is not supported.
cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const std::size_t* sizes, std::size_t count,
                                 cudaMemcpyAttributes* attributes, std::size_t* attribute_begins,
                                 std::size_t attribute_count, cudaStream_t stream) {
  const Lock lock(mutex);
  if (count == 0 || attribute_count != 1 || *attribute_begins != 0) return cudaErrorInvalidValue;
  if (attributes->srcAccessOrder != cudaMemcpySrcAccessOrderStream) return cudaErrorInvalidValue;
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random_order);
  for (const std::size_t i : order) {
    const bool in = find(device_memory, to[i]) != nullptr;
    check_range(device_memory, in ? to[i] : from[i], sizes[i], "a copy of a batch, on the device,");
    check_range(pinned_memory, in ? from[i] : to[i], sizes[i], "a copy of a batch, on the host,");
    if (sizes[i] == 0) return cudaErrorInvalidValue;
    add(resolve(stream), {[to = to[i], from = from[i], size = sizes[i]] { std::memmove(to, from, size); }, nullptr, 0});
  }
  if (is_confidential()) finish(resolve(stream));
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t size, cudaStream_t stream) {
  const Lock lock(mutex);
  check_range(device_memory, memory, size, "a memset");
  return enqueue(stream, [=] { std::memset(memory, value, size); });
}
cudaError_t cudaMemset(void* memory, int value, std::size_t size) {
  return cudaMemsetAsync(memory, value, size, nullptr);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  has_context = true;
  const Lock lock(mutex);
  streams.push_back(std::make_unique<CUstream_st>());
  *stream = streams.back().get();
  (*stream)->device = current_device;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(mutex);
  finish(*stream);
  std::erase_if(streams, [&](const auto& entry) { return entry.get() == stream; });
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Lock lock(mutex);
  finish(resolve(stream));
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Lock lock(mutex);
  step();
  return resolve(stream).work.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Lock lock(mutex);
  add(resolve(stream), {{}, event, event->recorded});
  return cudaSuccess;
}
// Events are kept for ever: work may still name one that was destroyed.
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  has_context = true;
  const Lock lock(mutex);
  static std::deque<CUevent_st> events;
  return *event = &events.emplace_back(), cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return event->destroyed = true, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock(mutex);
  const unsigned generation = ++event->recorded;
  add(resolve(stream), {[event, generation] { event->happened = generation; }, nullptr, 0});
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock(mutex);
  step();
  return event->happened >= event->recorded ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Lock lock(mutex);
  run_until([&] { return event->happened >= event->recorded; });
  return cudaSuccess;
}
cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                    const cudaTextureDesc*, const cudaResourceViewDesc*) {
  const void* const memory = resource->res.linear.devPtr;
  const Lock lock(mutex);
  if (find(device_memory, memory) == nullptr || reinterpret_cast<std::uintptr_t>(memory) % texture_alignment != 0) {
    return cudaErrorInvalidValue;
  }
  return *object = reinterpret_cast<cudaTextureObject_t>(new cudaResourceDesc(*resource)), cudaSuccess;
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  delete reinterpret_cast<cudaResourceDesc*>(object);
  return cudaSuccess;
}
