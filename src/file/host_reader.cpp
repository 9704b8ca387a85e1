// SPDX-License-Identifier: Apache-2.0
// To host memory: each thread reads a piece into a buffer of its own, which a core's cache holds, and decrypts it.
#include <algorithm>
#include <vector>

#include "core/wipe.hpp"
#include "dispatch/run.hpp"
#include "file/chunk_mac.hpp"
#include "file/reading.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t most_piece_len = std::size_t{1} << 20;
constexpr std::size_t least_piece_len = std::size_t{64} << 10;
constexpr std::size_t wanted_pieces = 4;  // of each thread, so that threads end together

class HostWorker {
 public:
  HostWorker(std::string_view engine, Reading& reading, const MacCheck& mac, std::size_t room)
      : engine_(engine), reading_(reading), chunks_(reading.chunks()), buffer_(room), mac_(mac) {}

  void work() {
    while (reading_.next(piece_)) {
      if (!reading_.read(piece_, buffer_.data())) return;
      if (const auto failure = mac_.find_bad_tag(piece_, buffer_.data())) return reading_.fail(*failure);
      if (!decrypt()) return;
    }
  }

 private:
  bool decrypt() {
    messages_.clear();
    for (const FilePiece::Item& item : piece_.items) messages_.push_back(message(item));
    results_.assign(messages_.size(), {});
    reading_.naming(piece_, [&] { run(engine_, messages_, results_); });
    for (std::size_t k = 0; k < results_.size(); ++k) {
      if (results_[k].status == Status::ok) continue;
      reading_.fail({ReadFailure::Kind::bad_tag, piece_.items[k].chunk});
      return false;
    }
    if (!piece_.is_partial) return true;
    for (const FilePiece::Item& item : piece_.items) {
      std::copy_n(buffer_.data() + item.at + chunks_.skip(item.chunk), chunks_.take(item.chunk),
                  chunks_.out.data() + item.place);
    }
    return true;  // the buffer is wiped at the end
  }

  Message message(const FilePiece::Item& item) {
    const std::span<const std::uint8_t> aad = chunks_.aad_of(item.chunk);
    Message m;
    m.key = &chunks_.key(item.chunk);
    m.direction = Direction::decrypt;
    m.in = buffer_.data() + item.at;
    m.in_len = m.out_len = chunks_.lengths[item.chunk];
    m.out = piece_.is_partial ? buffer_.data() + item.at : chunks_.out.data() + item.place;
    m.iv = iv_of(chunks_, item, buffer_.data());
    m.iv_len = chunks_.iv_len;
    m.aad = aad.data();
    m.aad_len = aad.size();
    if (!chunks_.has_mac()) {
      m.tag = buffer_.data() + item.at + m.in_len;
      m.tag_len = chunks_.tag_len;
    }
    return m;
  }

  const std::string_view engine_;
  Reading& reading_;
  const FileChunks& chunks_;
  SecretBytes buffer_;
  FilePiece piece_;
  MacCheck mac_;
  std::vector<Message> messages_;
  std::vector<Result> results_;
};

}  // namespace

std::optional<ReadFailure> read_to_host(std::string_view engine, const FileChunks& chunks, const ReadOptions& options) {
  const std::uint64_t total = PieceCutter::total_len(chunks);
  const std::size_t most_threads = options.threads != 0 ? options.threads : ThreadPool::instance().threads();
  const std::size_t piece_len = options.piece_len != 0
                                    ? options.piece_len
                                    : static_cast<std::size_t>(std::clamp<std::uint64_t>(
                                          total / (wanted_pieces * most_threads), least_piece_len, most_piece_len));
  const std::size_t room = std::max(piece_len, PieceCutter::most_chunk_len(chunks));
  const std::size_t pieces = static_cast<std::size_t>((total + room - 1) / room);
  Reading reading(chunks, options, room);
  const MacCheck mac(chunks);
  return reading.run(std::clamp<std::size_t>(pieces, 1, most_threads),
                     [&] { HostWorker(engine, reading, mac, room).work(); });
}

}  // namespace warpcipher
