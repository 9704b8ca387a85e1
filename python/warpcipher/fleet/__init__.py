# SPDX-License-Identifier: Apache-2.0
"""Jobs over many objects, of stores or of local folders: `places` says where they are, `filters`
which of them, `work` does one, `journal` notes what is done, `job` runs all. The command is their
caller."""
