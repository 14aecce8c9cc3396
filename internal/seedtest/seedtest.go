// Package seedtest gives random tests their seed: a new one in each run, told in the test's log,
// and taken back by the flag -seed.
//
// For tests alone; nothing in the product imports it.
package seedtest

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 takes a new one")

// Seed is the run's seed, never 0.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := *seedFlag
	for seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed=%d", seed)
	return seed
}

// Rand is a source of random numbers that starts with Seed.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), 1))
}
