// Package seedtest provides the seed of random tests: the same seed in each run, or the seed in the
// flag -seed; and the number of their rounds. Campaigns that draw new seeds are in internal/proof.
//
// It is for tests only.
package seedtest

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/internal/must"
)

// fixed is the seed without the flag. go test ./... runs the same tests each time.
const fixed = 1

var seedFlag = flag.Uint64("seed", fixed, "seed of the random tests; 0 draws a new one")

// Seed returns the run's seed, at least 1 and less than 1<<48, so that a test may count up from it,
// unless the flag names a larger one. It logs the flag that repeats the run.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := *seedFlag
	for seed == 0 {
		seed = rand.Uint64() >> 16
	}
	t.Logf("-seed=%d", seed)
	return seed
}

// Rand returns a source of random numbers that starts with Seed.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), 1))
}

// Check is rapid.Check, from Seed unless -rapid.seed names another, with Rounds of the number of
// checks unless -rapid.checks names another. With -short, rapid itself runs a fifth of that number.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue && !testing.Short() {
		n, err := strconv.Atoi(f.DefValue)
		must.Do(t, err)
		f.Value.Set(strconv.Itoa(Rounds(n, 1)))
	}
	if f := flag.Lookup("rapid.seed"); f.Value.String() == f.DefValue {
		f.Value.Set(strconv.FormatUint(Seed(t), 10))
	}
	rapid.Check(t, property)
}
