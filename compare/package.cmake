# The Debian packages, by `cpack -G DEB` in a build folder that was configured with
# -DCMAKE_INSTALL_PREFIX=/usr and -DCMAKE_SKIP_RPATH=ON. Built on the release that they are for,
# since the sonames of libraries differ between releases: tests/package/packages.sh does that for
# Debian 12 and Ubuntu 24.04, and tries what it made.
#   vernier                 the program
#   libvernier-capture0     the library that other engines link
#   libvernier-capture-dev  its headers, static library and package files
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME vernier)
set(VERNIER_CONTACT "vernier maintainers <maintainers@vernier.invalid>"
	CACHE STRING "The maintainer whom the packages name")
set(CPACK_PACKAGE_CONTACT ${VERNIER_CONTACT})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
	WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/package_finish.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENTS_ALL program library headers development)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME vernier)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS libopenblas0) # loaded at run time, as Vulkan is
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "libvulkan1, mesa-vulkan-drivers")
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "Records every intermediate tensor of a transformer on a CPU reference and on
the engine under test, and reports where the two first differ, whether the
difference is larger than the number format explains, and which operation
and which known mistake caused it.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libvernier-capture${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
# cpack would add scripts that call ldconfig, where Debian requires a trigger.
set(library libvernier-capture)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/control/shlibs
	"${library} ${PROJECT_VERSION_MAJOR} ${library}${PROJECT_VERSION_MAJOR} (>= ${PROJECT_VERSION})\n")
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/control/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_BINARY_DIR}/control/shlibs
	${CMAKE_CURRENT_BINARY_DIR}/control/triggers)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "Writes what an inference engine computes into a checkpoint file, which
vernier compares with a reference.")

set(CPACK_COMPONENT_HEADERS_GROUP dev)
set(CPACK_COMPONENT_DEVELOPMENT_GROUP dev)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libvernier-capture-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
	"libvernier-capture${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION}), libhdf5-dev, libjansson-dev, libseccomp-dev, \
libunistring-dev, libxxhash-dev")
set(CPACK_DEBIAN_DEV_DESCRIPTION "Headers, static library and package files of libvernier-capture, and
vernier_record.h, a recorder in one header that needs no library.")
include(CPack)
