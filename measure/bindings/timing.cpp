// SPDX-License-Identifier: Apache-2.0
// What `warpcipher bench` needs of a GPU: events, streams, page-locked memory, bare copies, the rates of a
// multiprocessor, and what the device is. In a build without CUDA each of them says so.
#include <cstdint>
#include <string>
#include <string_view>

#include "bind.hpp"
#include "core/error.hpp"
#include "device.hpp"
#include "engine/device_engine.hpp"
#include "gil.hpp"
#include "operand.hpp"

#if WARPCIPHER_HAS_CUDA
#include <cuda_runtime_api.h>

#include "engine/cuda/runtime/bounds.hpp"
#endif

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// Throws EngineError where the engine cannot run.
DeviceEngine& cuda_engine() { return static_cast<DeviceEngine&>(find_engine("cuda")); }

// Page-locked host memory of the cuda engine; wiped when freed.
class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t size) : size_(size), data_(cuda_engine().allocate_pinned(size)) {}
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() { cuda_engine().free_pinned(data_, size_, size_); }

  std::size_t size() const { return size_; }
  std::uintptr_t pointer() const { return reinterpret_cast<std::uintptr_t>(data_); }

 private:
  std::size_t size_;
  void* data_;
};

// A stream that does not wait for the default one.
class WorkStream {
 public:
  explicit WorkStream(int device) : device_(device) {
    DeviceEngine& engine = cuda_engine();
    const DeviceScope scope(device);
    stream_ = engine.create_stream();
  }
  WorkStream(const WorkStream&) = delete;
  WorkStream& operator=(const WorkStream&) = delete;
  ~WorkStream() { cuda_engine().destroy_stream(stream_); }

  // Memory that calls on the stream kept alive goes before the stream can.
  void wait() const {
    {
      const GilReleased released;
      const DeviceScope scope(device_);
      cuda_engine().wait(stream_);
    }
    release_done();
  }

  // Zeros at `pointer`, enqueued.
  void clear(std::uintptr_t pointer, std::size_t size) const {
    const DeviceScope scope(device_);
    cuda_engine().clear(reinterpret_cast<void*>(pointer), size, stream_);
  }

  int device() const { return device_; }
  Stream native() const { return stream_; }
  std::uintptr_t pointer() const { return reinterpret_cast<std::uintptr_t>(stream_); }

 private:
  int device_;
  Stream stream_ = nullptr;
};

#if WARPCIPHER_HAS_CUDA

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw Error(Status::engine_failure, std::string(what) + ": " + cudaGetErrorString(error));
  }
}

// Two events on a stream, and the time between them as the device saw it.
class Stopwatch {
 public:
  explicit Stopwatch(const WorkStream& stream) : stream_(stream) {
    const DeviceScope scope(stream.device());
    check(cudaEventCreate(&start_), "cudaEventCreate");
    check(cudaEventCreate(&stop_), "cudaEventCreate");
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }

  void start() { record(start_); }
  void stop() { record(stop_); }

  double seconds() const {
    {
      const GilReleased released;
      check(cudaEventSynchronize(stop_), "cudaEventSynchronize");
    }
    release_done();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start_, stop_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) / 1e3;
  }

 private:
  void record(cudaEvent_t event) const {
    const DeviceScope scope(stream_.device());
    check(cudaEventRecord(event, static_cast<cudaStream_t>(stream_.native())), "cudaEventRecord");
  }

  const WorkStream& stream_;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

void copy(const WorkStream& stream, std::uintptr_t target, std::uintptr_t source, std::size_t size) {
  const DeviceScope scope(stream.device());
  check(cudaMemcpyAsync(reinterpret_cast<void*>(target), reinterpret_cast<const void*>(source), size, cudaMemcpyDefault,
                        static_cast<cudaStream_t>(stream.native())),
        "cudaMemcpyAsync");
}

nb::tuple pipe_rate(const WorkStream& stream, std::string_view name, std::uint32_t operations) {
  cuda::PipeRate rate{};
  {
    const GilReleased released;
    const DeviceScope scope(stream.device());
    if (name != "shared_load" && name != "logic") {
      throw Error(Status::invalid_argument, "pipe is '" + std::string(name) + "': expected shared_load or logic");
    }
    rate =
        cuda::measure_pipe(name == "logic" ? cuda::Pipe::logic : cuda::Pipe::shared_load, operations, stream.native());
  }
  return nb::make_tuple(rate.per_clock, rate.clock_hz);
}

