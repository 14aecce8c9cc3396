package cfile

import (
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
)

// randomPresence returns rows bits in runs of the given mean length.
func randomPresence(rng *rand.Rand, rows, mean int) batch.Bitmap {
	b := batch.MakeBitmap(rows)
	one := rng.IntN(2) == 0
	for i := 0; i < rows; {
		n := min(1+rng.IntN(2*mean), rows-i)
		if one {
			b.SetRange(i, i+n)
		}
		i, one = i+n, !one
	}
	return b
}

func parsed(t *testing.T, bits batch.Bitmap, rows int) presence {
	t.Helper()
	n, stream, rest, err := splitPrologue(append(encoding.AppendNullPrologue(nil, rows, bits), 1, 2, 3))
	if err != nil || int(n) != rows || len(rest) != 3 {
		t.Fatal(n, rest, err)
	}
	return must.Get(parsePresence(stream, n))(t)
}

// Presence stored as runs gives the same results as a bitmap.
func TestPresenceAgreesWithBitmap(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(3, seed))
		rows := 1 + rng.IntN(5000)
		bits := randomPresence(rng, rows, 1+rng.IntN(100))
		p := parsed(t, bits, rows)
		must.Equal(t, int(p.ones), bits.Count(), seed)
		for range 200 {
			row := rng.IntN(rows)
			v, present := p.find(row)
			must.Equal(t, present, bits.Get(row), seed, row)
			must.Equal(t, v, bits.CountRange(0, row), seed, row)
			must.Equal(t, p.rank(row), bits.CountRange(0, row), seed, row)
			n, at := rng.IntN(rows-row+1), rng.IntN(200)
			got := batch.MakeBitmap(at + n + 70)
			got.SetRange(0, at+n+70)
			p.clearNulls(got, at, row, n)
			for i := range at + n + 70 {
				want := i < at || i >= at+n || bits.Get(row+i-at)
				must.Equal(t, got.Get(i), want, seed, i, row, row+n, at)
			}
		}
	}
}

func TestSpreadMovesCellsToTheirRows(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(4, seed))
		rows := 1 + rng.IntN(300)
		bits := randomPresence(rng, rows+10, 1+rng.IntN(20))
		cells := make([]int, rows+10)
		m := bits.CountRange(10, rows+10)
		for i := range m {
			cells[10+i] = i + 1
		}
		for i := m; i < rows; i++ {
			cells[10+i] = -1
		}
		spread(cells, bits, 10, rows, m)
		next := 1
		for i := 10; i < rows+10; i++ {
			want := 0
			if bits.Get(i) {
				want, next = next, next+1
			}
			must.Equal(t, cells[i], want, seed, i)
		}
	}
}

// A run of NULLs of the maximum length takes no memory.
func TestLongNullRunTakesNoMemory(t *testing.T) {
	// twice 2^30−1 NULLs, then seven values and a NULL
	stream := []byte{0xfe, 0xff, 0xff, 0xff, 0x07, 0, 0xfe, 0xff, 0xff, 0xff, 0x07, 0, 0x03, 0x7f}
	p, err := parsePresence(stream, 1<<31-2+8)
	if err != nil || p.ones != 7 || len(p.marks) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	if v, present := p.find(1 << 31); !present || v != 2 {
		t.Errorf("row 2^31: %d, %v", v, present)
	}
}

// Runs that are concentrated in a few rows are found too. All parts but one then have no mark.
func TestPresenceFindsConcentratedRuns(t *testing.T) {
	const rows, crowd = 1 << 20, 3000
	for _, from := range []int{0, 500_003, rows - crowd} {
		bits := batch.MakeBitmap(rows)
		for i := from; i < from+crowd; i++ {
			if i/20%2 == 0 {
				bits.Set(i)
			}
		}
		p := parsed(t, bits, rows)
		if len(p.parts.mark) < minParts {
			t.Fatalf("%d marks, %d parts: too few for the test", len(p.marks), len(p.parts.mark))
		}
		for i := range rows {
			if i >= from-5 && i < from+crowd+5 || i%977 == 0 || i == rows-1 {
				if v, present := p.find(i); present != bits.Get(i) || v != bits.CountRange(0, i) {
					t.Fatalf("from %d, row %d: %d, %v, want %d, %v", from, i, v, present, bits.CountRange(0, i),
						bits.Get(i))
				}
			}
		}
	}
}

// Widely spaced marks give the same results.
func TestPresenceFindsRunsWithWidelySpacedMarks(t *testing.T) {
	rows := 1 << 20
	bits := batch.MakeBitmap(rows)
	var stream []byte
	for i := range rows { // single runs, which Kudu's writer never writes
		one := byte(i * i >> 3 & 1)
		stream = append(stream, 2, one)
		if one == 1 {
			bits.Set(i)
		}
	}
	p, err := parsePresence(stream, uint32(rows))
	if err != nil || len(p.marks) > maxMarks {
		t.Fatal(len(p.marks), err)
	}
	ones := 0
	for i := range rows {
		if i%997 == 0 || i > rows-40 {
			if v, present := p.find(i); v != ones || present != bits.Get(i) {
				t.Fatalf("row %d: %d, %v, want %d, %v", i, v, present, ones, bits.Get(i))
			}
		}
		if bits.Get(i) {
			ones++
		}
	}
}

func TestMalformedPresenceIsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
	}{
		{"no rows", nil},
		{"bitmap overruns", []byte{3, 9, 2, 1}},
		{"size cut", []byte{3}},
		{"empty repeat", []byte{3, 2, 0, 1}},
		{"no groups", []byte{3, 2, 1, 7}},
		{"value of a repeat missing", []byte{3, 1, 6}},
		{"value of two bits", []byte{3, 2, 6, 2}},
		{"too few rows", []byte{3, 2, 4, 1}},
		{"too few literals", []byte{9, 2, 5, 0xff}},
		{"header of more than 31 bits", []byte{3, 6, 0x81, 0x80, 0x80, 0x80, 0x08, 1}},
		{"trailing bytes", []byte{3, 3, 6, 1, 0}},
	} {
		rows, stream, _, err := splitPrologue(c.b)
		if err == nil {
			_, err = parsePresence(stream, rows)
		}
		must.Fail(t, err, fault.ErrCorrupt, c.name)
	}
	// A last literal run that was padded to whole groups is valid.
	must.Equal(t, must.Get(parsePresence([]byte{5, 0x19, 0}, 6))(t).ones, 3)
}
