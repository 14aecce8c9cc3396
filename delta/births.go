package delta

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
)

// Birth records that the rows [First, First+Rows) were inserted at one timestamp. It stands for an
// undo of each of them, a DELETE at that timestamp, which applies after all other undos of the row.
type Birth struct {
	First, Rows uint32
	TS          mvcc.Timestamp
}

// MaxBirths is the maximum number of births of one rowset.
const MaxBirths = 256

// CheckBirths returns an error unless births are valid for a rowset with so many rows: ascending,
// disjoint, at most MaxBirths. Errors: ErrCorrupt.
func CheckBirths(births []Birth, rows int64) error {
	if len(births) > MaxBirths {
		return fault.Corruptf("%d births, more than %d", len(births), MaxBirths)
	}
	end := uint64(0)
	for i, b := range births {
		if uint64(b.First) < end || b.Rows == 0 || b.end() > uint64(rows) {
			return fault.Corruptf("birth %d of rows %d to %d, of %d rows, after row %d", i, b.First, b.end(), rows, end)
		}
		end = b.end()
	}
	return nil
}

// end returns the row ID after the last row.
func (b Birth) end() uint64 { return uint64(b.First) + uint64(b.Rows) }

// within returns the rows of b that are in [from, to); there are none if lo >= hi.
func (b Birth) within(from, to uint64) (lo, hi uint64) {
	return max(uint64(b.First), from), min(b.end(), to)
}

// birthsOf returns the births of rows in [from, to).
func birthsOf(births []Birth, from, to uint64) []Birth {
	i, _ := slices.BinarySearchFunc(births, from, func(b Birth, from uint64) int {
		if b.end() <= from {
			return -1
		}
		return 1
	})
	j := i
	for j < len(births) && uint64(births[j].First) < to {
		j++
	}
	return births[i:j]
}

// MakeBirths takes the births out of undos: each long enough run of rows whose oldest undos are
// DELETEs at one timestamp. undos are the undos of consecutive rows, sorted by row and within a row
// newest first. MakeBirths appends the births to births, which has the births of earlier rows, with
// row IDs increased by first, and returns the other undos: undos itself if there are no births,
// otherwise in the memory of rest.
func MakeBirths(births []Birth, undos, rest []change.Delta, first uint32) ([]Birth, []change.Delta) {
	taken := 0 // undos before this one are in births or in rest
	rest = rest[:0]
	for i := 0; i < len(undos); {
		b, end := firstBirth(undos[i:])
		end += i
		b.First += first
		last := len(births) - 1
		switch {
		case b.Rows > 0 && last >= 0 && b.follows(births[last]):
			births[last].Rows += b.Rows
		case b.Rows >= minBirth && last+1 < MaxBirths:
			births = append(births, b)
		default:
			i = end
			continue
		}
		rest = append(rest, undos[taken:i]...)
		for ; i < end; i++ {
			if !oldest(undos, i) {
				rest = append(rest, undos[i])
			}
		}
		taken = end
	}
	if taken == 0 {
		return births, undos
	}
	return births, append(rest, undos[taken:]...)
}

// JoinBirths appends more, the births of later rows, to births, with row IDs increased by first. It
// returns false, and appends nothing, if they would be too many. Unlike MakeBirths, it accepts
// births of a few rows: they are parts of longer births.
func JoinBirths(births, more []Birth, first uint32) ([]Birth, bool) {
	n := len(births) + len(more)
	if len(births) > 0 && len(more) > 0 && more[0].after(first).follows(births[len(births)-1]) {
		n--
	}
	if n > MaxBirths {
		return births, false
	}
	for _, b := range more {
		b = b.after(first)
		if i := len(births) - 1; i >= 0 && b.follows(births[i]) {
			births[i].Rows += b.Rows
		} else {
			births = append(births, b)
		}
	}
	return births, true
}

// after returns b with row IDs increased by first.
func (b Birth) after(first uint32) Birth {
	b.First += first
	return b
}

// follows reports whether the rows of b come right after the rows of a, with the same timestamp.
func (b Birth) follows(a Birth) bool {
	return a.Rows > 0 && a.TS == b.TS && a.end() == uint64(b.First)
}

// BirthsWithin appends the births of rows in [from, to) to dst, with row IDs relative to from.
func BirthsWithin(dst, births []Birth, from batch.Ordinal, to int64) []Birth {
	for _, b := range birthsOf(births, uint64(from), uint64(to)) {
		lo, hi := b.within(uint64(from), uint64(to))
		dst = append(dst, Birth{First: uint32(lo - uint64(from)), Rows: uint32(hi - lo), TS: b.TS})
	}
	return dst
}

// AddBirths adds the undos that births stand for to undos, which are sorted by row and within a row
// newest first.
func AddBirths(undos []change.Delta, births []Birth) []change.Delta {
	for _, b := range births {
		undos = b.AppendUndos(undos, 0, b.end())
	}
	sortUndos(undos)
	return undos
}

// minBirth is the minimum number of rows of a birth that MakeBirths makes. Smaller ones would take
// about as much space in the metadata as their undos in a file.
const minBirth = 128

// firstBirth returns the birth of the first rows of undos and the number of their undos; without
// rows if the first row has none, with the number of that row's undos.
func firstBirth(undos []change.Delta) (b Birth, n int) {
	for i := range undos {
		d := &undos[i]
		if !oldest(undos, i) {
			continue
		}
		born := d.List.Kind() == change.Delete
		switch {
		case b.Rows == 0 && !born:
			return b, i + 1
		case b.Rows == 0:
			b = Birth{First: d.Row, TS: d.TS}
		case !born || d.TS != b.TS || uint64(d.Row) != b.end():
			return b, n
		}
		b.Rows++
		n = i + 1
	}
	return b, n
}

// oldest reports whether undos[i] is the oldest one of its row.
func oldest(undos []change.Delta, i int) bool {
	return i+1 == len(undos) || undos[i+1].Row != undos[i].Row
}

// AppendUndos appends the undos that b stands for, of rows in [from, to).
func (b Birth) AppendUndos(dst []change.Delta, from, to uint64) []change.Delta {
	lo, hi := b.within(from, to)
	for row := lo; row < hi; row++ {
		dst = append(dst, change.Delta{Row: uint32(row), TS: b.TS, List: deleteList})
	}
	return dst
}

var deleteList = change.List(change.AppendDelete(nil))
