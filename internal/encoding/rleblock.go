package encoding

import (
	"sync"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// rleBlock is an RLE payload: the two fields of a plain header, then runs. Source: cfile spec §6.3.
//
//	offset  width  field    meaning
//	0       4      count    values
//	4       4      ordinal  row of the cblock's first row
//	8       …      runs     see rle.go; w is 1 for bool, otherwise the width of the type
//
// int32 9 × 5, 1, 2, 3 from row 0:
// 0c 00 00 00 00 00 00 00 12 05 00 00 00 03 01 00 00 00 02 00 00 00 03 00 00 00
//
// Bytes after the last value are ignored, as in Kudu: a writer may fill up the last run.
type rleBlock struct {
	typ     schema.Type
	bits    int // of a value
	ordinal batch.Ordinal
	count   int
	stream  []byte
	marks   []runMark // every runsPerMark-th run, except the first
}

// runMark is the beginning of a run: the index of its first value and its offset in the stream.
type runMark struct{ value, offset uint32 }

// runsPerMark is the maximum number of runs that are walked to reach a value. A run takes at least
// two bytes and a mark eight, so the marks take at most a quarter of the stream's size.
const runsPerMark = 16

func parseRLE(p Params) (Block, error) {
	ord, count, stream, err := plainHeader("rle", p.Payload)
	if err != nil {
		return nil, err
	}
	b := &rleBlock{typ: p.Type, bits: 1, ordinal: ord, count: count, stream: stream}
	if p.Type.Physical() != schema.Bool {
		b.bits = 8 * p.Type.Width()
	}
	for i, offset, runs := 0, 0, 0; i < count; runs++ {
		if runs > 0 && runs%runsPerMark == 0 {
			b.marks = append(b.marks, runMark{uint32(i), uint32(offset)})
		}
		r, used, err := nextRun(stream[offset:], b.bits, count-i)
		if err != nil {
			return nil, fault.Corruptf("encoding: rle: value %d of %d: %v", i, count, err)
		}
		i, offset = i+r.count, offset+used
	}
	return b, nil
}

func (b *rleBlock) Ordinal() batch.Ordinal { return b.ordinal }
func (b *rleBlock) Len() int               { return b.count }
func (b *rleBlock) Footprint() int         { return 96 + 8*cap(b.marks) }

// runIter iterates over the runs of a block, from the run that contains a given value.
type runIter struct {
	b      *rleBlock
	first  int // value at which cur begins
	cur    run
	offset int // after cur
}

// runAt returns an iterator at the run of value i, i < Len.
func (b *rleBlock) runAt(i int) (it runIter, err error) {
	lo, hi := 0, len(b.marks) // the marks before lo begin at or before i
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if int(b.marks[mid].value) <= i {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	it.b = b
	if lo > 0 {
		it.first, it.offset = int(b.marks[lo-1].value), int(b.marks[lo-1].offset)
	}
	for {
		if err := it.next(); err != nil || i < it.first+it.cur.count {
			return it, err
		}
	}
}

// next moves to the next run, which must exist.
func (it *runIter) next() error {
	it.first += it.cur.count
	r, used, err := nextRun(it.b.stream[it.offset:], it.b.bits, it.b.count-it.first)
	if err != nil {
		return err // impossible after Parse
	}
	it.cur, it.offset = r, it.offset+used
	return nil
}

// each calls f for the parts of runs that contain values [from, from+n): n values of r starting
// with value skip. It stops at the first error of f.
func (b *rleBlock) each(from, n int, f func(r run, skip, n int) error) error {
	if n == 0 {
		return nil
	}
	it, err := b.runAt(from)
	for err == nil {
		skip := from - it.first
		k := min(n, it.cur.count-skip)
		if err := f(it.cur, skip, k); err != nil {
			return err
		}
		if from, n = from+k, n-k; n == 0 {
			return nil
		}
		err = it.next()
	}
	return err
}

// Runs implements RunBlock.
func (b *rleBlock) Runs(from, n int, f func(k int, cell []byte) error) error {
	return b.each(from, n, func(r run, _, k int) error {
		if r.literal {
			return f(k, nil)
		}
		return f(k, b.cellOf(r, 0))
	})
}

func (b *rleBlock) Decode(from, n int, dst *batch.Vector, at int) error {
	width := b.typ.Width()
	out := dst.Data[at*width : (at+n)*width]
	return b.each(from, n, func(r run, skip, n int) error {
		part := out[:n*width]
		out = out[n*width:]
		switch {
		case b.bits == 1 && r.literal:
			expandBits(part, r.body, skip, n)
		case b.bits == 1:
			fill(part, boolCells[r.body[0]&1])
		case r.literal:
			copy(part, r.body[skip*width:])
		default:
			fill(part, r.body)
		}
		return nil
	})
}

// cellOf returns value i of a run.
func (b *rleBlock) cellOf(r run, i int) []byte {
	if !r.literal {
		i = 0
	}
	if b.bits == 1 {
		return boolCells[r.body[i>>3]>>(uint(i)&7)&1]
	}
	w := b.bits / 8
	return r.body[i*w : i*w+w : i*w+w]
}

func (b *rleBlock) Cell(i int) ([]byte, error) {
	it, err := b.runAt(i)
	if err != nil {
		return nil, err
	}
	return b.cellOf(it.cur, i-it.first), nil
}

// Seek does a binary search over the marks by their first values, then walks runs, then searches
// within one.
func (b *rleBlock) Seek(target []byte) (int, bool, error) {
	if err := checkTarget(b.typ, target); err != nil {
		return 0, false, err
	}
	lo, hi := 0, len(b.marks)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		r, _, err := nextRun(b.stream[b.marks[mid].offset:], b.bits, 1)
		if err != nil {
			return 0, false, err
		}
		if batch.Compare(b.typ, b.cellOf(r, 0), target) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	it := runIter{b: b}
	if lo > 0 {
		it.first, it.offset = int(b.marks[lo-1].value), int(b.marks[lo-1].offset)
	}
	for it.first+it.cur.count < b.count {
		if err := it.next(); err != nil {
			return 0, false, err
		}
		// The last value of the run shows whether it contains the target.
		if batch.Compare(b.typ, b.cellOf(it.cur, it.cur.count-1), target) >= 0 {
			n := it.cur.count
			if !it.cur.literal {
				n = 1
			}
			found := it.cur
			i, exact := searchCells(b.typ, n, func(i int) []byte { return b.cellOf(found, i) }, target)
			return it.first + i, exact, nil
		}
	}
	return b.count, false, nil
}

// literalCells is the working memory of selectLiterals: packed values as a vector, for the
// predicate's kernels.
type literalCells struct {
	v    batch.Vector
	keep batch.Bitmap
}

var literalPool = sync.Pool{New: func() any { return new(literalCells) }}

// Select tests a repeat once, and literals with the kernels that test a vector.
func (b *rleBlock) Select(p *batch.Predicate, from, n int, sel batch.Bitmap, at int) (bool, error) {
	if selectAll(p, n, sel, at) {
		return true, nil
	}
	err := b.each(from, n, func(r run, skip, n int) error {
		if r.literal {
			b.selectLiterals(p, r, skip, n, sel, at)
		} else if !p.EvalCell(b.cellOf(r, 0)) {
			sel.ClearRange(at, at+n)
		}
		at += n
		return nil
	})
	return true, err
}

func (b *rleBlock) selectLiterals(p *batch.Predicate, r run, skip, n int, sel batch.Bitmap, at int) {
	lit := literalPool.Get().(*literalCells)
	defer literalPool.Put(lit)
	lit.v.Type = b.typ
	lit.v.Reset(n)
	if b.bits == 1 {
		expandBits(lit.v.Data, r.body, skip, n)
	} else {
		copy(lit.v.Data, r.body[skip*b.bits/8:])
	}
	lit.keep = lit.keep.Resize(n)
	lit.keep.SetRange(0, n)
	p.Eval(&lit.v, lit.keep)
	andBits(sel, at, lit.keep, n)
}