void launch_nothing(const WorkStream& stream) {
  const DeviceScope scope(stream.device());
  cuda::launch_nothing(stream.native());
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

nb::dict device_facts(int device) {
  cuda_engine();
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (device < 0 || device >= count) {
    throw Error(Status::invalid_argument, "device is " + std::to_string(device) + ": this machine has " +
                                              std::to_string(count) + " GPUs, numbered from 0");
  }
  const DeviceScope scope(device);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  std::size_t free_len = 0;
  std::size_t total_len = 0;
  check(cudaMemGetInfo(&free_len, &total_len), "cudaMemGetInfo");
  int driver = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  char bus_id[32] = {};
  check(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, device), "cudaDeviceGetPCIBusId");
  nb::dict facts;
  facts["name"] = std::string(properties.name);
  facts["compute_capability"] = std::to_string(properties.major) + "." + std::to_string(properties.minor);
  facts["multiprocessors"] = properties.multiProcessorCount;
  facts["l2_bytes"] = properties.l2CacheSize;
  facts["memory_bytes"] = total_len;
  facts["free_bytes"] = free_len;
  facts["bus_id"] = std::string(static_cast<const char*>(bus_id));
  facts["driver_cuda"] = version_text(driver);
  facts["runtime_cuda"] = version_text(CUDART_VERSION);
  return facts;
}

#else

[[noreturn]] void refuse() {
  cuda_engine();  // throws, and says why
  throw Error(Status::engine_unavailable, "built without CUDA");
}

class Stopwatch {
 public:
  explicit Stopwatch(const WorkStream&) { refuse(); }
  void start() { refuse(); }
  void stop() { refuse(); }
  double seconds() const { refuse(); }
};

void copy(const WorkStream&, std::uintptr_t, std::uintptr_t, std::size_t) { refuse(); }
nb::tuple pipe_rate(const WorkStream&, std::string_view, std::uint32_t) { refuse(); }
void launch_nothing(const WorkStream&) { refuse(); }
nb::dict device_facts(int) { refuse(); }

#endif

}  // namespace

void bind_timing(nb::module_& m) {
  nb::class_<PinnedMemory>(m, "PinnedMemory", "Page-locked host memory, wiped when freed.")
      .def(nb::init<std::size_t>(), nb::arg("size"))
      .def("__len__", &PinnedMemory::size)
      .def_prop_ro("pointer", &PinnedMemory::pointer);
  nb::class_<WorkStream>(m, "WorkStream", "A CUDA stream that does not wait for the default one.")
      .def(nb::init<int>(), nb::arg("device"))
      .def_prop_ro("device", &WorkStream::device)
      .def_prop_ro("pointer", &WorkStream::pointer, "The cudaStream_t, as `stream=` takes it.")
      .def("wait", &WorkStream::wait, "Returns when all work on the stream is done.")
      .def("clear", &WorkStream::clear, nb::arg("pointer"), nb::arg("size"), "Enqueues zeros at device memory.")
      .def("copy", &copy, nb::arg("target"), nb::arg("source"), nb::arg("size"),
           "Enqueues a copy between any two of device and host memory.")
      .def("launch_nothing", &launch_nothing, "Enqueues a kernel that does nothing.")
      .def(
          "pipe_rate", &pipe_rate, nb::arg("pipe"), nb::arg("operations"),
          nb::sig("def pipe_rate(self, pipe: str, operations: int) -> tuple[float, float]"),
          "Operations (\"shared_load\" or \"logic\") of one lane a clock and multiprocessor, and the clock in Hz, over "
          "that many operations a thread. Waits.");
  nb::class_<Stopwatch>(m, "Stopwatch", "Device time between two points of a stream.")
      .def(nb::init<const WorkStream&>(), nb::arg("stream"), nb::keep_alive<1, 2>())
      .def("start", &Stopwatch::start)
      .def("stop", &Stopwatch::stop)
      .def("seconds", &Stopwatch::seconds, "Waits for the stop.");
  m.def("device_facts", &device_facts, nb::arg("device"),
        nb::sig("def device_facts(device: int) -> dict[str, typing.Any]"), "What a GPU is: name, sizes, versions.");
}

}  // namespace warpcipher::python
