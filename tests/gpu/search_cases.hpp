// SPDX-License-Identifier: Apache-2.0
// Shared by the tests and the rates of the CUDA searcher: templates with random bits unknown, and blocks that
// belong to a key.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "search/searcher.hpp"

namespace warpcipher::search::test {

std::mt19937_64& generator();
std::uint64_t random_below(std::uint64_t n);

// A template with that many unknown bits, at random among the bits of `bytes` bytes from `first_byte` on.
KeyTemplate random_template(CipherId cipher, std::size_t unknown, std::size_t first_byte, std::size_t bytes);

// DES or triple DES with that many unknown bits, at random among some of its keys: bit i for key i.
KeyTemplate random_keys(CipherId cipher, unsigned keys, std::size_t unknown);

// A pair of blocks of which the key with that number is the right one, and that many bits are known.
std::shared_ptr<const KeyTest> make_test(const KeySpace& space, const KeyNumber& planted, bool decrypt, int known_bits);

// Prints keys a second of all kinds of searches, or of only one cipher. begin: before the driver was asked for its
// devices.
void print_rates(double seconds, const std::string& only, std::size_t templates,
                 std::chrono::steady_clock::time_point begin);

}  // namespace warpcipher::search::test
