# SPDX-License-Identifier: Apache-2.0
# Read by fish when warpcipher is completed for the first time.
warpcipher completion fish | source
