package compaction

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// hostileLayout returns rowsets with sizes, keys and IDs that a store never has.
func hostileLayout(r *rand.Rand) Layout {
	sizes := []int64{0, 1, -1, 1 << 20, 1 << 25, 1 << 40, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64}
	var l Layout
	for id := range r.IntN(30) {
		key := func() []byte {
			k := make([]byte, r.IntN(4))
			for i := range k {
				k[i] = byte(r.IntN(3)) * 127
			}
			return append(bytes.Repeat([]byte{'p'}, r.IntN(2)*20), k...)
		}
		l.RowSets = append(l.RowSets, RowSetInfo{ID: uint64(id - r.IntN(10)/9), MinKey: key(), MaxKey: key(),
			Bytes: sizes[r.IntN(len(sizes))]})
	}
	return l
}

// checkChoice checks what every choice of a policy of this package satisfies. Only Overlap may
// choose two rowsets above the budget.
func checkChoice(t *testing.T, name string, l Layout, budget int64, c Choice) {
	t.Helper()
	used := uint64(0)
	seen := map[uint64]bool{}
	for _, id := range c.RowSets {
		i := slices.IndexFunc(l.RowSets, func(r RowSetInfo) bool { return r.ID == id })
		if i < 0 || seen[id] {
			t.Fatalf("%s: %v, %d is unknown or chosen twice: %+v", name, c.RowSets, id, l.RowSets)
		}
		seen[id] = true
		r := &l.RowSets[i]
		if r.Bytes < 0 || bytes.Compare(r.MinKey, r.MaxKey) > 0 {
			t.Fatalf("%s: %+v is not well-formed", name, r)
		}
		used += uint64(r.Bytes)
		if used > uint64(max(budget, 0)) && (name != "overlap" || len(c.RowSets) > 2) {
			t.Fatalf("%s: %v have more than %d bytes: %+v", name, c.RowSets, budget, l.RowSets)
		}
	}
	if len(c.RowSets) == 1 || (c.Why != "") != (len(c.RowSets) > 0) || math.IsNaN(c.Quality) ||
		math.IsInf(c.Quality, 0) {
		t.Fatalf("%s: %+v of %+v", name, c, l.RowSets)
	}
}

func TestPoliciesAcceptAnyLayout(t *testing.T) {
	r := seedtest.Rand(t)
	picks := map[string]int{}
	for range 800 {
		l := hostileLayout(r)
		before := Layout{RowSets: slices.Clone(l.RowSets)}
		budget := []int64{math.MinInt64, -1, 0, 1, 1 << 21, 1 << 30, math.MaxInt64}[r.IntN(7)]
		for name, p := range Named() {
			c := p.Pick(l, budget)
			checkChoice(t, name, l, budget, c)
			must.Equal(t, p.Pick(l, budget), c, name, c, "and then")
			must.Equal(t, l, before, name, "changed the layout")
			if len(c.RowSets) > 0 {
				picks[name]++
			}
		}
	}
	for name := range Named() {
		must.Equal(t, picks[name] < 10, name == "none", name, "picked", picks[name], "times")
	}
}

// tableModel has the keys of each rowset of a table. A row has rowBytes bytes.
type tableModel struct {
	sets   map[uint64][]uint64
	nextID uint64
	wrote  int // rows
}

const (
	rowBytes   = 1 << 16
	rowSetRows = 128 // 8 MiB
)

// write adds keys as rowsets that do not overlap.
func (m *tableModel) write(keys []uint64) {
	slices.Sort(keys)
	m.wrote += len(keys)
	for part := range slices.Chunk(keys, rowSetRows) {
		m.nextID++
		m.sets[m.nextID] = part
	}
}

func (m *tableModel) layout() Layout {
	l := Layout{RowSetBytes: rowSetRows * rowBytes}
	for _, id := range slices.Sorted(maps.Keys(m.sets)) {
		keys := m.sets[id]
		key := func(k uint64) []byte { return binary.BigEndian.AppendUint64(nil, k) }
		l.RowSets = append(l.RowSets,
			RowSetInfo{ID: id, Rows: int64(len(keys)), Bytes: int64(len(keys)) * rowBytes, MinKey: key(keys[0]),
				MaxKey: key(keys[len(keys)-1])})
	}
	slices.SortStableFunc(l.RowSets, func(a, b RowSetInfo) int { return bytes.Compare(a.MinKey, b.MinKey) })
	return l
}

func (m *tableModel) merge(c Choice) {
	var keys []uint64
	for _, id := range c.RowSets {
		keys = append(keys, m.sets[id]...)
		delete(m.sets, id)
	}
	m.write(keys)
}

// Each policy ends for each flush, and the figures show what it is for: see docs/compaction.md.
func TestPoliciesTradeWritesForDepth(t *testing.T) {
	const flushes, budget = 60, 256 * mib
	depths, written := map[string]float64{}, map[string]float64{}
	for name, p := range Named() {
		r := seedtest.Rand(t)
		m := &tableModel{sets: map[uint64][]uint64{}}
		for range flushes {
			keys := make([]uint64, rowSetRows)
			for i := range keys {
				keys[i] = r.Uint64()
			}
			m.write(keys)
			for picks := 0; ; picks++ {
				l := m.layout()
				c := p.Pick(l, budget)
				checkChoice(t, name, l, budget, c)
				if len(c.RowSets) == 0 {
					break
				}
				if m.merge(c); picks > 100 {
					t.Fatalf("%s does not end: %+v", name, l.RowSets)
				}
			}
			depths[name] += depth(Spans(m.layout())) / flushes
		}
		written[name] = float64(m.wrote) / (flushes * rowSetRows)
	}
	for _, name := range slices.SortedFunc(maps.Keys(depths),
		func(a, b string) int { return cmp.Compare(depths[a], depths[b]) }) {
		t.Logf("%-9s depth %5.2f, each row written %5.2f times", name, depths[name], written[name])
	}
	for _, order := range []struct {
		what  string
		of    map[string]float64
		names []string // ascending
	}{
		{"depth", depths, []string{"budgeted", "leveled", "tiered", "none"}},
		{"rows written", written, []string{"none", "tiered", "leveled", "budgeted"}},
	} {
		for i, name := range order.names[1:] {
			if before := order.names[i]; order.of[before]*1.2 > order.of[name] {
				t.Errorf("%s: %s %.2f, %s %.2f", order.what, before, order.of[before], name, order.of[name])
			}
		}
	}
}
