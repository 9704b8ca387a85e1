// SPDX-License-Identifier: Apache-2.0
// The error of check_messages, for its tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <span>
#include <string>

#include "message/message.hpp"
#include "support.hpp"

namespace warpcipher::test {

inline std::string refusal(std::span<const Message> messages) {
  try {
    check_messages(messages);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    return error.what();
  }
  return "accepted";
}

// The error of check_messages for a good message after `spoil` has changed it.
inline std::string refusal_of(const char* algorithm, std::size_t len, const std::function<void(Message&)>& spoil) {
  std::mt19937 random(7);
  Sample sample(random, find_algorithm(algorithm), Direction::encrypt, len);
  EXPECT_EQ(refusal({&sample.message, 1}), "accepted");
  spoil(sample.message);
  return refusal({&sample.message, 1});
}

inline void expect_says(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace warpcipher::test
