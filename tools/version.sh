#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the version, which only CMakeLists.txt holds.
sed -n 's/^project(warpcipher VERSION \([0-9.]*\) .*/\1/p' "$(dirname "$0")/../CMakeLists.txt"
