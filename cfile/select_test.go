package cfile

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// randomPredicate returns a predicate, mostly on values that occur.
func randomPredicate(t testing.TB, rng *rand.Rand, typ schema.Type, cells [][]byte) *batch.Predicate {
	t.Helper()
	p := &batch.Predicate{Column: "c", Type: typ, Op: batch.Operator(1 + rng.IntN(int(batch.InFilter)))}
	value := func() []byte {
		if i := rng.IntN(len(cells)); cells[i] != nil && rng.IntN(4) > 0 {
			return cells[i]
		}
		if typ.Variable() {
			return randomString(rng)
		}
		return randomFixed(rng, typ)
	}
	switch {
	case p.Op <= batch.Ge:
		p.Values = [][]byte{value()}
	case p.Op == batch.In:
		for range 1 + rng.IntN(5) {
			p.Values = append(p.Values, value())
		}
	case p.Op == batch.InFilter:
		p.Filter = bloom.NewWithEstimates(10, 0.2)
		for range 1 + rng.IntN(10) {
			p.Filter.Add(value())
		}
	}
	must.Do(t, p.Prepare())
	return p
}

// SelectAll clears exactly the rows that do not match all predicates, cell by cell, and no others
// if it does not handle the predicates.
func TestSelectClearsRowsThatDoNotMatch(t *testing.T) {
	handledCount := 0
	seed := uint64(0)
	for _, typ := range allTypes {
		for _, enc := range allEncodings {
			if !enc.Allowed(typ) {
				continue
			}
			for _, nullable := range []bool{false, true} {
				seed++
				t.Run(fmt.Sprintf("type=%v/enc=%v/nullable=%v/seed=%d", typ, enc, nullable, seed), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(21, seed))
					share := 0.0
					if nullable {
						share = []float64{0, 0.2, 1}[rng.IntN(3)]
					}
					cells := randomCells(rng, typ, 2000+rng.IntN(3000), share)
					if rng.IntN(2) == 0 && !nullable && typ.Keyable() {
						slices.SortFunc(cells, func(a, b []byte) int { return batch.Compare(typ, a, b) })
					}
					o := WriterOptions{Type: typ, Encoding: enc, Nullable: nullable, PositionalIndex: true,
						BlockBytes: 512 << rng.IntN(6), Exact: rng.IntN(3) == 0}
					r := open(t, writeSteps(t, rng, o, cells), cache.New(1<<20))
					c := r.NewColumnReader()
					for range 40 {
						if selectOnce(t, rng, c, typ, cells) {
							handledCount++
						}
					}
				})
			}
		}
	}
	if handledCount == 0 {
		t.Error("Select handled no predicate")
	}
	t.Logf("%d predicates handled on encoded data", handledCount)
}

func selectOnce(t *testing.T, rng *rand.Rand, c *ColumnReader, typ schema.Type, cells [][]byte) bool {
	t.Helper()
	ps := []*batch.Predicate{randomPredicate(t, rng, typ, cells)}
	for rng.IntN(2) == 0 {
		ps = append(ps, randomPredicate(t, rng, typ, cells))
	}
	at := rng.IntN(len(cells))
	n := min(1+rng.IntN(1500), len(cells)-at)
	sel := batch.MakeBitmap(n)
	for i := range n {
		if rng.IntN(3) > 0 {
			sel.Set(i)
		}
	}
	before := slices.Clone(sel)
	handled := must.Get(c.SelectAll(batch.Ordinal(at), n, ps, sel))(t)
	text := ""
	for _, p := range ps {
		text += fmt.Sprintf("%v %x ", p.Op, p.Values)
	}
	for i := range n {
		want := before.Get(i) && !slices.ContainsFunc(ps, func(p *batch.Predicate) bool {
			return !p.EvalCell(cells[at+i])
		})
		if got := sel.Get(i); got != want && (handled || want || !before.Get(i)) {
			t.Fatalf("%srow %d is %x, bit is %v, was %v, handled is %v", text, at+i, cells[at+i], got,
				before.Get(i), handled)
		}
	}
	return handled
}

// A zone map never excludes matching values, neither of a cblock nor of the file.
func TestZoneMapsExcludeNoMatchingValues(t *testing.T) {
	excluded, tested := 0, 0
	for seed, typ := range allTypes {
		rng := rand.New(rand.NewPCG(22, uint64(seed)))
		cells := randomCells(rng, typ, 6000, 0.1)
		if typ == schema.Double || typ == schema.Float {
			for i := range cells[:2000] {
				if rng.IntN(3) == 0 {
					cells[i] = floatCell(t, typ, []string{`"NaN"`, "-0", "0", `"+Inf"`, `"-Inf"`, "1"}[rng.IntN(6)])
				}
			}
		}
		o := WriterOptions{Type: typ, Encoding: schema.Plain, Nullable: true, PositionalIndex: true, BlockBytes: 512}
		r := open(t, writeSteps(t, rng, o, cells), nil)
		z, err := r.ZoneMap()
		if err != nil || z == nil {
			t.Fatal(z, err)
		}
		rows, nulls := 0, 0
		for _, e := range z.Entries {
			rows, nulls = rows+e.Rows, nulls+e.Nulls
		}
		if rows != len(cells) || z.File.Rows != rows || z.File.Nulls != nulls {
			t.Errorf("%v: %d rows, file says %+v", typ, rows, z.File)
		}
		for range 100 {
			p := randomPredicate(t, rng, typ, cells)
			inFile := false
			for i, e := range z.Entries {
				some, all := false, true
				for _, c := range cells[e.FirstRow : e.FirstRow+e.Rows] {
					match := p.EvalCell(c)
					some, all = some || match, all && match
				}
				inFile = inFile || some
				if some && !z.MayMatch(i, p) {
					t.Fatalf("%v %v %x: entry %+v excludes it", typ, p.Op, p.Values, e)
				}
				if !all && z.Entries[i].allMatch(typ, p) {
					t.Fatalf("%v %v %x: allMatch is true for entry %+v", typ, p.Op, p.Values, e)
				}
				tested++
				if !z.MayMatch(i, p) {
					excluded++
				}
			}
			if inFile && !z.FileMayMatch(p) {
				t.Fatalf("%v %v %x: the file's bounds exclude it: %+v", typ, p.Op, p.Values, z.File)
			}
		}
	}
	if excluded == 0 {
		t.Error("no zone map excluded any cblock")
	}
	t.Logf("zone maps excluded %d of %d cblocks", excluded, tested)
}

