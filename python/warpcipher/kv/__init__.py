# SPDX-License-Identifier: Apache-2.0
"""KV caches of language model servers, encrypted before they leave the process.

`warpcipher.kv.lmcache` is the serde for LMCache; it needs that package, and loads only when it is
imported. docs/guides/llm.md says what this protects, and what not.
"""
