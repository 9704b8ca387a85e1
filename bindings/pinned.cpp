// SPDX-License-Identifier: Apache-2.0
// Page-locked host memory for Python, from the pool of host transfers. Without a GPU it is ordinary
// memory, so that a program works the same.
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "bind.hpp"
#include "core/wipe.hpp"
#include "engine/device_engine.hpp"
#include "errors.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// The alignment of ordinary memory: a page, as for page-locked memory.
constexpr std::size_t page_len = 4096;

// The engine that locks pages; or nullptr, and why there is none.
DeviceEngine* locking_engine(std::string& reason) {
  for (Engine* engine : engines()) {
    if (engine->memory() != Memory::device) continue;
    if (engine->unavailable_reason().empty()) return static_cast<DeviceEngine*>(engine);
    reason = engine->unavailable_reason();
  }
  return nullptr;
}

class PinnedBuffer {
 public:
  explicit PinnedBuffer(std::size_t size) : size_(size), engine_(locking_engine(reason_)) {
    const std::size_t room = (size + page_len - 1) / page_len * page_len;
    if (room < size) throw std::bad_alloc();
    if (size != 0) {
      data_ = engine_ != nullptr ? engine_->allocate_pinned(size) : std::aligned_alloc(page_len, room);
      if (data_ == nullptr) throw std::bad_alloc();
      std::memset(data_, 0, size);
    }
  }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer() {
    if (data_ == nullptr) return;
    if (engine_ != nullptr) {
      engine_->free_pinned(data_, size_, size_);  // wipes it all
    } else {
      secure_wipe(data_, size_);
      std::free(data_);
    }
  }

  std::size_t size() const { return size_; }
  bool page_locked() const { return engine_ != nullptr; }
  const std::string& reason() const { return reason_; }

  // The buffer protocol: plain bytes that may be written. An export keeps the object.
  static int export_buffer(PyObject* self, Py_buffer* view, int flags) {
    const PinnedBuffer& buffer = *nb::inst_ptr<PinnedBuffer>(self);
    static std::uint8_t nothing = 0;  // where an empty buffer lies
    void* data = buffer.data_ != nullptr ? buffer.data_ : &nothing;
    return PyBuffer_FillInfo(view, self, data, static_cast<Py_ssize_t>(buffer.size_), 0, flags);
  }

 private:
  std::size_t size_;
  std::string reason_;
  DeviceEngine* engine_;
  void* data_ = nullptr;
};

nb::object pinned(nb::handle size) {
  const Py_ssize_t n = PyNumber_AsSsize_t(size.ptr(), PyExc_ValueError);
  if (n == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (n < 0) throw nb::value_error(("size is " + std::to_string(n) + ": expected 0 or more bytes").c_str());
  try {
    return nb::cast(new PinnedBuffer(static_cast<std::size_t>(n)), nb::rv_policy::take_ownership);
  } catch (const std::bad_alloc&) {
    throw Error(Status::out_of_memory, "no memory for a buffer of ", n, " bytes");
  }
}

}  // namespace

void bind_pinned(nb::module_& m) {
  static PyType_Slot slots[] = {
      {Py_bf_getbuffer, reinterpret_cast<void*>(&PinnedBuffer::export_buffer)},
      {0, nullptr},
  };
  nb::class_<PinnedBuffer>(
      m, "PinnedBuffer", nb::type_slots(slots), nb::sig("class PinnedBuffer(typing_extensions.Buffer)"),
      "A writable buffer of page-locked host memory, which a GPU copies from and to at the full rate of its link: "
      "memoryview(b), numpy.frombuffer(b, ...), or as `data` and `out` of any call. `pinned` makes one. Wiped when the "
      "last object that uses it goes.")
      .def("__len__", &PinnedBuffer::size)
      .def_prop_ro("page_locked", &PinnedBuffer::page_locked,
                   "Whether the pages are locked. False: ordinary memory, without a GPU.")
      .def_prop_ro(
          "reason", [](const PinnedBuffer& self) { return self.reason(); },
          "Why the pages are not locked, or an empty string.")
      .def("__repr__", [](const PinnedBuffer& self) {
        return "<warpcipher.PinnedBuffer of " + std::to_string(self.size()) + " bytes, " +
               (self.page_locked() ? "page-locked>" : "not page-locked>");
      });
  m.def("pinned", &pinned, nb::arg("size"), nb::sig("def pinned(size: int) -> PinnedBuffer"),
        "A buffer of `size` zero bytes of page-locked memory, or of ordinary memory without GPU "
        "(see `page_locked`).  The memory comes from a pool and goes back to it, wiped: locking pages is slow, so keep "
        "or reuse buffers of like sizes. MemoryError: it cannot be had.");
}

}  // namespace warpcipher::python
