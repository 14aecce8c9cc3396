package delta

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
)

// TestPackedIntegers packs lists one after another into the same memory, ascending ones near a
// line.
func TestPackedIntegers(t *testing.T) {
	seedtest.Check(t, func(t *rapid.T) {
		var memory []byte
		var lists [][]uint64
		var packs []packed
		for range rapid.IntRange(1, 4).Draw(t, "lists") {
			n := rapid.IntRange(0, 70).Draw(t, "n")
			width := rapid.IntRange(0, 64).Draw(t, "width")
			highest := uint64(math.MaxUint64) >> (64 - width)
			values := rapid.SliceOfN(rapid.Uint64Range(0, highest), n, n).Draw(t, "values")
			var p packed
			if width <= 32 && rapid.Bool().Draw(t, "line") {
				slices.Sort(values)
				rows := make([]uint32, n)
				for i, v := range values {
					rows[i] = uint32(v)
				}
				p, memory = pack(memory, rows, slopeOf(rows))
			} else {
				if low := highest / 2; rapid.Bool().Draw(t, "high") {
					for i := range values {
						values[i] = math.MaxUint64 - low + values[i]/2
					}
				}
				p, memory = pack(memory, values, 0)
			}
			lists, packs = append(lists, values), append(packs, p)
		}
		memory = growBytes(memory, packedPad)
		for k, want := range lists {
			p := &packs[k]
			p.attach(memory)
			for i, v := range want {
				if got := p.at(i); got != v {
					t.Fatalf("list %d, integer %d of %d: %d, want %d (%+v)", k, i, len(want), got, v, *p)
				}
			}
			if n := len(want); n > 0 && slices.Max(want) < 1<<32 {
				i := rapid.IntRange(0, n-1).Draw(t, "from")
				for j, got := range p.read(nil, i, n-i) {
					if uint64(got) != want[i+j] {
						t.Fatalf("list %d, read %d of %d: %d, want %d", k, i+j, n, got, want[i+j])
					}
				}
			}
		}
	})
}

// TestParsedBlockHasTheDeltas compares parsed cblocks with their cells: few and many timestamps,
// close together and far apart. All are parsed in the same memory.
func TestParsedBlockHasTheDeltas(t *testing.T) {
	reused := new(deltaBlock)
	seedtest.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 700).Draw(t, "n")
		times := rapid.SampledFrom([]uint64{1, 7, 250, 260, 1 << 30, math.MaxUint64}).Draw(t, "times")
		base := rapid.SampledFrom([]uint64{0, 1 << 62}).Draw(t, "base")
		step := rapid.SampledFrom([]int{0, 1, 5, 1 << 20}).Draw(t, "step")
		rnd := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))
		var deltas []change.Delta
		var cells [][]byte
		row := uint32(rnd.IntN(100))
		for i := range n {
			if rnd.IntN(3) > 0 {
				row += uint32(rnd.IntN(step + 1))
			}
			d := change.Delta{Row: row, TS: mvcc.Timestamp(base + rnd.Uint64N(times)), List: setInt(11, i)}
			if rnd.IntN(5) == 0 {
				d.List = drop()
			}
			deltas = append(deltas, d)
			cells = append(cells, append(AppendKey(nil, d.Row, d.TS), d.List...))
		}
		b, _ := must.Get2(parseBlock(reused, cells, testSchema))(t)
		sameDeltas(t, "parsed", slices.Collect(b.entriesOf(0, b.entries)), deltas)
		for range 20 {
			snap := mvcc.Snapshot(base + rnd.Uint64N(times))
			bound, i := b.keyBound(snap), rnd.IntN(n)
			if got, want := b.keys.at(i) < bound, snap.Sees(deltas[i].TS); got != want {
				t.Fatalf("delta %d at %d: seen at %d: %v", i, deltas[i].TS, snap, got)
			}
			from, row := rnd.IntN(b.entries+1), uint64(rnd.IntN(int(b.high)+2))
			want := from
			for want < b.entries && uint64(b.row(want)) < row {
				want++
			}
			if got := b.atOrAfter(from, row); got != want {
				t.Fatalf("row %d from entry %d is at entry %d, want %d", row, from, got, want)
			}
		}
	})
}
