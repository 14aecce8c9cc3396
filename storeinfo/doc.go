// Package storeinfo contains the types with which a store describes itself: what it found when it
// was opened, what it has done since, and what it uses. Package oribi has aliases of all of them,
// and its Store returns them.
package storeinfo