func TestZoneBoundsOfLongStrings(t *testing.T) {
	long := func(b byte, n int) []byte { return slices.Repeat([]byte{b}, n) }
	for _, c := range []struct {
		name       string
		cells      [][]byte
		min, max   string
		cut, round bool
	}{
		{"exactly a bound", [][]byte{long('a', 32)}, string(long('a', 32)), string(long('a', 32)), false, false},
		{"one more", [][]byte{long('a', 33)}, string(long('a', 32)), string(long('a', 31)) + "b", true, true},
		{"carry", [][]byte{append(long('a', 30), 0xff, 0xff, 1)}, string(long('a', 30)) + "\xff\xff",
			string(long('a', 29)) + "b", true, true},
		{"empty", [][]byte{{}}, "", "", false, false},
		{"short below long", [][]byte{[]byte("a"), long('z', 50)}, "a", string(long('z', 31)) + "{", false, true},
	} {
		z := zoneBuilder{t: schema.Binary}
		v := vectorOf(schema.Binary, c.cells)
		z.add(v, 0, v.Len)
		z.close(1)
		m, err := parseZoneMap(z.finish(nil), schema.Binary, 1, int64(v.Len))
		must.Do(t, err, c.name)
		e := m.Entries[0]
		if string(e.Min) != c.min || string(e.Max) != c.max || e.MinCut != c.cut || e.MaxRounded != c.round ||
			e.Min == nil || e.Max == nil {
			t.Errorf("%s: %+v", c.name, e)
		}
	}
	z := zoneBuilder{t: schema.Binary}
	z.add(vectorOf(schema.Binary, [][]byte{long(0xff, 40)}), 0, 1)
	z.close(1)
	m, err := parseZoneMap(z.finish(nil), schema.Binary, 1, 1)
	if err != nil || m.Entries[0].Max != nil ||
		!m.MayMatch(0, &batch.Predicate{Type: schema.Binary, Op: batch.Eq, Values: [][]byte{long(0xff, 99)}}) {
		t.Errorf("a maximum that cannot be rounded: %+v, %v", m, err)
	}
}

func TestZoneMapOfNaNsOnly(t *testing.T) {
	nan := floatCell(t, schema.Double, `"NaN"`)
	r := open(t, writeAll(t, WriterOptions{Type: schema.Double, PositionalIndex: true},
		vectorOf(schema.Double, [][]byte{nan, nan})), nil)
	z, err := r.ZoneMap()
	if err != nil || !z.Entries[0].HasNaN || z.Entries[0].Min != nil {
		t.Fatal(z, err)
	}
	one := floatCell(t, schema.Double, fmt.Sprint(math.Pi))
	for op, want := range map[batch.Operator]bool{batch.Eq: false, batch.Ne: true, batch.Lt: false,
		batch.Ge: false, batch.IsNull: false, batch.NotNull: true} {
		p := &batch.Predicate{Type: schema.Double, Op: op}
		if op <= batch.Ge {
			p.Values = [][]byte{one}
		}
		must.Equal(t, z.MayMatch(0, p), want, op)
	}
	must.Do(t, r.Verify())
}

// Rows that the zone map excludes are not read.
func TestSelectDoesNotReadExcludedCblocks(t *testing.T) {
	v := batch.NewVector(schema.Int64, 200000)
	for i := range batch.Values[int64](v) {
		batch.Values[int64](v)[i] = int64(i)
	}
	src := &countingSource{Source: writeAll(t, WriterOptions{Type: schema.Int64, PositionalIndex: true}, v)}
	r := open(t, src, nil)
	must.Get(r.ZoneMap())(t)
	p := &batch.Predicate{Type: schema.Int64, Op: batch.Lt, Values: [][]byte{make([]byte, 8)}}
	sel := batch.MakeBitmap(200000)
	sel.SetRange(0, 200000)
	before := src.reads.Load()
	handled, err := r.NewColumnReader().Select(0, 200000, p, sel)
	if !handled || err != nil || sel.Any() || src.reads.Load() != before {
		t.Errorf("handled %v, %v, %d rows left, %d reads", handled, err, sel.Count(), src.reads.Load()-before)
	}
}

// The bounds of byte strings equal the extremes of comparing all cells, up to the length of a
// bound.
func TestZoneBoundsAreExtremes(t *testing.T) {
	r := seedtest.Rand(t)
	cut := func(b []byte) []byte { return b[:min(len(b), zoneBoundLen+1)] }
	for range 200 {
		cells := make([][]byte, 1+r.IntN(20))
		for i := range cells {
			cells[i] = make([]byte, r.IntN(40))
			for k := range cells[i] {
				cells[i][k] = byte(r.IntN(2) * 0xff)
			}
		}
		lo, hi := extremeStrings(cells)
		must.Equal(t, lo, cut(slices.MinFunc(cells, bytes.Compare)), cells)
		must.Equal(t, hi, cut(slices.MaxFunc(cells, bytes.Compare)), cells)
	}
}
