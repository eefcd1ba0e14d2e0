# `cmake --install` installs the program with its manual, completions and contracts; and
# libvernier-capture for other engines, with its public headers only. No file contains the prefix,
# which may be chosen at installation.
set(data ${CMAKE_INSTALL_DATADIR}/vernier)
install(TARGETS vernier RUNTIME)
if(SKBUILD) # a wheel (capture/python): OpenBLAS, and what it must say of others' work
	set_property(TARGET vernier PROPERTY INSTALL_RPATH $ORIGIN/../lib)
	install(FILES ${OPENBLAS_FILE} DESTINATION lib)
	if(VERNIER_NOTICES)
		install(DIRECTORY ${VERNIER_NOTICES}/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/vernier)
	endif()
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/vernier)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/vernier.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/capture/llama.cpp ${PROJECT_SOURCE_DIR}/capture/examples DESTINATION ${data})

# A page for each command and the completions, from the program's own tables.
if(NOT VERNIER_FUZZ)
	set(printed ${CMAKE_CURRENT_BINARY_DIR}/printed)
	set(run ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 ${CMAKE_CROSSCOMPILING_EMULATOR}
		$<TARGET_FILE:vernier>)
	file(GLOB shells CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/specs/shells/*)
	add_custom_command(OUTPUT ${printed}/vernier.fish
		COMMAND ${CMAKE_COMMAND} -E rm -rf ${printed}
		COMMAND ${CMAKE_COMMAND} -E make_directory ${printed}/man
		COMMAND ${run} help --man-pages ${printed}/man
		COMMAND ${run} help --completions bash > ${printed}/vernier
		COMMAND ${run} help --completions zsh > ${printed}/_vernier
		COMMAND ${run} help --completions fish > ${printed}/vernier.fish
		DEPENDS vernier ${shells} VERBATIM)
	add_custom_target(printed ALL DEPENDS ${printed}/vernier.fish)
	install(DIRECTORY ${printed}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
	install(FILES ${printed}/vernier DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
	install(FILES ${printed}/_vernier DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
	install(FILES ${printed}/vernier.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

	# For other engines: a C API, one header and one Rust file that need no library.
	install(FILES ${PROJECT_SOURCE_DIR}/capture/include/vernier_capture.h
		${PROJECT_SOURCE_DIR}/capture/include/vernier_record.h ${PROJECT_SOURCE_DIR}/capture/include/vernier_record.rs
		DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT headers)
	add_library(vernier_record INTERFACE)
	foreach(part capture record)
		set_target_properties(vernier_${part} PROPERTIES EXPORT_NAME ${part})
		target_include_directories(vernier_${part} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
	endforeach()
	install(TARGETS vernier_capture vernier_record EXPORT vernier
		LIBRARY COMPONENT library NAMELINK_COMPONENT development)
	install(FILES ${PROJECT_BINARY_DIR}/capture/libvernier-capture.a DESTINATION ${CMAKE_INSTALL_LIBDIR}
		COMPONENT development)

	set(package ${CMAKE_INSTALL_LIBDIR}/cmake/vernier)
	install(EXPORT vernier FILE vernierConfig.cmake NAMESPACE vernier:: DESTINATION ${package} COMPONENT development)
	include(CMakePackageConfigHelpers)
	write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/vernierConfigVersion.cmake
		COMPATIBILITY SameMinorVersion)
	install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vernierConfigVersion.cmake DESTINATION ${package} COMPONENT development)

	# The package file finds its prefix from the folder that it is in.
	# HDF5's own has another name on Debian.
	pkg_search_module(HDF5_PC QUIET hdf5-serial hdf5)
	file(RELATIVE_PATH VERNIER_UP ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
	configure_file(${CMAKE_CURRENT_LIST_DIR}/vernier-capture.pc.in ${CMAKE_CURRENT_BINARY_DIR}/vernier-capture.pc @ONLY)
	install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vernier-capture.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
		COMPONENT development)
endif()

add_custom_target(uninstall
	COMMAND ${CMAKE_COMMAND} -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
		-P ${CMAKE_CURRENT_LIST_DIR}/uninstall.cmake VERBATIM)
