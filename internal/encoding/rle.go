package encoding

import (
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
)

// Runs of values of w bits. Each run begins at a byte boundary. Source: cfile spec §4.4.
//
//	width                field   meaning
//	varint, ≤ 31 bits    header  lowest bit 0: a repeat; the rest is the number of repetitions, at least 1
//	                             lowest bit 1: literals; the rest is the number of groups of 8, at least 1
//	repeat: ⌈w/8⌉        value   little-endian
//	literals: groups × w values  packed, lowest bit first; the last run of a stream has only the bytes
//	                             that its values need, though its header counts whole groups
//
// The number of values is stored elsewhere. 9 × 5, then 1, 2, 3 of 8 bits: 12 05 03 01 02 03; eight
// 1 and a 0 of one bit: 10 01 02 00
const (
	literalBit   = 1         // file format: never change
	groupValues  = 8         // values in a group; file format: never change
	maxLiteral   = 63        // groups of a literal run, so that its header is one byte
	maxRunHeader = 1<<31 - 1 // file format: never change
	minRepeat    = 8         // values, starting at a group boundary, that become a repeat
)

// run is one run, or the needed part of it.
type run struct {
	literal bool
	count   int    // values, at least 1
	body    []byte // the value of a repeat; the packed values of literals, at least ⌈count×w/8⌉ bytes
}

// nextRun reads the run at the front of b, for values of width bits (1, or a multiple of 8). At
// most need of its values are needed, need ≥ 1. used is its length in bytes.
func nextRun(b []byte, width, need int) (r run, used int, err error) {
	header, used, ok := coding.Uvarint32(b)
	if !ok || header > maxRunHeader {
		return r, 0, fault.Corruptf("encoding: run: bad header with %d values to come", need)
	}
	n := int(header >> 1)
	if n == 0 {
		return r, 0, fault.Corruptf("encoding: run of no values with %d to come", need)
	}
	b = b[used:]
	if header&literalBit == 0 {
		size := (width + 7) / 8
		if len(b) < size {
			return r, 0, fault.Corruptf("encoding: run: value of %d bytes, %d left", size, len(b))
		}
		return run{count: min(n, need), body: b[:size:size]}, used + size, nil
	}
	// 2^30 groups of 64-bit values are 2^39 bytes: no overflow.
	size, count := n*width, min(n*groupValues, need)
	if size > len(b) {
		size = len(b)
		if (count*width+7)/8 > size {
			return r, 0, fault.Corruptf("encoding: run: %d literals of %d bits in %d bytes", count, width, size)
		}
	}
	return run{literal: true, count: count, body: b[:size:size]}, used + size, nil
}

// runWriter writes runs, byte for byte as Kudu does. It processes values in groups of 8 that begin
// where the last repeat ended. A group of equal values may grow into a repeat; any other group
// joins the open run of literals.
type runWriter struct {
	out   []byte
	width int // bits of a value

	cur    uint64 // the last value
	repeat int    // its repetitions since the last group of literals

	staged   [groupValues]uint64 // the group that is not decided yet
	stagedN  int
	literals int // values in the open run of literals; staged ones are not counted
	headerAt int // offset of its header in out, -1 when none is open
}

// reset clears w, for values of width bits: 1, 8, 16, 32 or 64.
func (w *runWriter) reset(width int) {
	*w = runWriter{out: w.out[:0], width: width, headerAt: -1}
}

// put appends v n times.
func (w *runWriter) put(v uint64, n int) {
	for ; n > 0; n-- {
		if v == w.cur {
			w.repeat++
			if w.repeat > minRepeat {
				// After the first group a repeat only grows, so all remaining values are added at
				// once.
				w.repeat += n - 1
				return
			}
		} else {
			if w.repeat >= minRepeat {
				w.closeRepeat()
			}
			w.repeat, w.cur = 1, v
		}
		w.staged[w.stagedN] = v
		w.stagedN++
		if w.stagedN == groupValues {
			w.closeGroup()
		}
	}
}

// closeGroup decides how the full group is encoded.
func (w *runWriter) closeGroup() {
	if w.repeat >= minRepeat {
		w.stagedN = 0
		if w.literals != 0 {
			w.closeLiterals()
		}
		return
	}
	w.literals += groupValues
	w.flushStaged()
	if w.literals == maxLiteral*groupValues {
		w.closeLiterals()
	}
	w.repeat = 0
}

// flushStaged appends the staged values to the run of literals, which it opens if necessary. It
// pads an incomplete group to a whole byte.
func (w *runWriter) flushStaged() {
	if w.headerAt < 0 {
		w.headerAt = len(w.out)
		w.out = append(w.out, 0)
	}
	staged := w.staged[:w.stagedN]
	w.stagedN = 0
	if w.width == 1 {
		var b byte
		for i, v := range staged {
			b |= byte(v) << i
		}
		if len(staged) > 0 {
			w.out = append(w.out, b)
		}
		return
	}
	for _, v := range staged {
		w.out = appendLow(w.out, v, w.width/8)
	}
}

func (w *runWriter) closeLiterals() {
	groups := (w.literals + groupValues - 1) / groupValues
	w.out[w.headerAt] = byte(groups<<1 | literalBit)
	w.headerAt, w.literals = -1, 0
}

func (w *runWriter) closeRepeat() {
	// Repeats never make a block full, so a repeat may be as long as a column.
	for w.repeat > 0 {
		n := min(w.repeat, maxRunHeader>>1)
		w.out = coding.AppendUvarint32(w.out, uint32(n)<<1)
		w.out = appendLow(w.out, w.cur, (w.width+7)/8)
		w.repeat -= n
	}
	w.stagedN = 0
}

// finish ends the stream and returns it. The result is valid until the next reset.
func (w *runWriter) finish() []byte {
	switch {
	case w.literals == 0 && w.repeat == 0 && w.stagedN == 0:
	case w.literals == 0 && w.repeat > 0 && (w.stagedN == 0 || w.stagedN == w.repeat):
		w.closeRepeat()
	default:
		w.literals += w.stagedN
		w.flushStaged()
		w.closeLiterals()
	}
	return w.out
}

// appendLow appends the low n bytes of v.
func appendLow(dst []byte, v uint64, n int) []byte {
	for ; n > 0; n-- {
		dst = append(dst, byte(v))
		v >>= 8
	}
	return dst
}
