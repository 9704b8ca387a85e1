// SPDX-License-Identifier: Apache-2.0
#include "bind.hpp"

#include <nanobind/ndarray.h>

#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/device_engine.hpp"
#include "gil.hpp"
#include "operand.hpp"

#if WARPCIPHER_HAS_CUDA
#include <cuda_runtime_api.h>
#endif

namespace nb = nanobind;

namespace warpcipher::python {

#if WARPCIPHER_HAS_CUDA

namespace {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw Error(error == cudaErrorMemoryAllocation ? Status::out_of_memory : Status::engine_failure,
                joined(what, ": ", cudaGetErrorString(error)));
  }
}

cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream); }

// Work on a stream, and the objects that it reads or writes.
struct Kept {
  int device;
  cudaEvent_t done;
  std::vector<nb::object> objects;
};

// Guarded by the GIL. release_kept frees it at exit, so that no object outlives the interpreter.
std::deque<Kept>& kept() {
  static auto* list = new std::deque<Kept>;
  return *list;
}

// Events of a device that may be recorded again: making one takes longer than recording it. Guarded by the GIL.
std::vector<cudaEvent_t>& spare_events(int device) {
  static auto* const lists = new std::unordered_map<int, std::vector<cudaEvent_t>>;
  return (*lists)[device];
}

// The device is current.
cudaEvent_t take_event(int device) {
  std::vector<cudaEvent_t>& spare = spare_events(device);
  cudaEvent_t event = nullptr;
  if (spare.empty()) {
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  } else {
    event = spare.back();
    spare.pop_back();
  }
  return event;
}

// Releases objects whose work is done, the oldest first; with `wait`, all objects. In the child of a fork the driver
// does not work.
void sweep(bool wait) {
  if (cuda::is_lost_at_fork()) {
    const std::deque<Kept> gone = std::exchange(kept(), {});
    return;
  }
  while (!kept().empty()) {
    Kept& oldest = kept().front();
    const DeviceScope scope(oldest.device);
    if (wait) {
      cudaEventSynchronize(oldest.done);
    } else if (cudaEventQuery(oldest.done) == cudaErrorNotReady) {
      return;
    }
    spare_events(oldest.device).push_back(oldest.done);
    const Kept gone = std::move(oldest);  // destructors of its objects may call this function
    kept().pop_front();
  }
}

}  // namespace

DeviceScope::DeviceScope(int device) : former_(host_device) {
  if (device == host_device) return;
  int current = 0;
  check(cudaGetDevice(&current), "cudaGetDevice");
  if (current == device) return;
  check(cudaSetDevice(device), "cudaSetDevice");
  former_ = current;
}

DeviceScope::~DeviceScope() {
  if (former_ != host_device) cudaSetDevice(former_);
}

void keep_until_done(std::vector<nb::object> objects, int device, Stream stream) {
  sweep(false);
  const DeviceScope scope(device);
  const cudaEvent_t done = take_event(device);
  const cudaError_t error = cudaEventRecord(done, native(stream));
  if (error != cudaSuccess) {
    cudaEventDestroy(done);
    check(error, "cudaEventRecord");
  }
  kept().push_back({device, done, std::move(objects)});
}

static void release_done() { sweep(false); }

static void release_kept() { sweep(true); }

// Makes `stream` wait for the work that is now on `other`.
static void stream_wait(std::uintptr_t stream, std::uintptr_t other, int device) {
  const DeviceScope scope(device);
  cudaEvent_t done = nullptr;
  check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming), "cudaEventCreate");
  cudaError_t error = cudaEventRecord(done, reinterpret_cast<cudaStream_t>(other));
  if (error == cudaSuccess) error = cudaStreamWaitEvent(reinterpret_cast<cudaStream_t>(stream), done, 0);
  cudaEventDestroy(done);  // its resources go once it has happened
  check(error, "cudaStreamWaitEvent");
}

static int pointer_device(std::uintptr_t pointer) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, reinterpret_cast<const void*>(pointer)), "cudaPointerGetAttributes");
  if (attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged) return attributes.device;
  if (pointer != 0) throw nb::buffer_error("the array's pointer is not memory of a CUDA device");
  int current = 0;  // an empty array has no memory
  check(cudaGetDevice(&current), "cudaGetDevice");
  return current;
}

