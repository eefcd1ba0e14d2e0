/* page.h: the page of `--format html`, made by the build from the files of compare/html. */
#ifndef VN_COMPARE_PAGE_H
#define VN_COMPARE_PAGE_H

/* HTML with @TITLE@, @STORY@ and @DATA@ in it, once each and in this order. */
extern const unsigned char vn_page[];

#endif
