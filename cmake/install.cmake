# cmake --install: the program with its completions and manual page, the libraries, the headers, and what find_package(attsvm CONFIG) needs.
include(CMakePackageConfigHelpers)
set(attsvm_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/attsvm)

set(attsvm_targets attsvm)
foreach(folder IN LISTS ATTSVM_FOLDERS)
  list(APPEND attsvm_targets attsvm_${folder})
endforeach()
install(TARGETS ${attsvm_targets} EXPORT attsvmTargets)
install(TARGETS attsvm_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/attsvm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_BINARY_DIR}/include/attsvm/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attsvm)
install(EXPORT attsvmTargets NAMESPACE attsvm:: DESTINATION ${attsvm_package_dir})

file(WRITE ${PROJECT_BINARY_DIR}/attsvmConfig.cmake
  "include(\${CMAKE_CURRENT_LIST_DIR}/dependencies.cmake)\ninclude(\${CMAKE_CURRENT_LIST_DIR}/attsvmTargets.cmake)\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/attsvmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/attsvmConfig.cmake ${PROJECT_BINARY_DIR}/attsvmConfigVersion.cmake
  cmake/dependencies.cmake DESTINATION ${attsvm_package_dir})

# Completions and the manual page: the program writes them from its own options.
set(attsvm_shell_dir ${PROJECT_BINARY_DIR}/shell)
set(attsvm_shell_files)
foreach(pair bash:attsvm zsh:_attsvm fish:attsvm.fish man:attsvm.1)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 kind)
  list(GET pair 1 name)
  add_custom_command(OUTPUT ${attsvm_shell_dir}/${name}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${attsvm_shell_dir}
    COMMAND attsvm_program completion ${kind} > ${attsvm_shell_dir}/${name}
    DEPENDS attsvm_program VERBATIM)
  list(APPEND attsvm_shell_files ${attsvm_shell_dir}/${name})
endforeach()
add_custom_target(attsvm_shell ALL DEPENDS ${attsvm_shell_files})
install(FILES ${attsvm_shell_dir}/attsvm DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${attsvm_shell_dir}/_attsvm DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${attsvm_shell_dir}/attsvm.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES ${attsvm_shell_dir}/attsvm.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