// True also where the driver refuses to say: of the legacy default stream, while another one is captured.
bool is_capturing(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(native(stream), &status) == cudaSuccess) return status != cudaStreamCaptureStatusNone;
  cudaGetLastError();
  return true;
}

// Copies `count` rows of `length` bytes, whose begins are `stride` bytes apart, to where they follow each other.
static void pack_rows(void* to, const void* from, std::size_t count, std::size_t stride, std::size_t length,
                      Stream stream) {
  check(cudaMemcpy2DAsync(to, length, from, stride, length, count, cudaMemcpyDeviceToDevice, native(stream)),
        "cudaMemcpy2DAsync");
}

#else

DeviceScope::DeviceScope(int device) : former_(host_device) {
  if (device != host_device) {
    throw Error(Status::engine_unavailable, "the data lies on a GPU and this build has no CUDA engine");
  }
}

DeviceScope::~DeviceScope() { static_cast<void>(former_); }  // no device to restore

void keep_until_done(std::vector<nb::object>, int device, Stream) { const DeviceScope scope(device); }

static void release_done() {}

static void release_kept() {}

static void stream_wait(std::uintptr_t, std::uintptr_t, int device) { const DeviceScope scope(device); }

static int pointer_device(std::uintptr_t) {
  const DeviceScope scope(0);
  return host_device;
}

bool is_capturing(Stream) { return false; }

static void pack_rows(void*, const void*, std::size_t, std::size_t, std::size_t, Stream) { const DeviceScope scope(0); }

#endif

DeviceEngine& usable_cuda_engine() { return static_cast<DeviceEngine&>(find_engine("cuda")); }

