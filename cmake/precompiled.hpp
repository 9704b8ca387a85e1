// SPDX-License-Identifier: Apache-2.0
// The standard library's headers that most sources take, for the compiler to read once in a build. A source includes
// what it uses all the same.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
