package seedtest

import (
	"flag"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/internal/must"
)

func TestSeedIsFixedUnlessTheFlagNamesAnother(t *testing.T) {
	given := flag.Lookup("seed").Value.String()
	defer flag.Set("seed", given)
	for _, c := range []struct {
		flag string
		want uint64
	}{{flag.Lookup("seed").DefValue, fixed}, {"77", 77}} {
		flag.Set("seed", c.flag)
		must.Equal(t, Seed(t), c.want, "-seed", c.flag, "seed")
		must.Equal(t, Rand(t).Uint64(), Rand(t).Uint64(), "-seed", c.flag)
	}
	flag.Set("seed", "0")
	a, b := Seed(t), Seed(t)
	if a == 0 || b == 0 || a == b || a>>48 != 0 || b>>48 != 0 {
		t.Errorf("-seed=0: seeds %d and %d", a, b)
	}
}

func TestCheckDrawsTheSameValuesInEachRun(t *testing.T) {
	draw := func() (all []uint64) {
		Check(t, func(rt *rapid.T) { all = append(all, rapid.Uint64().Draw(rt, "n")) })
		return all
	}
	if a, b := draw(), draw(); len(a) == 0 || !slices.Equal(a, b) {
		t.Errorf("%v\nand then\n%v", a, b)
	}
}
