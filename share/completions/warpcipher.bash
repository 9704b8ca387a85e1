# SPDX-License-Identifier: Apache-2.0
# Read by bash-completion when warpcipher is completed for the first time.
eval "$(warpcipher completion bash)"
