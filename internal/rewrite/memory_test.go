package rewrite

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// discard creates blocks whose bytes are counted and dropped.
type discard struct{ last block.ID }

func (d *discard) Create() (block.Sink, error) {
	d.last++
	return &discardedBlock{id: d.last}, nil
}

func (d *discard) Finish(block.Sink) error { return nil }

type discardedBlock struct {
	id   block.ID
	size int64
}

func (b *discardedBlock) ID() block.ID { return b.id }
func (b *discardedBlock) Size() int64  { return b.size }

func (b *discardedBlock) Write(p []byte) (int, error) {
	b.size += int64(len(p))
	return len(p), nil
}

var memorySchema = mustSchema([]schema.Column{
	{ID: 10, Name: "key", Type: schema.String},
	{ID: 11, Name: "n", Type: schema.Int64},
	{ID: 12, Name: "f", Type: schema.Double},
	{ID: 13, Name: "text", Type: schema.String},
}, 1)

// overlapping returns rowsets of memorySchema whose keys alternate. Every fourth row has a redo.
func overlapping(t testing.TB, sets, rows int) (out []*rowset.DiskRowSet) {
	for set := range sets {
		var parts []*change.Rows
		for from := 0; from < rows; from += batch.WindowRows {
			parts = append(parts, memoryRows(from, min(from+batch.WindowRows, rows), set, sets))
		}
		out = append(out, writeRowSet(t, memorySchema, parts))
	}
	return out
}

// writeRowSet writes a rowset to memory and opens it.
func writeRowSet(t testing.TB, s *schema.Schema, parts []*change.Rows) *rowset.DiskRowSet {
	d := newDisk()
	w := must.Get(rowset.NewWriter(d, s, 1))(t)
	for _, rows := range parts {
		must.Do(t, w.Append(rows))
	}
	row := must.Get(w.Finish())(t)
	return must.Get(rowset.Open(s, row, rowset.Options{Blocks: d}))(t)
}

func memoryRows(from, to, set, sets int) *change.Rows {
	rows := &change.Rows{Batch: batch.New(memorySchema.Columns, 0)}
	for i := from; i < to; i++ {
		row, mixed := uint32(i-from), i*7919%1000003
		cells := [][]byte{fmt.Appendf(nil, "%08d", i*sets+set), fmt.Appendf(nil, "%08d", mixed),
			fmt.Appendf(nil, "%08x", i), memoryText(i, set)}
		for c, cell := range cells {
			rows.Batch.Columns[c].AppendCell(cell)
		}
		rows.Keys = append(rows.Keys, cells[0])
		rows.Undo = append(rows.Undo, change.Delta{Row: row, TS: mvcc.Timestamp(1 + set), List: deleteList})
		if i%4 == set%4 {
			l := change.AppendColumn(change.AppendUpdateHeader(nil, change.Update), 13,
				fmt.Appendf(nil, "another text, %d", i))
			rows.Redo = append(rows.Redo, change.Delta{Row: row, TS: 20, List: l})
		}
	}
	rows.Batch.Len = len(rows.Keys)
	return rows
}

func memoryText(i, set int) []byte {
	return fmt.Appendf(nil, "the text of row %d of rowset %d is %d, and it is not short", i, set, i*7919%1000003)
}

