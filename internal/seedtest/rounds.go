package seedtest

import (
	"os"
	"testing"
)

// fullVariable is the environment variable that has tests run all of their rounds. CI sets it.
const fullVariable = "ORIBI_FULL"

// share is the share of the rounds, one in this many, that tests run without it.
const share = 3

// Rounds returns how many equal rounds a test runs: full with $ORIBI_FULL, short with -short,
// otherwise a third of full, but at least short.
func Rounds[N int | int64 | uint64](full, short N) N {
	switch {
	case os.Getenv(fullVariable) != "":
		return full
	case testing.Short():
		return short
	}
	return max(full/share, short)
}

// Stride returns which cases a test of many equal ones tries: every one with $ORIBI_FULL, every
// short-th with -short, otherwise every third.
func Stride(short int) int {
	switch {
	case os.Getenv(fullVariable) != "":
		return 1
	case testing.Short():
		return short
	}
	return min(share, short)
}
