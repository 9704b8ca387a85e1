// SPDX-License-Identifier: Apache-2.0
// Chunks of a Parquet file decrypted into memory of the host or of a GPU.
#include <climits>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bind.hpp"
#include "device.hpp"
#include "file_call.hpp"
#include "gil.hpp"
#include "keys.hpp"
#include "mode/algorithm.hpp"
#include "operand.hpp"
#include "parquet/open_chunks.hpp"

namespace warpcipher::python {
namespace {

using parquet::OpenFailure;

// As many 64-bit integers as SealedChunk has fields, a chunk.
constexpr std::size_t sealed_chunk_len = 6;

// The keys of the modules of one kind, of any size.
struct ModuleKeys {
  ModuleKeys(nb::handle given, const char* mode) {
    for (nb::handle each : nb::iter(given)) {
      const Operand bytes(each, "keys", Operand::Use::read);
      const Algorithm& algorithm = find_algorithm("aes-" + std::to_string(8 * bytes.size()) + mode);
      keys.push_back(std::make_unique<Key>(algorithm, bytes.bytes()));
      pointers.push_back(keys.back().get());
    }
  }

  std::vector<std::unique_ptr<Key>> keys;
  std::vector<const Key*> pointers;
};

nb::bytes as_bytes(const std::vector<std::uint64_t>& values) {
  return nb::bytes(values.data(), sizeof(std::uint64_t) * values.size());
}

nb::object object_of(const std::optional<OpenFailure>& failure) {
  if (!failure) return nb::none();
  const char* const kinds[] = {"tag", "wrong", "file"};
  const nb::object module =
      failure->module == OpenFailure::no_module ? nb::object(nb::none()) : nb::object(nb::int_(failure->module));
  return nb::make_tuple(kinds[static_cast<std::size_t>(failure->kind)], failure->chunk, module, failure->why,
                        failure->read.position, failure->read.error);
}

nb::tuple open(nb::handle source, std::uint64_t begin, nb::handle chunks_given, nb::handle keys_given,
               nb::handle key_index_given, bool counter_mode, nb::handle prefix, nb::handle out_given,
               std::uintptr_t stream, nb::handle engine_given, std::size_t threads) {
  parquet::ChunksToOpen wanted;
  const Integers given(chunks_given, "chunks");
  if (given.values().size() % sealed_chunk_len != 0) throw nb::value_error("chunks: expected six integers each");
  std::vector<parquet::SealedChunk> chunks;
  for (std::size_t i = 0; i < given.values().size(); i += sealed_chunk_len) {
    const std::uint64_t* v = given.values().data() + i;
    chunks.push_back(
        {v[0], v[1], static_cast<std::int16_t>(v[2]), static_cast<std::int16_t>(v[3]), v[4] != 0, v[5] != 0});
  }
  wanted.chunks = chunks;
  const Integers numbers(key_index_given, "key_index");
  if (numbers.values().size() != chunks.size()) throw nb::value_error("key_index: expected a number for each chunk");
  const std::vector<std::uint32_t> key_index = narrow(numbers.values());
  wanted.key_index = key_index;
  const ModuleKeys head_keys(keys_given, "-gcm");
  const ModuleKeys page_keys(keys_given, counter_mode ? "-ctr" : "-gcm");
  wanted.head_keys = head_keys.pointers;
  wanted.page_keys = page_keys.pointers;
  const Operand aad(prefix, "prefix", Operand::Use::read);
  wanted.prefix = aad.bytes();

  std::optional<Descriptor> descriptor;
  std::optional<Operand> bytes;
  if (PyLong_Check(source.ptr())) {
    wanted.source.descriptor = descriptor.emplace(static_cast<int>(number_of(source, "source", INT_MAX))).number();
  } else {
    wanted.source.bytes = bytes.emplace(source, "source", Operand::Use::read).bytes();
    wanted.source.begin = begin;
  }
  const Operand out(out_given, "out", Operand::Use::write);
  if (bytes && bytes->device() != host_device) throw nb::value_error("source lies on a GPU: expected host memory");
  wanted.out = {out.data(), out.size()};
  wanted.memory = out.memory();
  const std::string engine = text_of(engine_given, "engine");
  parquet::OpenResult found;
  {
    const GilReleased released;
    const DeviceScope scope(out.device());
    found = parquet::open_chunks(engine, wanted, reinterpret_cast<Stream>(stream), threads, Signals());
  }
  std::vector<std::uint64_t> outs, pages;
  for (const parquet::OpenedChunk& chunk : found.chunks) {
    outs.insert(outs.end(), {chunk.out, chunk.size, pages.size() / 3, chunk.pages.size()});
    for (const parquet::OpenedPage& page : chunk.pages) {
      pages.insert(pages.end(), {page.position, page.out, page.size});
    }
  }
  return nb::make_tuple(as_bytes(outs), as_bytes(pages), object_of(found.failure));
}

}  // namespace

void bind_parquet_open(nb::module_& m) {
  m.def("open_chunks", &open, nb::arg("source"), nb::arg("begin"), nb::arg("chunks"), nb::arg("keys"),
        nb::arg("key_index"), nb::arg("counter_mode"), nb::arg("prefix"), nb::arg("out"), nb::arg("stream"),
        nb::arg("engine"), nb::arg("threads"),
        nb::sig("def open_chunks(source: int | typing_extensions.Buffer, begin: int, chunks: object, keys: "
                "typing.Sequence[bytes], key_index: object, counter_mode: bool, prefix: bytes, out: "
                "typing.Any, stream: int, engine: str, threads: int) -> tuple[bytes, bytes, tuple[str, int, "
                "int | None, str, int, int] | None]"),
        "Decrypts chunks (SealedChunk, six integers each) into `out`, back to back. source: a descriptor, or the bytes "
        "of a file from `begin` on. keys: for headers and pages. Of each chunk its place, its size, its first page and "
        "how many it has; of each page where its header is in the chunk and goes, and the size of both; and None, or "
        "why nothing is in `out`: \"tag\", \"wrong\" or \"file\", the chunk, the module, what is wrong, the place in "
        "the file and the errno.");
}

}  // namespace warpcipher::python
