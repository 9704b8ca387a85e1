// SPDX-License-Identifier: Apache-2.0
// Sealing: how a format seals the chunks of a file, and all that is done with them.
#include <atomic>
#include <string>
#include <tuple>
#include <vector>

#include "bind.hpp"
#include "core/wipe.hpp"
#include "file_call.hpp"
#include "flow/file/copy_chunks.hpp"
#include "gil.hpp"
#include "mode/algorithm.hpp"
#include "operand.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// Pattern of chunks.py: base, number_at, big_endian, nonce_at, length_size; None: there is none.
class Pattern {
 public:
  using Given = std::optional<std::tuple<nb::bytes, int, bool, int, std::size_t>>;

  explicit Pattern(const Given& given) {
    if (!given) return;
    const auto& [base, number_at, is_big_endian, nonce_at, length_len] = *given;
    base_ = copy_of(base, "base");
    rule_ = {{}, number_at, is_big_endian, nonce_at, length_len};
  }

  // For as long as this object.
  std::optional<ChunkPattern> rule() const {
    std::optional<ChunkPattern> rule = rule_;
    if (rule) rule->base = base_;
    return rule;
  }

 private:
  std::vector<std::uint8_t> base_;
  std::optional<ChunkPattern> rule_;
};

class FileSealing {
 public:
  FileSealing(std::string_view algorithm, nb::handle keys, std::uint64_t header, std::uint64_t chunk,
              std::uint64_t first_lacks, std::size_t iv_length, std::size_t tag_length, nb::handle nonce,
              unsigned counter_shift, int final_shift, std::uint64_t number_from, const Pattern::Given& aad,
              const Pattern::Given& final_aad, const Pattern::Given& head, const Pattern::Given& final_head,
              std::string mac_hash, nb::handle mac_key, std::string engine)
      : keys_(find_algorithm(algorithm), keys),
        nonce_base_(copy_of(nonce, "nonce", Operand::Use::read_or_none)),
        aad_(aad),
        final_aad_(final_aad),
        head_(head),
        final_head_(final_head),
        mac_hash_(std::move(mac_hash)),
        mac_key_(Operand(mac_key, "mac_key", Operand::Use::read_or_none).bytes()),
        engine_(std::move(engine)) {
    sealing_.keys = keys_.pointers();
    sealing_.iv_len = iv_length;
    sealing_.tag_len = tag_length;
    sealing_.mac = {mac_hash_, {mac_key_.data(), mac_key_.size()}};
    sealing_.header_len = header;
    sealing_.chunk_len = chunk;
    sealing_.first_lacks = first_lacks;
    sealing_.nonce_base = nonce_base_;
    sealing_.counter_shift = counter_shift;
    sealing_.final_shift = final_shift;
    sealing_.number_from = number_from;
    sealing_.aad_rule = aad_.rule();
    sealing_.final_aad_rule = final_aad_.rule();
    sealing_.head_rule = head_.rule();
    sealing_.final_head_rule = final_head_.rule();
    if (sealing_.keys.empty()) throw nb::value_error("no key given");
  }
  FileSealing(const FileSealing&) = delete;
  FileSealing& operator=(const FileSealing&) = delete;

  bool has_nonce_rule() const { return !sealing_.nonce_base.empty(); }
  bool copies() const { return has_nonce_rule() && !sealing_.has_mac() && !engine_.starts_with("cuda"); }
  bool opens_on_gpu() const { return has_nonce_rule() && !sealing_.has_mac() && !sealing_.head_rule; }
  bool seals_on_gpu() const {
    return has_nonce_rule() && sealing_.algorithm().mode.id == Mode::gcm && !sealing_.head_rule && !sealing_.aad_rule;
  }

  std::optional<std::uint64_t> crypt(Direction direction, std::uint64_t first, std::size_t count, bool is_final,
                                     nb::handle data, nb::handle out, std::uintptr_t stream) {
    const Operand in(data, "data", Operand::Use::read), to(out, "out", Operand::Use::write);
    if (in.device() != to.device()) throw nb::value_error("data and out lie in different places");
    const ChunksInMemory chunks{direction, first, count, is_final, to.memory(), in.bytes(), {to.data(), to.size()}};
    std::size_t key = last_key_;
    const GilReleased released;
    const DeviceScope scope(to.device());
    const auto bad = crypt_chunks(engine_, sealing_, chunks, reinterpret_cast<Stream>(stream), &key);
    last_key_ = key;
    return bad;
  }

  ReadOutcome read(nb::handle source, std::uint64_t begin, std::uint64_t size, std::uint64_t chunks_of_file,
                   std::uint64_t position, std::uint64_t length, nb::handle out, std::uintptr_t stream) const {
    const Source from(source, begin);
    const Operand to(out, "out", Operand::Use::write);
    return read_to(to, [&](const ReadOptions& options) {
      const RegularChunks columns(sealing_, size, chunks_of_file, position, length);
      FileChunks chunks = columns.chunks();
      chunks.source = from.get();
      chunks.memory = to.memory();
      chunks.out = {to.data(), to.size()};
      std::optional<ReadFailure> failure = read_chunks(engine_, chunks, reinterpret_cast<Stream>(stream), options);
      if (failure) failure->chunk += chunks.first_number;
      return failure;
    });
  }

