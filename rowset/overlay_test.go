package rowset

import (
	"encoding/binary"
	"slices"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/rowpage"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// sumsSet writes n rows with a key and a value, which is the key.
func sumsSet(t *testing.T, n int) *DiskRowSet {
	t.Helper()
	d := newDisk()
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64}, {ID: 2, Name: "v", Type: schema.Int64}}, 1)
	w := must.Get(NewWriter(d, s, 17))(t)
	rows := &change.Rows{Batch: batch.New(s.Columns, n)}
	for i := range n {
		for _, v := range rows.Batch.Columns {
			batch.Values[int64](v)[i] = int64(i)
		}
		rows.Keys = append(rows.Keys, binary.BigEndian.AppendUint64(nil, uint64(i)|1<<63))
	}
	must.Do(t, w.Append(rows))
	row := must.Get(w.Finish())(t)
	set := must.Get(Open(s, row, Options{Blocks: d, Cache: cache.New(16 << 20)}))(t)
	t.Cleanup(set.Unref)
	return set
}

// sumOfValues returns the sum of the values in a snapshot, and whether a window computed it from
// overlays.
func sumOfValues(set *DiskRowSet, snap mvcc.Snapshot) (sum int64, overlaid bool, err error) {
	req := scan.Options{Schema: set.Schema, Columns: []int{1}, Snapshot: snap}
	it, err := newIterator(set, req)
	if err != nil {
		return 0, false, err
	}
	it.Offer(func(w scan.Window) (bool, error) {
		part, _, ok, err := w.Sum(0, w.Selection())
		_, _, differ := it.window.Differences(2)
		overlaid = overlaid || differ
		if ok {
			sum += int64(part.Lo)
		}
		return ok, err
	})
	for it.Next() {
		b := it.Batch()
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			sum += batch.Values[int64](b.Columns[0])[i]
		}
	}
	return sum, overlaid, it.Close()
}

// A writer changes rows while scans of states that are published repeat. The scans make overlays and
// use them. Some states do not change for some scans.
func TestOverlaysFollowConcurrentWriters(t *testing.T) {
	const n, changes, batchSize = 5 * batch.WindowRows, 4000, 50
	set, r := sumsSet(t, n), seedtest.Rand(t)
	values, sums := make([]int64, n), []int64{0}
	for i := range values {
		values[i] = int64(i)
		sums[0] += int64(i)
	}
	var mu sync.Mutex // held by the writer for each batch, by scans of a state that does not change
	published := func() mvcc.Timestamp { return mvcc.Timestamp(len(sums)) }
	dead := map[int]bool{}
	write := func() {
		mu.Lock()
		defer mu.Unlock()
		sum := sums[len(sums)-1]
		for range batchSize {
			row := r.IntN(n)
			if dead[row] {
				continue
			}
			list := change.AppendDelete(nil)
			if dead[row] = r.IntN(100) == 0; dead[row] {
				sum -= values[row]
			} else {
				value := r.Int64N(1 << 40)
				sum, values[row] = sum+value-values[row], value
				list = change.AppendColumn(change.AppendUpdateHeader(nil, change.Update), 2,
					binary.LittleEndian.AppendUint64(nil, uint64(value)))
			}
			ts := published() + 1
			set.Apply(batch.Ordinal(row), ts, lsn.LSN(ts), list)
		}
		sums = append(sums, sum)
	}
	next, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for range next {
			write()
		}
	}()
	overlaid := 0
	check := func(ts mvcc.Timestamp, want int64) {
		got, used, err := sumOfValues(set, mvcc.AsOf(ts))
		must.Do(t, err)
		must.Equal(t, got, want, "at", ts)
		if used {
			overlaid++
		}
	}
	for i := range changes / batchSize {
		mu.Lock()
		ts, sum := published(), sums[len(sums)-1]
		if i%3 == 0 {
			for range 3 {
				check(ts, sum)
			}
		}
		old := len(sums) / 2
		past := sums[old]
		mu.Unlock()
		next <- true
		check(ts, sum) // while the writer goes on
		check(ts, sum)
		check(mvcc.Timestamp(old+1), past)
	}
	close(next)
	<-done
	if overlaid == 0 {
		t.Error("no scan used overlays")
	}
}

// A snapshot that sees one of two redo files does not see the overlays of both, nor do later ones see
// its overlays.
func TestOverlaysOfSnapshotsBetweenRedoFiles(t *testing.T) {
	const n = 4 * batch.WindowRows
	set := sumsSet(t, n)
	d, row := set.opts.Blocks.(*disk), *set.Metadata()
	for ts := mvcc.Timestamp(10); ts <= 20; ts += 10 {
		sink := must.Get(d.Create())(t)
		w := must.Get(delta.NewWriter(sink, false))(t)
		for i := range uint32(n / 32) {
			must.Do(t, w.Append(change.Delta{Row: 32*i + uint32(ts), TS: ts, List: change.AppendColumn(
				change.AppendUpdateHeader(nil, change.Update), 2, make([]byte, 8))}))
		}
		must.Get(w.Finish())(t)
		must.Do(t, d.Finish(sink))
		row.Redo = append(row.Redo, sink.ID())
	}
	sums := [3]int64{n * (n - 1) / 2}
	for i := range int64(n / 32) {
		sums[1] -= 32*i + 10
		sums[2] -= 32*i + 20
	}
	sums[1] += sums[0]
	sums[2] += sums[1]
	set = must.Get(Open(set.Schema, &row, set.opts))(t)
	defer set.Unref()
	for _, at := range []int{1, 1, 1, 2, 2, 2, 1, 0, 2} {
		sum, _, err := sumOfValues(set, mvcc.AsOf(mvcc.Timestamp(10*at)))
		must.Do(t, err)
		must.Equal(t, sum, sums[at], "after", at, "files")
	}
}

// The first scans of a state make no overlay; one scan more of a state with few changes does, and a
// change of a row makes it unusable.
func TestOverlaysAreMadeForRepeatedScans(t *testing.T) {
	const n = 2 * aheadRows
	rowpage.Eager.Store(false)
	set := sumsSet(t, n)
	update := func(row int, ts mvcc.Timestamp) {
		set.Apply(batch.Ordinal(row), ts, lsn.LSN(ts), change.AppendColumn(
			change.AppendUpdateHeader(nil, change.Update), 2, make([]byte, 8)))
	}
	want := int64(n) * (n - 1) / 2
	for i := range n / 16 {
		update(16*i, 20)
		want -= int64(16 * i)
	}
	var got []bool
	scans := func(snap mvcc.Snapshot, scans int) {
		for range scans {
			sum, overlaid, err := sumOfValues(set, snap)
			must.Do(t, err)
			must.Equal(t, sum, want)
			got = append(got, overlaid)
		}
	}
	scans(mvcc.AsOf(20), 3)
	update(1, 21)
	scans(mvcc.AsOf(20), 2)
	want--
	scans(mvcc.AsOf(21), 3)
	if expected := []bool{false, true, true, false, false, false, true, true}; !slices.Equal(got, expected) {
		t.Errorf("overlays in scans %v, want %v", got, expected)
	}
}
