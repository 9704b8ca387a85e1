// SPDX-License-Identifier: Apache-2.0
// Texts on a GPU: encrypted there and written to a file as chunks, or written as they are.
#include <climits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bind.hpp"
#include "device.hpp"
#include "dispatch/select.hpp"
#include "engine/device_engine.hpp"
#include "file_call.hpp"
#include "flow/file/write_chunks.hpp"
#include "flow/file/write_plain.hpp"
#include "gil.hpp"
#include "keys.hpp"
#include "mode/algorithm.hpp"
#include "operand.hpp"

namespace warpcipher::python {
namespace {

// The texts, streams and device of a WriteChunksCall or a Texts.
class Texts {
 public:
  explicit Texts(nb::handle given) : device_(device_of(given.attr("device"))) {
    for (const nb::handle text : given.attr("texts")) {
      const Operand& taken = *operands_.emplace_back(std::make_unique<Operand>(text, "a text", Operand::Use::read));
      parts_.push_back({taken.data(), taken.size(), taken.memory()});
    }
    for (const nb::handle pair : given.attr("streams")) {
      streams_.emplace_back(static_cast<int>(number_of(pair[0], "a device", INT_MAX)),
                            reinterpret_cast<Stream>(number_of(pair[1], "a stream")));
    }
  }

  const std::vector<TextPart>& parts() const { return parts_; }

  // Calls write() without the interpreter's lock and on the device, when what makes the texts is done.
  template <class Write>
  nb::object write_by(const std::string& engine, const Write& write) const {
    std::optional<WriteFailure> failure;
    {
      const GilReleased released;
      for (const auto& [place, stream] : streams_) {
        const DeviceScope scope(place);
        select_device_engine(engine).wait(stream);
      }
      const DeviceScope scope(device_);
      failure = write();
    }
    if (!failure) return nb::none();
    return nb::make_tuple(failure->position, failure->error);
  }

 private:
  static int device_of(nb::handle number) {
    return number.is_none() ? host_device : static_cast<int>(number_of(number, "device", INT_MAX));
  }

  const int device_;
  std::vector<std::unique_ptr<Operand>> operands_;
  std::vector<TextPart> parts_;
  std::vector<std::pair<int, Stream>> streams_;
};

// call: a WriteChunksCall of python/warpcipher/formats/write_chunks.py.
nb::object write(nb::handle call) {
  const Algorithm& algorithm = find_algorithm(text_of(call.attr("algorithm"), "algorithm"));
  const Keys keys(algorithm, call.attr("keys"));
  ChunksToWrite chunks;
  chunks.keys = keys.pointers();
  std::optional<Regular> regular;
  std::optional<ChunkColumns> columns;
  if (const nb::object of_file = call.attr("regular"); !of_file.is_none()) {
    FileChunks all;
    regular.emplace(of_file).chunks.fill(all);
    if (!all.skips.empty()) throw nb::value_error("a file is written in whole chunks");
    chunks.count = all.count;
    chunks.file_offsets = all.file_offsets;
    chunks.lengths = all.lengths;
    chunks.ivs = all.ivs;
    chunks.iv_len = all.iv_len;
  } else {
    columns.emplace(call).fill(chunks);
    chunks.iv_len = field_of(call, "iv_length");
  }
  chunks.tag_len = field_of(call, "tag_length");
  std::optional<Operand> tags;
  if (const nb::object given = call.attr("tags"); !given.is_none()) {
    tags.emplace(given, "tags", Operand::Use::write);
    if (tags->device() != host_device) throw nb::value_error("tags lies on a GPU: expected host memory");
    chunks.tags = {tags->data(), tags->size()};
  }
  const Descriptor descriptor(static_cast<int>(number_of(call.attr("target"), "target", INT_MAX)));
  chunks.descriptor = descriptor.number();
  const Texts texts(call);
  chunks.parts = texts.parts();
  const std::string engine = text_of(call.attr("engine"), "engine");
  WriteOptions options;
  options.threads = field_of(call, "threads");
  options.piece_len = field_of(call, "piece_size");
  options.check = Signals();
  return texts.write_by(engine, [&] { return write_chunks(engine, chunks, options); });
}

// given: a Texts of python/warpcipher/formats/write_chunks.py.
nb::object write_not_encrypted(int target, nb::handle given) {
  const Descriptor descriptor(target);
  const Texts texts(given);
  WriteOptions options;
  options.check = Signals();
  return texts.write_by("auto", [&] { return write_plain("auto", descriptor.number(), texts.parts(), options); });
}

}  // namespace

void bind_file_write(nb::module_& m) {
  m.def("write_chunks", &write, nb::arg("call"), nb::sig("def write_chunks(call: object) -> tuple[int, int] | None"),
        "Encrypts the texts of a WriteChunksCall on its GPU and writes them. None, or why not: the place in the file "
        "and the errno.");
  m.def("write_plain", &write_not_encrypted, nb::arg("target"), nb::arg("texts"),
        nb::sig("def write_plain(target: int, texts: object) -> tuple[int, int] | None"),
        "Writes the texts of a Texts to a file from its beginning on. None, or why not, as of `write_chunks`.");
}

}  // namespace warpcipher::python
