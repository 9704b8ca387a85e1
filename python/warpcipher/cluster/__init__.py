# SPDX-License-Identifier: Apache-2.0
"""Work on the nodes of a Ray cluster: `fleet` for any kind of work, and on it key searches
(`search`), encrypted tables (`tables`) and jobs over objects (`objects`).

    driver   finds the files or the keys to test, and hands out parts of about equal size
    node     checks the version, asks for its keys, works on its GPUs, or without any its cores

No key travels to a node: tasks carry sources of `warpcipher.keys` and names of functions. But nodes
see what they work on, the template and pairs of a search or a table's rows: the cluster must be
trusted. Work of a node that dies is repeated by another. Ray is imported when a fleet is made.
"""