  WriteOutcome write(int target, nb::handle texts, nb::handle streams, nb::handle device, std::uint64_t size,
                     std::uint64_t chunks_of_file) const {
    const Descriptor descriptor(target);
    const Texts parts(texts, streams, device);
    const WriteOptions options{.check = Signals()};
    return parts.write_by(engine_, [&] {
      const RegularChunks columns(sealing_, size, chunks_of_file, 0, size);
      return write_chunks(engine_, {columns.chunks(), descriptor.number(), parts.parts(), {}}, options);
    });
  }

  std::tuple<std::uint64_t, int, int> copy(bool encrypts, int source, std::uint64_t source_offset, int target,
                                           std::uint64_t target_offset, std::uint64_t first, std::size_t count) const {
    const Descriptor from(source), to(target);
    const CopiedChunks done = [&] {
      const GilReleased released;
      const Direction direction = encrypts ? Direction::encrypt : Direction::decrypt;
      return copy_chunks(engine_, sealing_,
                         {direction, from.number(), to.number(), source_offset, target_offset, first, count},
                         Signals());
    }();
    return {done.count, done.read_error, done.write_error};
  }

 private:
  const Keys keys_;
  const std::vector<std::uint8_t> nonce_base_;
  const Pattern aad_, final_aad_, head_, final_head_;
  const std::string mac_hash_;
  const SecretBytes mac_key_;
  const std::string engine_;
  Sealing sealing_;
  std::atomic<std::size_t> last_key_{0};
};

}  // namespace

void bind_sealing(nb::module_& m) {
  nb::class_<FileSealing>(
      m, "Sealing",
      "How the chunks of a file are sealed: header | chunk 0 | chunk 1 | ..., chunk = [head or nonce] ciphertext tag. "
      "All sizes in bytes. nonce(i) = nonce XOR ((number_from + i) << counter_shift) XOR (final ? 1 << final_shift : "
      "0), big-endian; None: a random one in front of each chunk. aad, head: Patterns of chunks.py; None: there is "
      "none; final_aad, final_head: of the final chunk; None: as of others. first_lacks: what the first chunk lacks to "
      "be a full one. mac_hash: of the HMAC of a cipher that authenticates nothing; \"\": it is an AEAD.")
      .def(nb::init<std::string_view, nb::handle, std::uint64_t, std::uint64_t, std::uint64_t, std::size_t, std::size_t,
                    nb::handle, unsigned, int, std::uint64_t, const Pattern::Given&, const Pattern::Given&,
                    const Pattern::Given&, const Pattern::Given&, std::string, nb::handle, std::string>(),
           nb::arg("algorithm"), nb::arg("keys"), nb::kw_only(), nb::arg("header"), nb::arg("chunk"),
           nb::arg("first_lacks"), nb::arg("iv_length"), nb::arg("tag_length"), nb::arg("nonce").none(),
           nb::arg("counter_shift"), nb::arg("final_shift"), nb::arg("number_from"), nb::arg("aad").none(),
           nb::arg("final_aad").none(), nb::arg("head").none(), nb::arg("final_head").none(), nb::arg("mac_hash"),
           nb::arg("mac_key").none(), nb::arg("engine"))
      .def_prop_ro("copies", &FileSealing::copies,
                   "Whether `copy` works, and is worth it: pieces for a GPU are longer.")
      .def_prop_ro("opens_on_gpu", &FileSealing::opens_on_gpu, "Whether `open` works in memory of a GPU.")
      .def_prop_ro("seals_on_gpu", &FileSealing::seals_on_gpu, "Whether `write` works.")
      .def(
          "seal",
          [](FileSealing& self, std::uint64_t first, std::size_t count, bool final, nb::handle data, nb::handle out) {
            self.crypt(Direction::encrypt, first, count, final, data, out, 0);
          },
          nb::arg("first"), nb::arg("count"), nb::arg("final"), nb::arg("data"), nb::arg("out"),
          "Encrypts `count` chunks from number `first` on from memory to memory. final: the file ends with them.")
      .def(
          "open",
          [](FileSealing& self, std::uint64_t first, std::size_t count, bool final, nb::handle data, nb::handle out,
             std::uintptr_t stream) { return self.crypt(Direction::decrypt, first, count, final, data, out, stream); },
          nb::arg("first"), nb::arg("count"), nb::arg("final"), nb::arg("data"), nb::arg("out"), nb::arg("stream") = 0,
          "Decrypts likewise. None, or the number of the first chunk that is not authentic: `out` is then zeros.")
      .def("read", &FileSealing::read, nb::arg("source"), nb::arg("begin"), nb::arg("size"), nb::arg("chunks"),
           nb::arg("position"), nb::arg("length"), nb::arg("out"), nb::arg("stream"),
           "Fills `out` with a range of plaintext of a file that has `size` bytes of it in `chunks` chunks. source: a "
           "descriptor, or bytes of the file from `begin` on. None, or why not, as of `read_chunks`.")
      .def("write", &FileSealing::write, nb::arg("target"), nb::arg("texts"), nb::arg("streams"),
           nb::arg("device").none(), nb::arg("size"), nb::arg("chunks"),
           "Encrypts texts of `size` bytes on a GPU, and writes their chunks to a file of `chunks` chunks; not a final "
           "one that is empty. None, or why not, as of `write_chunks`.")
      .def("copy", &FileSealing::copy, nb::arg("encrypts"), nb::arg("source"), nb::arg("source_offset"),
           nb::arg("target"), nb::arg("target_offset"), nb::arg("first"), nb::arg("count"),
           "Encrypts or decrypts `count` full chunks from number `first` on from file to file, and returns how many "
           "are done; where they are fewer, also the errno of a read or of a write that failed.");
}

}  // namespace warpcipher::python
