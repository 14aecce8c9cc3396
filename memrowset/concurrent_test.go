package memrowset

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// step is one write batch of the concurrent test: a change of one row at timestamp i + 1.
type step struct {
	key    string
	insert bool
	n      int // -1 = delete
}

// plan has the interleaved steps of all writers, and the rows that a scan at each timestamp must
// return.
type plan struct {
	steps []step
	rows  []int // rows[i] and sums[i]: live rows and the sum of their n after i steps
	sums  []int
}

func makePlan(seed uint64, steps, writers int) *plan {
	r := rand.New(rand.NewPCG(seed, 0))
	p := &plan{rows: []int{0}, sums: []int{0}}
	now := map[string]int{}
	for i := range steps {
		// Writer i % writers changes only its own rows, as if row locks protected them.
		s := step{key: fmt.Sprintf("%03d-%d", r.IntN(300), i%writers), n: r.IntN(1000)}
		old, live := now[s.key]
		rows, sum := p.rows[i], p.sums[i]
		switch {
		case !live:
			s.insert = true
			rows, sum = rows+1, sum+s.n
		case r.IntN(4) == 0:
			s.n = -1
			rows, sum = rows-1, sum-old
		default:
			sum += s.n - old
		}
		if s.n < 0 {
			delete(now, s.key)
		} else {
			now[s.key] = s.n
		}
		p.steps, p.rows, p.sums = append(p.steps, s), append(p.rows, rows), append(p.sums, sum)
	}
	return p
}

// While writers change rows, scans at a published snapshot return exactly the rows of that
// snapshot, every time.
func TestScansAreConsistentWithConcurrentWriters(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	writers, steps := 3, 60_000
	if testing.Short() {
		steps = 20_000
	}
	p := makePlan(seed, steps, writers)
	m := New(testSchema(t), nil)
	done := make([]atomic.Bool, steps+1)
	var visible atomic.Int64 // steps that are applied, and all before them
	publish := func() {
		for {
			v := visible.Load()
			if v == int64(steps) || !done[v].Load() {
				return
			}
			visible.CompareAndSwap(v, v+1)
		}
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := w; i < steps; i += writers {
				s, ts, lsn := p.steps[i], mvcc.Timestamp(i+1), lsn.LSN(i+1)
				switch {
				case s.insert:
					m.Insert([]byte(s.key), ts, lsn, image(m, s.key, s.n, "x"))
				case s.n < 0:
					m.Mutate([]byte(s.key), ts, lsn, deletion)
				default:
					m.Mutate([]byte(s.key), ts, lsn, set(s.n, "-"))
				}
				done[i].Store(true)
				publish()
			}
		})
	}
	for reader := range 3 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(reader)+1))
			for ended := false; !ended; {
				v := int(visible.Load())
				ended = v == steps
				if v > 0 && r.IntN(2) == 0 {
					v = r.IntN(v) // an older snapshot
				}
				if err := checkScan(m, p, v, r); err != nil {
					t.Error(err)
					return
				}
				key := p.steps[r.IntN(steps)].key
				m.Live([]byte(key))
				m.NewestRow([]byte(key))
			}
		})
	}
	wg.Wait()
	if int(m.LiveRows()) != p.rows[steps] || m.FirstLSN() != 1 || m.MaxTimestamp() != mvcc.Timestamp(steps) {
		t.Errorf("%d live, first LSN %d, max timestamp %d", m.LiveRows(), m.FirstLSN(), m.MaxTimestamp())
	}
}

// checkScan reads all rows as of step v, forward or back, and compares count, sum and order with
// the plan.
func checkScan(m *MemRowSet, p *plan, v int, r *rand.Rand) error {
	descending := r.IntN(2) == 0
	it := m.NewIterator(mvcc.Snapshot(v+1), nil, nil, descending)
	rows, sum, last := 0, 0, ""
	max := 1 + r.IntN(200)
	for keys, images := it.Next(max); keys != nil; keys, images = it.Next(max) {
		for i, key := range keys {
			if rows > 0 && (last < string(key)) == descending {
				return fmt.Errorf("as of %d: key %q after %q, descending %t", v, key, last, descending)
			}
			last = string(key)
			rows++
			sum += int(binary.LittleEndian.Uint32(m.RowFormat().Cell(images[i], 1)))
		}
	}
	if rows != p.rows[v] || sum != p.sums[v] {
		return fmt.Errorf("as of %d: %d rows, sum %d, want %d, %d", v, rows, sum, p.rows[v], p.sums[v])
	}
	return nil
}
