"""The only folder that writes files: each is written atomically, and checked when it is read.

A single flipped bit is detected. Equal content gives equal files. Nothing that is read is ever executed.
"""

from lapwing.storage.files import (
    file_sha256,
    is_file,
    is_folder,
    is_private_folder,
    lock,
    make_folder,
    move,
    names_in,
    nowhere,
    read_bytes,
    remove,
    remove_folders,
    remove_leftovers,
    remove_tree,
    storage_errors,
    trim_folder,
    write_atomically,
    write_bytes,
)
from lapwing.storage.json_files import (
    append_json_line,
    read_checked_json,
    read_json,
    read_json_lines,
    write_checked_json,
    write_json,
    write_json_lines,
)
from lapwing.storage.machine import (
    memory_bytes,
    user_cache,
)
from lapwing.storage.tensors import (
    read_tensors,
    write_tensors,
)

__all__ = [
    "append_json_line",
    "file_sha256",
    "is_file",
    "is_folder",
    "is_private_folder",
    "lock",
    "make_folder",
    "memory_bytes",
    "move",
    "names_in",
    "nowhere",
    "read_bytes",
    "read_checked_json",
    "read_json",
    "read_json_lines",
    "read_tensors",
    "remove",
    "remove_folders",
    "remove_leftovers",
    "remove_tree",
    "storage_errors",
    "trim_folder",
    "user_cache",
    "write_atomically",
    "write_bytes",
    "write_checked_json",
    "write_json",
    "write_json_lines",
    "write_tensors",
]
