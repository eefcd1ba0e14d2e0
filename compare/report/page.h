/* page.h: the HTML page of `--format html`, which the build makes from the files of
 * compare/html. */
#ifndef VN_COMPARE_PAGE_H
#define VN_COMPARE_PAGE_H

/* HTML with the placeholders @TITLE@, @STORY@ and @DATA@, once each and in this order. */
extern const unsigned char vn_page[];

#endif
