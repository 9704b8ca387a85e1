// SPDX-License-Identifier: Apache-2.0
// Texts on a GPU, encrypted there and written to a file as chunks.
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
#include "file/write_chunks.hpp"
#include "file_call.hpp"
#include "gil.hpp"
#include "keys.hpp"
#include "mode/algorithm.hpp"
#include "operand.hpp"

namespace warpcipher::python {
namespace {

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
  std::vector<std::unique_ptr<Operand>> texts;
  std::vector<TextPart> parts;
  for (const nb::handle text : call.attr("texts")) {
    const Operand& taken = *texts.emplace_back(std::make_unique<Operand>(text, "a text", Operand::Use::read));
    parts.push_back({taken.data(), taken.size(), taken.memory()});
  }
  chunks.parts = parts;
  std::vector<std::pair<int, Stream>> streams;
  for (const nb::handle pair : call.attr("streams")) {
    streams.emplace_back(static_cast<int>(number_of(pair[0], "a device", INT_MAX)),
                         reinterpret_cast<Stream>(number_of(pair[1], "a stream")));
  }
  const auto device = static_cast<int>(number_of(call.attr("device"), "device", INT_MAX));
  const std::string engine = text_of(call.attr("engine"), "engine");
  WriteOptions options;
  options.threads = field_of(call, "threads");
  options.piece_len = field_of(call, "piece_size");
  options.check = Signals();

  std::optional<WriteFailure> failure;
  {
    const GilReleased released;
    for (const auto& [place, stream] : streams) {  // what makes the texts
      const DeviceScope scope(place);
      select_device_engine(engine).wait(stream);
    }
    const DeviceScope scope(device);
    failure = write_chunks(engine, chunks, options);
  }
  if (!failure) return nb::none();
  return nb::make_tuple(failure->position, failure->error);
}

}  // namespace

void bind_file_write(nb::module_& m) {
  m.def("write_chunks", &write, nb::arg("call"), nb::sig("def write_chunks(call: object) -> tuple[int, int] | None"),
        "Encrypts the texts of a WriteChunksCall on its GPU and writes them. None, or why not: the place in the file "
        "and the errno.");
}

}  // namespace warpcipher::python
