/* intern.h: one copy of each text that many have: names of tensors, of their axes, of their operations.
 *
 * A recording of 1000 steps has each name 1000 times. Words are never given back: a program holds few recordings, and
 * they have most of their words in common.
 *
 * Threads  any.
 */
#ifndef VN_LIBREF_BASE_INTERN_H
#define VN_LIBREF_BASE_INTERN_H

/* The copy of this text, valid to the end of the program; NULL: no memory. */
const char *vn_intern(const char *text);

#endif
