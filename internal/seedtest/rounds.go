package seedtest

import (
	"os"
	"testing"

	"github.com/oribi-db/oribi/internal/invariant"
)

// fullVariable is the environment variable that has tests run all of their rounds. CI sets it.
const fullVariable = "ORIBI_FULL"

// share is the share of the rounds, one in this many, that tests run without it. raceShare is the
// same with the race detector, of the rounds of -short: it makes a round ten times as long, and a
// race of two places in the code is found by the first rounds that reach both.
const share, raceShare = 3, 4

// Full reports whether tests run all of their rounds.
func Full() bool { return os.Getenv(fullVariable) != "" }

// Rounds returns how many equal rounds a test runs: full with $ORIBI_FULL, short with -short, a
// quarter of short with -short and the race detector, otherwise a third of full, but at least short.
// A test whose rounds check together that something has happened needs as many as short says:
// it calls Needed instead.
func Rounds[N int | int64 | uint64](full, short N) N {
	return rounds(full, short, invariant.Race)
}

// Needed is Rounds without fewer rounds for the race detector.
func Needed[N int | int64 | uint64](full, short N) N { return rounds(full, short, false) }

func rounds[N int | int64 | uint64](full, short N, race bool) N {
	switch {
	case Full():
		return full
	case testing.Short() && race:
		return max(short/raceShare, 1)
	case testing.Short():
		return short
	}
	return max(full/share, short)
}

// Stride returns which cases a test of many equal ones tries: every one with $ORIBI_FULL, every
// short-th with -short, about a quarter of these with -short and the race detector, otherwise every
// third. With the race detector it is odd, so that it reaches each of two alternating kinds.
func Stride(short int) int { return stride(short, invariant.Race) }

func stride(short int, race bool) int {
	switch {
	case Full():
		return 1
	case testing.Short() && race && short > 1:
		return short*raceShare - 1
	case testing.Short():
		return short
	}
	return min(share, short)
}
