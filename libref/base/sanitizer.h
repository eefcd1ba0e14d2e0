/* sanitizer.h: VN_SANITIZED is defined if this build uses a sanitizer (-fsanitize=...).
 *
 * A sanitizer reserves terabytes of addresses and makes system calls of its own, so such a build
 * sets no memory limit, installs no system call filter, and leaves signals alone.
 */
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define VN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VN_ASAN 1
#endif
#endif

#if defined(VN_ASAN) || defined(__SANITIZE_THREAD__)
#define VN_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define VN_SANITIZED 1
#endif
#endif