// mergeToNowhere merges rowsets and returns the number of bytes that were allocated.
func mergeToNowhere(t testing.TB, s *schema.Schema, sets []*rowset.DiskRowSet) uint64 {
	var inputs []Input
	for _, d := range sets {
		h := must.Get(d.Histories(mvcc.Everything))(t)
		inputs = append(inputs, h)
	}
	w := rowset.NewRollingWriter(&discard{}, s, func() uint64 { return 1 }, 1<<40)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	must.Get(Run(context.Background(), Job{Schema: s, Inputs: inputs, Writer: w}))(t)
	must.Get(w.Finish())(t)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A merge writes the right cells, and the same bytes whatever the number of processors. With one
// processor it reads as far ahead of the writer as it can.
func TestMergeWritesTheSameOnAnyNumberOfProcessors(t *testing.T) {
	for _, sets := range []int{1, 3} {
		const rows = 13_000 // of which the texts of the last are not in the dictionary
		inputs := overlapping(t, sets, rows/sets)
		var first *disk
		for _, procs := range []int{1, 5} {
			res := must.Get(mergeOn(procs, inputs))(t)
			if len(res.rows) < 2 || res.stats.RowsWritten != int64(rows/sets*sets) {
				t.Fatalf("%d rowsets, %+v", len(res.rows), res.stats)
			}
			if first != nil {
				must.Equal(t, first.blocks, res.disk.blocks,
					sets, "inputs", procs, "processors: not the blocks that one processor writes")
				continue
			}
			first = res.disk
			must.Do(t, checkMemoryRows(res, sets), sets, "inputs")
		}
	}
}

// checkMemoryRows checks keys and texts of the merge of overlapping rowsets.
func checkMemoryRows(res *result, sets int) error {
	k := 0
	return res.histories(func(r *change.Rows, at int, undo, _ []change.Delta) error {
		i, set := k/sets, k%sets
		text := memoryText(i, set)
		if i%4 == set%4 {
			text = fmt.Appendf(nil, "another text, %d", i)
		}
		if key, got := fmt.Sprintf("%08d", k), r.Batch.Columns[3].Cell(at); string(r.Keys[at]) != key ||
			!bytes.Equal(got, text) || len(undo) < 1 {
			return fmt.Errorf("row %d: key %s, %q, %d undos, want key %s, %q", k, r.Keys[at], got, len(undo), key, text)
		}
		k++
		return nil
	})
}

// mergeOn merges rowsets of memorySchema with a number of processors.
func mergeOn(procs int, sets []*rowset.DiskRowSet) (*result, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	var inputs []Input
	for _, d := range sets {
		h, err := d.Histories(mvcc.Everything)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, h)
	}
	return run(memorySchema, mvcc.Min, 100_000, inputs...)
}

// With the garbage collector off, the memory of a merge is all that it allocates. Windows of inputs
// and outputs, the offsets of byte strings, and delta cblocks are reused, so more rows allocate
// little: what is left is indexes.
func TestMergeReusesItsMemory(t *testing.T) {
	if invariant.Enabled || invariant.Race {
		t.Skip("the checks of this build allocate memory for each row")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const rows, maxBytes = 40_000, 16 // a row has about 94; indexes take 3 to 12, depending on the pools
	few := mergeToNowhere(t, memorySchema, overlapping(t, 3, rows))
	many := mergeToNowhere(t, memorySchema, overlapping(t, 3, 2*rows))
	perRow := int64(many-few) / (3 * rows)
	t.Logf("%d KiB for %d rows, %d bytes for each further one", few>>10, 3*rows, perRow)
	if perRow > maxBytes {
		t.Errorf("each row allocates %d bytes, want at most %d", perRow, maxBytes)
	}
}

// The estimate of an input's memory is above what reading it allocates, apart from the growth of
// that memory, and not far above.
func TestInputsNeedTheirEstimatedMemory(t *testing.T) {
	if invariant.Enabled || invariant.Race {
		t.Skip("the checks of this build allocate memory for each row")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for name, set := range map[string]*rowset.DiskRowSet{"few": overlapping(t, 1, 100)[0],
		"changed": overlapping(t, 1, 12_000)[0], "orders": orderSets(t, 1, 12_000, false)[0]} {
		estimate := must.Get(set.HistoriesBytes())(t)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h, err := set.Histories(mvcc.Everything)
		for rows := (*change.Rows)(nil); err == nil; {
			if rows, err = h.Next(); rows == nil {
				break
			}
		}
		must.Do(t, err)
		runtime.ReadMemStats(&after)
		allocated := int64(after.TotalAlloc - before.TotalAlloc)
		t.Logf("%s: estimate %d KiB, allocated %d KiB", name, estimate>>10, allocated>>10)
		if allocated > 2*estimate || estimate > 4*allocated {
			t.Errorf("%s: the estimate is %d KiB, reading allocated %d KiB", name, estimate>>10, allocated>>10)
		}
	}
}

// A major compaction reuses the memory of undos as soon as a window's undos are in their file.
func TestMajorReusesItsMemory(t *testing.T) {
	d := overlapping(t, 1, 8*batch.WindowRows)[0]
	m := must.Get(newMajor(DeltaJob{Set: d, State: d.State(), Creation: &discard{}},
		UpdatedColumns(memorySchema, d.Tracker()), nil))(t)
	first, windows := 0, 0
	for {
		more := must.Get(m.window())(t)
		if !more {
			break
		}
		buffers := len(m.folder.full) + len(m.folder.spare)
		if windows++; windows == 1 {
			first = buffers
		}
		if buffers > first+1 {
			t.Fatalf("%d buffers of undos after %d windows, %d after the first", buffers, windows, first)
		}
	}
	if windows < 8 || m.seen == 0 {
		t.Errorf("%d windows, %d changes", windows, m.seen)
	}
}
