package lab

import (
	"math"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// Each workload inserts a row only if its key is absent, and changes only rows that exist.
func TestWorkloadsChangeOnlyExistingRows(t *testing.T) {
	for _, k := range kinds {
		if k.stream == nil {
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			w := &Workload{Name: k.Name, Keys: 700, Operations: 5000, Late: 0.2 * float64(len(k.fields)/6)}
			w.fill()
			ops, again := k.stream(w, newRandom(seedtest.Seed(t), "operations")),
				k.stream(w, newRandom(seedtest.Seed(t), "operations"))
			rows, most := map[int64]bool{}, 0
			counts := [3]int{}
			for range w.Operations {
				o := ops.next()
				must.Equal(t, again.next(), o, "with one seed")
				if rows[o.key] != (o.kind != opInsert) || o.key < 0 {
					t.Fatalf("%v: there is a row: %v", o, rows[o.key])
				}
				if counts[o.kind]++; o.kind == opDelete {
					delete(rows, o.key)
				} else {
					rows[o.key] = true
				}
				most = max(most, len(rows))
			}
			wantRows := map[string]int{"time-series": 5000}
			if want, ok := wantRows[k.Name]; most > 700 && !ok || ok && most < want*9/10 {
				t.Errorf("%d rows", most)
			}
			if counts[opDelete] > 0 != (k.Name == "old-deletes") || counts[opInsert] < 500 {
				t.Errorf("%v", counts)
			}
		})
	}
}

func TestZipfRanksHaveTheirProbabilities(t *testing.T) {
	for _, theta := range []float64{0.3, 0.99, 1, 2.5} {
		const n, draws = 50, 40_000
		z := newZipfRanks(newRandom(seedtest.Seed(t), "zipf"), n, theta)
		counts, sum := [n]float64{}, 0.0
		for range draws {
			counts[z.next()]++
		}
		for i := range n {
			sum += math.Pow(float64(i+1), -theta)
		}
		for i := range n {
			want := draws * math.Pow(float64(i+1), -theta) / sum
			if math.Abs(counts[i]-want) > 5*math.Sqrt(want)+1 {
				t.Errorf("theta %v: rank %d is drawn %v times, want %.0f", theta, i, counts[i], want)
			}
		}
	}
}

func TestShuffledAndScatteredAreOneToOne(t *testing.T) {
	for _, n := range []int64{1, 2, 100, 4096, 65537} {
		set := newKeySet(n)
		for i := range n {
			if k := shuffled(i, n); k < 0 || k >= n || !set.add(k) {
				t.Fatalf("%d of %d: %d", i, n, k)
			}
		}
	}
	seen := map[int64]bool{}
	for i := range int64(100_000) {
		seen[scattered(i*977)] = true
	}
	must.Equal(t, len(seen), 100_000, "numbers")
}
