package work

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/bench/peer"
	"github.com/oribi-db/oribi/internal/must"
)

func TestZipfFrequencies(t *testing.T) {
	const n, draws = 1000, 200_000
	z, r := newZipf(n), rand.New(rand.NewPCG(1, 2))
	var seen [n]int
	for range draws {
		seen[z.draw(r)]++
	}
	want := draws / z.zeta // expected frequency of the first number
	if got := float64(seen[0]); got < want*0.97 || got > want*1.03 {
		t.Errorf("0 was drawn %v times, want about %.0f", got, want)
	}
	if seen[0] < seen[1] || seen[1] < seen[10] || seen[10] < seen[500] {
		t.Errorf("frequencies do not descend: %d, %d, %d, %d", seen[0], seen[1], seen[10], seen[500])
	}
}

func TestYCSBOperationsUseExistingRecords(t *testing.T) {
	for _, mix := range ycsbMixes {
		for choice := range ycsbChoices {
			next, kinds := uint64(100), map[uint8]int{}
			for i, o := range ycsbOps(&mix, choice, 5000, 100) {
				kinds[o.kind]++
				switch {
				case o.kind == ycsbInsert && o.record != next:
					t.Fatalf("%s %s: operation %d inserts record %d, want %d", mix.letter, choice, i, o.record, next)
				case o.kind == ycsbInsert:
					next++
				case o.record >= next:
					t.Fatalf("%s %s: operation %d is on record %d of %d", mix.letter, choice, i, o.record, next)
				}
				if int(o.field) >= peer.Fields || o.rows < 1 || o.rows > 100 {
					t.Fatalf("%s %s: field %d, %d rows", mix.letter, choice, o.field, o.rows)
				}
			}
			if got, want := kinds[mix.kind], 5000*mix.other/100; mix.other > 0 && (got < want*4/5 || got > want*6/5) {
				t.Errorf("%s %s: %d operations are not reads, want about %d", mix.letter, choice, got, want)
			}
		}
	}
}

func TestRecordsHaveDistinctKeys(t *testing.T) {
	seen := map[string]bool{}
	for i := range uint64(100_000) {
		seen[string(ycsbKey(nil, i))] = true
	}
	must.Equal(t, len(seen), 100_000)
}

// putKeys records the keys that are written.
type putKeys struct {
	peer.Records
	keys []string
}

func (p *putKeys) Put(keys, values [][]byte) error {
	for i, k := range keys {
		if len(values[i]) != peer.Fields*peer.FieldBytes {
			return fmt.Errorf("%s has %d bytes", k, len(values[i]))
		}
		p.keys = append(p.keys, string(k))
	}
	return nil
}

func TestRecordsAreLoadedInKeyOrder(t *testing.T) {
	const n = 2500
	var want []string
	for i := range n {
		want = append(want, string(ycsbKey(nil, uint64(i))))
	}
	slices.Sort(want)
	var got putKeys
	if err := putRecords(&got, n, peer.Fields*peer.FieldBytes); err != nil || !slices.Equal(got.keys, want) {
		t.Errorf("wrote %d keys, in order: %v; want %d; %v", len(got.keys), slices.IsSorted(got.keys), n, err)
	}
}
