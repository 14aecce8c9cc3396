package rewrite

import (
	"fmt"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
)

// boundedInput is a listInput with a known first key. It calls read each time it is read.
type boundedInput struct {
	listInput
	first string
	read  func()
}

func (b *boundedInput) First() []byte { return []byte(b.first) }

func (b *boundedInput) Next() (*change.Rows, error) {
	b.read()
	return b.listInput.Next()
}

// numbered returns rows with keys from … to-1, two at a time.
func numbered(from, to int) (list []*change.Rows) {
	for ; from < to; from += 2 {
		rows := &change.Rows{Batch: batch.New(testSchema.Columns, 0)}
		for i := from; i < min(from+2, to); i++ {
			key := fmt.Sprintf("%04d", i)
			for c, cell := range [][]byte{[]byte(key), int32Cell(i), cellOf(0)} {
				rows.Batch.Columns[c].AppendCell(cell)
			}
			rows.Undo = append(rows.Undo, change.Delta{Row: uint32(len(rows.Keys)), TS: 1, List: deleteList})
			rows.Keys = append(rows.Keys, []byte(key))
		}
		rows.Batch.Len = len(rows.Keys)
		list = append(list, rows)
	}
	return list
}

// Inputs with disjoint key ranges are read one after another. An input that overlaps others is read
// when the merge reaches its first key.
func TestInputsAreReadWhenTheirFirstKeyIsTheNext(t *testing.T) {
	var order []int
	var inputs []Input
	for i, bounds := range [][2]int{{40, 60}, {0, 20}, {20, 40}} {
		b := &boundedInput{first: fmt.Sprintf("%04d", bounds[0]), read: func() { order = append(order, i) }}
		b.rows = numbered(bounds[0], bounds[1])
		inputs = append(inputs, b)
	}
	res := must.Get(run(testSchema, mvcc.Min, 1<<20, inputs...))(t)
	want := slices.Concat(slices.Repeat([]int{1}, 11), slices.Repeat([]int{2}, 11), slices.Repeat([]int{0}, 11))
	must.Equal(t, order, want, "read in the order")
	n := 0
	err := res.histories(func(rows *change.Rows, i int, undo, _ []change.Delta) error {
		if key := fmt.Sprintf("%04d", n); string(rows.Keys[i]) != key || len(undo) != 1 {
			t.Errorf("row %d has key %s and %d undos", n, rows.Keys[i], len(undo))
		}
		n++
		return nil
	})
	must.Do(t, err)
	must.Equal(t, n, 60, "rows")
	must.Equal(t, res.stats, (Stats{RowsRead: 60, RowsWritten: 60}))
}

func TestWrongFirstKeyIsCorrupt(t *testing.T) {
	for _, first := range []string{"0000", "0009"} {
		b := &boundedInput{first: first, read: func() {}}
		b.rows = numbered(5, 9)
		must.Fail(t, must.Err(run(testSchema, mvcc.Min, 0, b)), fault.ErrCorrupt, "metadata with first key", first)
	}
}
