# cmake --install: the program, the libraries, the headers, and what find_package(attsvm CONFIG) needs.
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
