/* intern.h: keeps one copy of each text that occurs often: names of tensors, of their axes, of
 * their operations.
 *
 * A recording of 1000 steps has each name 1000 times. The copies are never freed: a program holds
 * few recordings, and they share most of their texts.
 *
 * Threads  any.
 */
#pragma once

/* Returns the copy of this text, valid until the end of the program; NULL: no memory. */
const char *vn_intern(const char *text);
