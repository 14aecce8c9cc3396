package rowset

import (
	"math/bits"
	"sync/atomic"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
)

// deadBlockRows is the number of rows of a block: a window has 64 of them.
const deadBlockRows = batch.WindowRows / 64

// deadWindow is what a rowset remembers of the deleted rows of a window of batch.WindowRows, so that
// scans pass over them: a queue leaves a million dead rows before its first live one.
//
// A deleted row is never reinserted in its rowset, so what is remembered never becomes wrong, also for
// the rowset's successors. Scans set it while others read it:
//
//	scan that sets       raises ts         adds blocks
//	scan that passes                loads blocks         loads ts
//
// ts is raised first and loaded last, so it is at least the timestamp of every block that was loaded.
type deadWindow struct {
	blocks atomic.Uint64 // bit i: rows [64 i, 64 (i+1)) of the window are dead as of ts, and later
	ts     atomic.Uint64
}

// in returns the blocks that are known to be dead in a snapshot.
func (w *deadWindow) in(snap mvcc.Snapshot) uint64 {
	blocks := w.blocks.Load()
	if blocks != 0 && !snap.Sees(mvcc.Timestamp(w.ts.Load())) {
		return 0
	}
	return blocks
}

// add adds blocks that are dead as of ts.
func (w *deadWindow) add(blocks uint64, ts mvcc.Timestamp) {
	if blocks&^w.blocks.Load() == 0 {
		return
	}
	for {
		old := w.ts.Load()
		if old >= uint64(ts) || w.ts.CompareAndSwap(old, uint64(ts)) {
			break
		}
	}
	w.blocks.Or(blocks)
}

// deadRows has the windows of a rowset, 16 bytes for each: made when the first block is dead.
type deadRows []deadWindow

// after returns the first row in [row, end) that is not known to be dead in a snapshot, or end.
func (d deadRows) after(row, end batch.Ordinal, snap mvcc.Snapshot) batch.Ordinal {
	for row < end {
		w, i := row/batch.WindowRows, row%batch.WindowRows/deadBlockRows
		n := bits.TrailingZeros64(^(d[w].in(snap) >> i))
		if n == 0 {
			return row
		}
		row = w*batch.WindowRows + (i+batch.Ordinal(n))*deadBlockRows
		if i+batch.Ordinal(n) < 64 {
			break
		}
	}
	return min(row, end)
}

// before returns the end of the rows of [from, row) without those at their end that are known to be
// dead in a snapshot.
func (d deadRows) before(from, row batch.Ordinal, snap mvcc.Snapshot) batch.Ordinal {
	for row > from {
		last := row - 1
		w, i := last/batch.WindowRows, last%batch.WindowRows/deadBlockRows
		n := bits.LeadingZeros64(^(d[w].in(snap) << (63 - i)))
		if n == 0 {
			return row
		}
		row = w*batch.WindowRows + (i+1-batch.Ordinal(n))*deadBlockRows
		if batch.Ordinal(n) <= i {
			break
		}
	}
	return max(row, from)
}

// Dead reports whether it is known, without reading a file, that no row exists in a snapshot: the counts
// of the deletes say so.
func (d *DiskRowSet) Dead(snap mvcc.Snapshot) bool {
	if ts := d.deadAs.Load(); ts != 0 {
		return snap.Sees(mvcc.Timestamp(ts))
	}
	s := d.State()
	ts, ok := s.Deltas.AllDead(s.Meta.Rows)
	if !ok {
		return false
	}
	d.deadAs.Store(uint64(ts))
	return snap.Sees(ts)
}

// passDead passes over rows that are known to be dead, and reports whether rows of the range are left.
func (it *Iterator) passDead() bool {
	if it.next >= it.end {
		return false
	}
	known := it.d.dead.Load()
	if known == nil {
		return true
	}
	left := it.end - it.next
	if snap := it.req.Snapshot(); it.req.Descending() {
		it.end = known.before(it.next, it.end, snap)
	} else {
		it.next = known.after(it.next, it.end, snap)
	}
	it.counting.passed(int(left - (it.end - it.next)))
	return it.next < it.end
}

// deadRun is rows [from, to) that a scan has found to be dead.
type deadRun struct{ from, to batch.Ordinal }

// noteDead remembers the dead rows among rows [from, from+n), which are those that sel does not have:
// the deletes in the window were applied to it, and nothing else.
func (it *Iterator) noteDead(from batch.Ordinal, n int, sel batch.Bitmap) {
	ts := min(it.req.Snapshot().Newest(), it.deltas.MaxTimestamp()) // no delete in the window is newer
	to := from + batch.Ordinal(n)
	begin, end := from, to // with the dead rows next to them that the scan has found before
	if it.run.to == from {
		begin = it.run.from
	}
	if it.run.from == to {
		end = it.run.to
	}
	first := sel.Next(0)
	if first < 0 {
		it.run = deadRun{begin, end}
		it.d.addDead(begin, end, ts)
		return
	}
	head, tail := deadRun{begin, from + batch.Ordinal(first)}, deadRun{from + batch.Ordinal(sel.Prev(n-1)) + 1, end}
	it.d.addDead(head.from, head.to, ts)
	it.d.addDead(tail.from, tail.to, ts)
	if it.run = tail; it.req.Descending() {
		it.run = head
	}
	for i := 1; from%deadBlockRows == 0 && i < len(sel)-1; i++ {
		if at := from + batch.Ordinal(i)*deadBlockRows; sel[i] == 0 {
			it.d.addDead(at, at+deadBlockRows, ts)
		}
	}
}

// addDead remembers that rows [from, to) are dead as of ts, except rows of blocks that are not entirely
// among them.
func (d *DiskRowSet) addDead(from, to batch.Ordinal, ts mvcc.Timestamp) {
	rows := batch.Ordinal(d.Metadata().Rows)
	first, end := (from+deadBlockRows-1)/deadBlockRows, to/deadBlockRows
	if to == rows {
		end = (to + deadBlockRows - 1) / deadBlockRows
	}
	if first >= end {
		return
	}
	known := d.dead.Load()
	if known == nil {
		windows := make(deadRows, (rows+batch.WindowRows-1)/batch.WindowRows)
		d.dead.CompareAndSwap(nil, &windows)
		known = d.dead.Load()
	}
	for first < end {
		n := min(64-first%64, end-first) // blocks in one window
		(*known)[first/64].add(^uint64(0)>>(64-n)<<(first%64), ts)
		first += n
	}
}
