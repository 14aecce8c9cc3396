// Package browsertest opens the pages of package inspect in Chromium: it looks at them in windows
// of several sizes, light and dark, operates them with the mouse and the keyboard, with and without
// scripts, and attacks them from pages of other origins. It is a module of its own, so that the
// driver of the browser is no dependency of the product.
//
// The tests need Chromium, which $ORIBI_CHROMIUM or the search path names, and are skipped without
// it. With $ORIBI_SCREENSHOTS, the screenshots are stored in that directory, for people.
package browsertest
