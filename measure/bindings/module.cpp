// SPDX-License-Identifier: Apache-2.0
// warpcipher_measure._native: the papers' variants as jobs, and what measuring needs of a GPU: streams, events, bare
// copies, the rates of a multiprocessor, and what the device is. A build without CUDA has the names, and refuses.
// Nothing of the library is in it. Memory comes and goes as addresses: the package sees to it that they are right.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "gpu.cuh"
#include "lab.hpp"
#include "once.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

#if WARPCIPHER_HAS_CUDA

using cuda::check;
using lab::DeviceScope;

// Streams that no WorkStream has. They are never destroyed: memory that calls kept alive is freed on them, at any time.
std::vector<cudaStream_t>& spare_streams(int device) {
  static std::map<int, std::vector<cudaStream_t>> spare;
  return spare[device];
}

// Frees objects that calls of the library kept alive for work that is done.
void release_done() { nb::module_::import_("warpcipher._native").attr("release_done")(); }

// A stream that does not wait for the default one, and two events on it: the time between them is the device's.
class WorkStream {
 public:
  explicit WorkStream(int device) : device_(device) {
    const DeviceScope scope(device);
    check(cudaEventCreate(&start_), "make an event");
    check(cudaEventCreate(&stop_), "make an event");
    std::vector<cudaStream_t>& spare = spare_streams(device);
    if (spare.empty()) {
      check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "make a stream");
    } else {
      stream_ = spare.back();
      spare.pop_back();
    }
  }
  WorkStream(const WorkStream&) = delete;
  WorkStream& operator=(const WorkStream&) = delete;
  ~WorkStream() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
    spare_streams(device_).push_back(stream_);
  }

  void wait() const {
    {
      const GilReleased released;
      const DeviceScope scope(device_);
      check(cudaStreamSynchronize(stream_), "wait for a stream");
    }
    release_done();
  }

  void copy(std::uintptr_t target, std::uintptr_t source, std::size_t size) const {
    const DeviceScope scope(device_);
    check(cudaMemcpyAsync(reinterpret_cast<void*>(target), reinterpret_cast<const void*>(source), size,
                          cudaMemcpyDefault, stream_),
          "copy memory");
  }

  nb::tuple pipe_rate(std::string_view name, std::uint32_t operations) const {
    if (name != "shared_load" && name != "logic") {
      throw Error(Status::invalid_argument, "pipe is '" + std::string(name) + "': expected shared_load or logic");
    }
    lab::PipeRate rate{};
    {
      const GilReleased released;
      const DeviceScope scope(device_);
      rate = lab::measure_pipe(name == "logic" ? lab::Pipe::logic : lab::Pipe::shared_load, operations, stream_);
    }
    return nb::make_tuple(rate.per_clock, rate.clock_hz);
  }

  void launch_nothing() const {
    const DeviceScope scope(device_);
    lab::launch_nothing(stream_);
  }

  std::uint32_t key_stream(std::string_view name, std::uint32_t units, std::uintptr_t sums) const {
    const DeviceScope scope(device_);
    return lab::start_key_stream(name, units, reinterpret_cast<std::uint32_t*>(sums), stream_);
  }

  void start() const { record(start_); }
  void stop() const { record(stop_); }

  double seconds() const {
    {
      const GilReleased released;
      check(cudaEventSynchronize(stop_), "wait for an event");
    }
    release_done();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start_, stop_), "read the time between events");
    return static_cast<double>(milliseconds) / 1e3;
  }

  int device() const { return device_; }
  std::uintptr_t pointer() const { return reinterpret_cast<std::uintptr_t>(stream_); }

 private:
  void record(cudaEvent_t event) const {
    const DeviceScope scope(device_);
    check(cudaEventRecord(event, stream_), "record an event");
  }

  int device_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

nb::dict device_facts(int device) {
  int count = 0;
  check(cudaGetDeviceCount(&count), "count the GPUs");
  if (device < 0 || device >= count) {
    throw Error(Status::invalid_argument, "device is " + std::to_string(device) + ": this machine has " +
                                              std::to_string(count) + " GPUs, numbered from 0");
  }
  const DeviceScope scope(device);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "look at the device");
  std::size_t free_len = 0;
  std::size_t total_len = 0;
  check(cudaMemGetInfo(&free_len, &total_len), "look at the device's memory");
  int driver = 0;
  check(cudaDriverGetVersion(&driver), "find the driver's version");
  char bus_id[32] = {};
  check(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, device), "find the device's bus");
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

[[noreturn]] void refuse() { throw Error(Status::engine_unavailable, "warpcipher-measure was built without CUDA"); }