namespace {

// Device memory for results of libraries that cannot lend an array to write to (JAX) or have no allocator that is known
// here. Freed, and wiped, on the stream that it was made for.
class DeviceArray {
 public:
  DeviceArray(std::size_t size, int device, std::uintptr_t stream)
      : size_(size), allocated_(size), device_(device), stream_(reinterpret_cast<Stream>(stream)) {
    const DeviceScope scope(device);
    if (size != 0) data_ = usable_cuda_engine().allocate(size, stream_);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() {
    if (data_ == nullptr) return;
    try {
      const DeviceScope scope(device_);
      usable_cuda_engine().deallocate(data_, allocated_, allocated_, stream_);
    } catch (const Error&) {  // the driver is shutting down and takes the memory with it
    }
  }

  // Leaves the first `size` bytes: padding was taken off.
  void truncate(std::size_t size) {
    if (size > size_) refuse("an array cannot be truncated to more than its size");
    size_ = size;
  }

  // Overwrites a range with zeros; returns when it is done.
  void clear(std::size_t begin, std::size_t len) {
    std::uint8_t* const place = range(begin, len);
    const DeviceScope scope(device_);
    usable_cuda_engine().clear(place, len, stream_);
    usable_cuda_engine().wait(stream_);
  }

  // Copies rows of `from`, another array of this device, to where they follow each other here; returns when it is done.
  void pack(std::size_t begin, const DeviceArray& from, std::size_t from_begin, std::size_t count, std::size_t stride,
            std::size_t length) {
    if (count == 0 || length == 0) return;
    if (from.device_ != device_ || &from == this || stride < length || (count - 1) > SIZE_MAX / stride ||
        (count - 1) * stride > SIZE_MAX - length || count > SIZE_MAX / length) {
      refuse("no rows of another array of the device");
    }
    const std::uint8_t* const source = from.range(from_begin, (count - 1) * stride + length);
    std::uint8_t* const place = range(begin, count * length);
    const DeviceScope scope(device_);
    usable_cuda_engine().wait(from.stream_);
    pack_rows(place, source, count, stride, length, stream_);
    usable_cuda_engine().wait(stream_);
  }

  // Copies host memory; returns when it is done.
  void fill(std::size_t begin, nb::handle data) {
    const Operand bytes(data, "data", Operand::Use::read);
    if (bytes.device() != host_device) throw nb::value_error("data lies on a GPU: expected host memory");
    std::uint8_t* const place = range(begin, bytes.size());
    const GilReleased released;
    const DeviceScope scope(device_);
    usable_cuda_engine().copy_to_device(place, bytes.data(), bytes.size(), stream_);
    usable_cuda_engine().wait(stream_);
  }

  // Copies a range to other memory of this device; returns when it is done. stream: of the former uses of that memory.
  void copy_to(std::size_t begin, std::size_t len, nb::handle out, std::size_t out_begin, std::uintptr_t stream) const {
    const Operand memory(out, "out", Operand::Use::write);
    if (memory.device() != device_) throw nb::value_error("out is not memory of the array's device");
    if (out_begin > memory.size() || len > memory.size() - out_begin) throw nb::value_error("out is too short");
    const std::uint8_t* const source = range(begin, len);
    const GilReleased released;
    const DeviceScope scope(device_);
    usable_cuda_engine().wait(reinterpret_cast<Stream>(stream));
    usable_cuda_engine().copy_on_device(memory.data() + out_begin, source, len, stream_);
    usable_cuda_engine().wait(stream_);
  }

  std::uint8_t* range(std::size_t begin, std::size_t len) const {
    if (begin > size_ || len > size_ - begin) {
      refuse("the range [", begin, ", +", len, ") leaves the array, which has ", size_, " bytes");
    }
    return static_cast<std::uint8_t*>(data_) + begin;
  }

  void* data() const { return data_; }
  std::size_t size() const { return size_; }
  int device() const { return device_; }
  std::uintptr_t stream() const { return reinterpret_cast<std::uintptr_t>(stream_); }

 private:
  void* data_ = nullptr;
  std::size_t size_;
  std::size_t allocated_;
  int device_;
  Stream stream_;
};

// DLPack's stream argument: -1 means that the caller sees to the order itself.
nb::object to_dlpack(nb::handle_t<DeviceArray> self, nb::object stream, nb::kwargs options) {
  const DeviceArray& array = nb::cast<const DeviceArray&>(self);
  if (options.contains("copy") && nb::cast<nb::object>(options["copy"]).is(nb::bool_(true))) {
    throw nb::buffer_error("this array cannot be copied on export");
  }
  const std::int64_t consumer = stream.is_none() ? 1 : nb::cast<std::int64_t>(stream);
  if (consumer != -1) {
    const auto pointer = static_cast<std::uintptr_t>(consumer);
    if (pointer != array.stream()) stream_wait(pointer, array.stream(), array.device());
  }
  const std::size_t shape[1] = {array.size()};
  nb::ndarray<nb::array_api, std::uint8_t> tensor(array.data(), 1, shape, self, nullptr, nb::dtype<std::uint8_t>(),
                                                  nb::device::cuda::value, array.device());
  // nanobind's own array object speaks every version of the protocol.
  nb::object exporter = nb::cast(tensor);
  nb::object version = options.contains("max_version") ? nb::object(options["max_version"]) : nb::none();
  return exporter.attr("__dlpack__")(nb::arg("max_version") = version);
}

// A range of an array as elements of a dtype that DLPack has, of that code and that many bits.
nb::object tensor_of(nb::handle_t<DeviceArray> self, std::size_t begin, int code, int bits, nb::tuple shape) {
  const DeviceArray& array = nb::cast<const DeviceArray&>(self);
  std::vector<std::size_t> extents;
  std::size_t len = 1;
  for (const nb::handle extent : shape) {
    extents.push_back(nb::cast<std::size_t>(extent));
    if (extents.back() != 0 && len > SIZE_MAX / extents.back()) throw nb::value_error("no array has this shape");
    len *= extents.back();
  }
  if (bits <= 0 || bits % 8 != 0 || len > SIZE_MAX / 128 || bits > 1024)
    throw nb::value_error("no dtype of whole bytes");
  std::uint8_t* const data = array.range(begin, len * static_cast<std::size_t>(bits / 8));
  nb::dlpack::dtype dtype{};
  dtype.code = static_cast<std::uint8_t>(code);
  dtype.bits = static_cast<std::uint8_t>(bits);
  dtype.lanes = 1;
  return nb::cast(nb::ndarray<nb::array_api>(data, extents.size(), extents.data(), self, nullptr, dtype,
                                             nb::device::cuda::value, array.device()));
}

nb::dict array_interface(const DeviceArray& array) {
  nb::dict entry;
  entry["shape"] = nb::make_tuple(array.size());
  entry["typestr"] = "|u1";
  entry["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.data()), false);
  entry["strides"] = nb::none();
  entry["version"] = 3;
  entry["stream"] = array.stream() == 0 ? std::uintptr_t{1} : array.stream();
  return entry;
}

}  // namespace

void bind_device(nb::module_& m) {
  nb::class_<DeviceArray>(m, "DeviceArray",
                          "A one-dimensional array of bytes on a CUDA device, for the result of an input whose library "
                          "has no way to allocate one. Hand it to any library through DLPack or the CUDA array "
                          "interface.")
      .def(nb::init<std::size_t, int, std::uintptr_t>(), nb::arg("size"), nb::arg("device"), nb::arg("stream"))
      .def("__len__", &DeviceArray::size)
      .def("truncate", &DeviceArray::truncate, nb::arg("size"),
           "Leaves the first `size` bytes. Private to the package.")
      .def("clear", &DeviceArray::clear, nb::arg("begin"), nb::arg("size"),
           "Overwrites a range with zeros. Private to the package.")
      .def("fill", &DeviceArray::fill, nb::arg("begin"), nb::arg("data"),
           nb::sig("def fill(self, begin: int, data: typing_extensions.Buffer) -> None"),
           "Copies host memory into a range. Private to the package.")
      .def("pack", &DeviceArray::pack, nb::arg("begin"), nb::arg("source"), nb::arg("source_begin"), nb::arg("count"),
           nb::arg("stride"), nb::arg("length"),
           "Copies rows of another array, `stride` bytes apart, to where they follow each other. Private to the "
           "package.")
      .def("copy_to", &DeviceArray::copy_to, nb::arg("begin"), nb::arg("size"), nb::arg("out"), nb::arg("out_begin"),
           nb::arg("stream"),
           nb::sig("def copy_to(self, begin: int, size: int, out: typing.Any, out_begin: int, stream: int) -> None"),
           "Copies a range to other memory of the device. Private to the package.")
      .def("tensor", &tensor_of, nb::arg("begin"), nb::arg("code"), nb::arg("bits"), nb::arg("shape"),
           nb::sig("def tensor(self, begin: int, code: int, bits: int, shape: tuple[int, ...]) -> typing.Any"),
           "A range as elements of a dtype, by its numbers in DLPack: an object with DLPack's methods that keeps this "
           "array. Private to the package.")
      .def("__dlpack__", &to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("options"),
           nb::sig("def __dlpack__(self, *, stream: int | None = None, **options: object) -> object"))
      .def(
          "__dlpack_device__",
          [](const DeviceArray& self) { return nb::make_tuple(int{nb::device::cuda::value}, self.device()); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def_prop_ro("__cuda_array_interface__", &array_interface,
                   nb::sig("def __cuda_array_interface__(self) -> dict[str, object]"))
      .def_prop_ro(
          "pointer", [](const DeviceArray& self) { return reinterpret_cast<std::uintptr_t>(self.data()); },
          "The address of the first byte on the device; 0 for an array of no bytes.")
      .def_prop_ro("device", &DeviceArray::device, "The CUDA ordinal of the device.")
      .def("__repr__", [](const DeviceArray& self) {
        return "<warpcipher.DeviceArray of " + std::to_string(self.size()) + " bytes on GPU " +
               std::to_string(self.device()) + ">";
      });
  m.def("stream_wait", &stream_wait, nb::arg("stream"), nb::arg("other"), nb::arg("device"),
        "Makes `stream` wait for the work that is now on stream `other` of the same device.");
  m.def("pointer_device", &pointer_device, nb::arg("pointer"), "The CUDA ordinal of the device that holds a pointer.");
  m.def("release_done", &release_done, "Releases objects kept for finished work.  Private to the package.");
  // Objects kept for streams must be released before the interpreter ends.
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&release_kept));
}

}  // namespace warpcipher::python
