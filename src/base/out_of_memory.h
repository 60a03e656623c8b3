#pragma once

namespace attsvm::internal {

/// What the program says where memory is short.
inline constexpr const char* kOutOfMemory = "out of memory; allow it more (ulimit -v), or use fewer --threads";

/// Makes FLINT and GMP throw std::bad_alloc where they would print a message and abort. Global to the process, so the
/// program and the Python module ask for it, and the library does not. GMP stays as it is where others have given it
/// functions of their own: they may have to free what those allocated.
void throw_where_libraries_lack_memory();

}  // namespace attsvm::internal
