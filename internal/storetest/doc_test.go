// Package storetest tests a store through its public API: what a program that embeds it can see.
// Tests that need unexported names stay in the packages that declare them.
package storetest
