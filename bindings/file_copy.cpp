// SPDX-License-Identifier: Apache-2.0
// Chunks from one file to another, encrypted or decrypted on the way.
#include <climits>
#include <string>

#include "bind.hpp"
#include "file_call.hpp"
#include "flow/file/copy_chunks.hpp"
#include "gil.hpp"
#include "keys.hpp"
#include "mode/algorithm.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// call: a CopyChunksCall of python/warpcipher/formats/copy_chunks.py.
std::size_t copy(nb::handle call) {
  const Algorithm& algorithm = find_algorithm(text_of(call.attr("algorithm"), "algorithm"));
  const Keys keys(algorithm, call.attr("keys"));
  const Regular regular(call.attr("regular"));
  FileChunks chunks;
  chunks.keys = keys.pointers();
  chunks.tag_len = field_of(call, "tag_length");
  regular.chunks.fill(chunks);
  const Descriptor source(static_cast<int>(number_of(call.attr("source"), "source", INT_MAX)));
  const Descriptor target(static_cast<int>(number_of(call.attr("target"), "target", INT_MAX)));
  const ChunkCopy wanted{chunks,
                         nb::cast<bool>(call.attr("encrypts")) ? Direction::encrypt : Direction::decrypt,
                         source.number(),
                         target.number(),
                         field_of(call, "source_offset"),
                         field_of(call, "target_offset")};
  const std::string engine = text_of(call.attr("engine"), "engine");
  const GilReleased released;
  return copy_chunks(engine, wanted, Signals());
}

}  // namespace

void bind_file_copy(nb::module_& m) {
  m.def("copy_chunks", &copy, nb::arg("call"), nb::sig("def copy_chunks(call: object) -> int"),
        "Does a CopyChunksCall as far as it goes, and returns how many chunks are done.");
}

}  // namespace warpcipher::python