class WorkStream {
 public:
  explicit WorkStream(int) { refuse(); }
  void wait() const { refuse(); }
  void copy(std::uintptr_t, std::uintptr_t, std::size_t) const { refuse(); }
  nb::tuple pipe_rate(std::string_view, std::uint32_t) const { refuse(); }
  void launch_nothing() const { refuse(); }
  std::uint32_t key_stream(std::string_view, std::uint32_t, std::uintptr_t) const { refuse(); }
  void start() const { refuse(); }
  void stop() const { refuse(); }
  double seconds() const { refuse(); }
  int device() const { refuse(); }
  std::uintptr_t pointer() const { refuse(); }
};

nb::dict device_facts(int) { refuse(); }

#endif

std::span<const std::uint8_t> bytes_of(const nb::bytes& object) {
  return {static_cast<const std::uint8_t*>(object.data()), object.size()};
}

void make_job(lab::Job* made, std::string_view paper, std::string_view variant, const nb::bytes& key,
              const nb::bytes& iv, std::map<std::string, std::int64_t> given, int device) {
  lab::Parameters parameters(std::move(given));
  new (made) lab::Job(lab::make_job(paper, variant, {bytes_of(key), bytes_of(iv), parameters, device}));
}

void run_job(const lab::Job& job, std::uintptr_t source, std::size_t source_size, std::uintptr_t target,
             std::size_t target_size, std::uintptr_t stream) {
  const GilReleased released;
  job.run({reinterpret_cast<const std::uint8_t*>(source), source_size, reinterpret_cast<std::uint8_t*>(target),
           target_size},
          reinterpret_cast<Stream>(stream));
}

nb::dict as_dict(const lab::Variant& variant) {
  nb::dict entry;
  entry["name"] = variant.name;
  entry["description"] = variant.description;
  entry["needs_gpu"] = variant.needs_gpu;
  entry["constant_time"] = variant.constant_time;
  entry["absent"] = variant.make ? std::string_view() : variant.absent;
  return entry;
}

void bind_timing(nb::module_& m) {
  nb::class_<WorkStream>(m, "WorkStream", "A CUDA stream that does not wait for the default one.")
      .def(nb::init<int>(), nb::arg("device"))
      .def_prop_ro("device", &WorkStream::device)
      .def_prop_ro("pointer", &WorkStream::pointer, "The cudaStream_t, as `stream=` takes it.")
      .def("wait", &WorkStream::wait, "Returns when all work on the stream is done.")
      .def("copy", &WorkStream::copy, nb::arg("target"), nb::arg("source"), nb::arg("size"),
           "Enqueues a copy between any two of device and host memory.")
      .def("start", &WorkStream::start, "Enqueues the point from which `seconds` counts.")
      .def("stop", &WorkStream::stop)
      .def("seconds", &WorkStream::seconds, "Device time between start and stop. Waits for the stop.")
      .def("launch_nothing", &WorkStream::launch_nothing, "Enqueues a kernel that does nothing.")
      .def("key_stream", &WorkStream::key_stream, nb::arg("name"), nb::arg("units"), nb::arg("sums"),
           "Enqueues units of a key stream (\"chacha20\": 64 bytes, \"aes-128-ctr\": 16) that stay in registers; "
           "returns "
           "how many lanes write the XOR of their words to `sums`.")
      .def(
          "pipe_rate", &WorkStream::pipe_rate, nb::arg("pipe"), nb::arg("operations"),
          nb::sig("def pipe_rate(self, pipe: str, operations: int) -> tuple[float, float]"),
          "Operations (\"shared_load\" or \"logic\") of one lane a clock and multiprocessor, and the clock in Hz, over "
          "that many operations a thread. Waits.");
  m.def("device_facts", &device_facts, nb::arg("device"),
        nb::sig("def device_facts(device: int) -> dict[str, typing.Any]"), "What a GPU is: name, sizes, versions.");
}

}  // namespace
}  // namespace warpcipher::python

WARPCIPHER_MODULE(_native, m) {
  using namespace warpcipher;
  m.doc() = "The native part of warpcipher_measure. Not a public interface.";
  python::register_errors();
  python::bind_timing(m);
  nb::class_<lab::Job>(m, "Job", "A variant made ready for one key.")
      .def("__init__", &python::make_job, nb::arg("paper"), nb::arg("variant"), nb::arg("key"), nb::arg("iv"),
           nb::arg("parameters"), nb::arg("device"))
      .def("run", &python::run_job, nb::arg("source"), nb::arg("source_size"), nb::arg("target"),
           nb::arg("target_size"), nb::arg("stream"), "Enqueues on a GPU; returns when done on a CPU.")
      .def("facts", [](const lab::Job& job) { return job.facts(); }, "What the runtime says about the kernel.");
  m.def(
      "variants",
      [](std::string_view paper) {
        nb::list list;
        for (const lab::Variant& variant : lab::find_paper(paper).variants) list.append(python::as_dict(variant));
        return list;
      },
      nb::arg("paper"), nb::sig("def variants(paper: str) -> list[dict[str, typing.Any]]"));
  m.def("papers", [] {
    std::vector<std::string> names;
    for (const lab::Paper& paper : lab::papers()) names.emplace_back(paper.name);
    return names;
  });
}
