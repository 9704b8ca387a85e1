// SPDX-License-Identifier: Apache-2.0
// The list of modes. A new mode is a header in this folder and a line here.
#pragma once

#include <tuple>

#include "mode/cbc.hpp"
#include "mode/ccm.hpp"
#include "mode/cfb.hpp"
#include "mode/cfb8.hpp"
#include "mode/ctr.hpp"
#include "mode/ecb.hpp"
#include "mode/gcm.hpp"
#include "mode/gcm_siv.hpp"
#include "mode/ofb.hpp"
#include "mode/stream.hpp"
#include "mode/xts.hpp"

namespace warpcipher {

using Modes = std::tuple<Ecb, Cbc, Cfb, Cfb8, Ofb, Ctr, Gcm, Xts, GcmSiv, KeyStream, Poly1305, Ccm>;

}  // namespace warpcipher
